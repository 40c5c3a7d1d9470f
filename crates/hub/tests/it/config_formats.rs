//! The config files of many clients, each as its documentation shows it: comments, other settings and all.

use std::path::Path;
use std::time::Duration;

use mcp_proxy_hub::config::{
    ConfigError, ConfigFault, ConfigText, ConfigWarning, FileLanguage, HubConfig, InheritedEnv,
    ServerProblem, ServerTarget, UrlKind, parse_config,
};

use crate::config::{environment, file, server, spec, try_read};

fn try_parse(name: &str, text: &str) -> Result<HubConfig, ConfigError> {
    parse_config(&[file(name, text)], &environment)
}

fn parse(name: &str, text: &str) -> HubConfig {
    try_parse(name, text).unwrap_or_else(|error| panic!("{error}"))
}

/// `command arg arg` or the URL.
fn target(config: &HubConfig, name: &str) -> String {
    match &spec(config, name).target {
        ServerTarget::Command { program, args, .. } => {
            let args = args.iter().map(|arg| arg.reveal());
            let words: Vec<&str> = std::iter::once(program.as_str()).chain(args).collect();
            words.join(" ")
        }
        ServerTarget::Url { url, .. } => url.uri().to_string(),
        ServerTarget::Builtin(_) => panic!("{name} is built in"),
    }
}

fn kind(config: &HubConfig, name: &str) -> Option<UrlKind> {
    match &spec(config, name).target {
        ServerTarget::Url { kind, .. } => *kind,
        _ => panic!("{name} is not a URL"),
    }
}

fn headers(config: &HubConfig, name: &str) -> Vec<String> {
    let ServerTarget::Url { headers, .. } = &spec(config, name).target else {
        panic!("{name} is not a URL");
    };
    let shown = headers.iter().map(|(name, value)| {
        assert!(value.is_sensitive());
        format!("{name}: {}", value.to_str().unwrap())
    });
    shown.collect()
}

fn env(config: &HubConfig, name: &str) -> Vec<String> {
    let ServerTarget::Command { env, .. } = &spec(config, name).target else {
        panic!("{name} is not a command");
    };
    let pairs = env.iter();
    pairs
        .map(|(name, value)| format!("{name}={}", value.reveal()))
        .collect()
}

fn allowed(config: &HubConfig, name: &str, tools: &[&str]) -> Vec<bool> {
    let filter = spec(config, name).options.tools();
    tools.iter().map(|tool| filter.permits(tool)).collect()
}

fn names(config: &HubConfig) -> Vec<&str> {
    let servers = config.servers.iter();
    servers.map(|server| server.name.as_str()).collect()
}

/// The servers that were skipped; no other warning may be there.
fn skipped(config: &HubConfig) -> Vec<&str> {
    let names = config.warnings.iter().map(|warning| match warning {
        ConfigWarning::Skipped { server, .. } => server.as_str(),
        other => panic!("{other}"),
    });
    names.collect()
}

fn is_off(config: &HubConfig, name: &str) -> bool {
    server(config, name).state == Err(ServerProblem::Disabled)
}

#[test]
fn d3_zed() {
    let config = parse(
        "settings.json",
        include_str!("../clients/zed-settings.json"),
    );
    assert_eq!(names(&config), ["time", "git", "search"]);
    assert_eq!(target(&config, "time"), "uvx mcp-server-time");
    assert_eq!(target(&config, "git"), "/opt/git-server --repository .");
    assert_eq!(env(&config, "git"), ["GIT_PAGER=cat"]);
    assert_eq!(
        headers(&config, "search"),
        ["authorization: Bearer tok-en-from-env"]
    );
    // The extension that is turned off is not worth a word.
    assert_eq!(skipped(&config), ["mcp-server-github"]);
}

#[test]
fn d3_opencode() {
    let text = include_str!("../clients/opencode.jsonc");
    let config = parse("opencode.jsonc", text);
    let command = "npx -y @modelcontextprotocol/server-everything";
    assert_eq!(target(&config, "everything"), command);
    assert_eq!(
        env(&config, "everything"),
        ["API_KEY=tok-en-from-env", "MODE=quiet"]
    );
    let options = &spec(&config, "everything").options;
    assert_eq!(options.list_timeout, Some(Duration::from_secs(5)));
    assert_eq!(options.call_timeout, None);
    assert_eq!(
        headers(&config, "sentry"),
        ["authorization: Bearer tok-en-from-env"]
    );
    assert!(is_off(&config, "jira"));
    assert!(config.secrets().contains(&"tok-en-from-env".to_owned()));
    assert_eq!(skipped(&config), [""; 0]);

    let text = include_str!("../clients/opencode-v2.json");
    let config = parse("opencode.json", text);
    assert_eq!(target(&config, "everything"), command);
    assert!(is_off(&config, "off"));
}

#[test]
fn tools_that_opencode_turns_off_are_denied() {
    let servers = r#"{"loc.al": {"type": "local", "command": ["x"]}, "other": {"type": "remote", "url": "https://a/"}}"#;
    let parse_tools = |tools: &str| {
        parse(
            "opencode.json",
            &format!(r#"{{"mcp": {servers}, "tools": {tools}}}"#),
        )
    };
    let tools = ["read", "write"];
    for (switches, local, other) in [
        (r#"{"loc_al_*": false}"#, [false, false], [true, true]),
        (r#"{"loc_al_read": false}"#, [false, true], [true, true]),
        (r#"{"*_write": false}"#, [true, false], [true, false]),
        (
            r#"{"loc_al_*": true, "*": false}"#,
            [true, true],
            [false, false],
        ),
        (
            r#"{"bash": false, "loc_al_read": true}"#,
            [true, true],
            [true, true],
        ),
    ] {
        let config = parse_tools(switches);
        assert_eq!(allowed(&config, "loc.al", &tools), local, "{switches}");
        assert_eq!(allowed(&config, "other", &tools), other, "{switches}");
        assert_eq!(config.warnings, [], "{switches}");
    }
    let config = parse_tools(r#"{"loc_al_*": false, "loc_al_read": true}"#);
    assert_eq!(allowed(&config, "loc.al", &tools), [false, false]);
    assert_eq!(skipped(&config), ["tools.loc_al_read"]);
}

#[test]
fn a_file_reference_of_opencode_is_named() {
    let text = r#"{"mcp": {"a": {"type": "remote", "url": "https://a/", "headers": {"Authorization": "Bearer {file:~/.key}"}}}}"#;
    let config = parse("opencode.json", text);
    let Err(ServerProblem::Broken(problem)) = &server(&config, "a").state else {
        panic!("not broken");
    };
    assert_eq!(problem.key, "mcp.a.headers.Authorization");
    assert!(matches!(problem.fault, ConfigFault::BadValue(ref why) if why.contains("{file:")));
}

#[test]
fn d3_codex() {
    let text = include_str!("../clients/codex-config.toml");
    let config = parse("config.toml", text);
    assert_eq!(names(&config), ["git", "figma", "off"]);
    assert_eq!(target(&config, "git"), "uvx mcp-server-git --repository .");
    assert_eq!(env(&config, "git"), ["GIT_PAGER=cat", "RETRIES=3"]);
    let options = &spec(&config, "git").options;
    assert_eq!(options.start_timeout, Some(Duration::from_secs(20)));
    assert_eq!(options.call_timeout, Some(Duration::from_millis(45_500)));
    let tools = ["git_log", "git_status", "git_push"];
    assert_eq!(allowed(&config, "git", &tools), [true, false, false]);
    let ServerTarget::Command { inherit_env, .. } = &spec(&config, "git").target else {
        panic!("not a command");
    };
    let inherited = InheritedEnv::Named(vec!["SSH_AUTH_SOCK".to_owned()]);
    assert_eq!(*inherit_env, Some(inherited));
    let mut figma = headers(&config, "figma");
    figma.sort();
    let expected = [
        "authorization: Bearer tok-en-from-env",
        "x-figma-region: us-east-1",
        "x-user: ada",
    ];
    assert_eq!(figma, expected);
    assert!(is_off(&config, "off"));
    assert_eq!(skipped(&config), [""; 0]);
}

#[test]
fn d3_goose() {
    let text = include_str!("../clients/goose-config.yaml");
    let config = parse("config.yaml", text);
    assert_eq!(names(&config), ["fetch", "context7", "old"]);
    assert_eq!(
        target(&config, "fetch"),
        "uvx mcp-server-fetch --user-agent=Ünïcode"
    );
    assert_eq!(
        env(&config, "fetch"),
        ["API_TOKEN=tok-en-from-env", "LOG=debug"]
    );
    let options = &spec(&config, "fetch").options;
    assert_eq!(options.call_timeout, Some(Duration::from_secs(300)));
    assert_eq!(allowed(&config, "fetch", &["any"]), [true]);
    assert_eq!(kind(&config, "context7"), Some(UrlKind::StreamableHttp));
    assert_eq!(
        headers(&config, "context7"),
        ["context7_api_key: tok-en-from-env"]
    );
    let tools = ["resolve-library-id", "other"];
    assert_eq!(allowed(&config, "context7", &tools), [true, false]);
    assert_eq!(kind(&config, "old"), Some(UrlKind::Sse));
    assert_eq!(skipped(&config), ["developer"]);
}

#[test]
fn a_table_that_is_null_is_as_good_as_none() {
    let entry = "extensions: {a: {type: stdio, cmd: x, envs: , env_keys: [API_TOKEN]}}\n";
    let config = parse("config.yaml", entry);
    assert_eq!(env(&config, "a"), ["API_TOKEN=tok-en-from-env"]);
    let entry = "mcpServers: [{name: a, url: 'https://a.example/mcp', apiKey: k-0123456789, headers: null}]\n";
    let config = parse("config.yaml", entry);
    assert_eq!(
        headers(&config, "a"),
        ["authorization: Bearer k-0123456789"]
    );
}

#[test]
fn d3_continue() {
    let text = include_str!("../clients/continue-config.yaml");
    let config = parse("config.yaml", text);
    assert_eq!(names(&config), ["SQLite", "docs"]);
    assert_eq!(
        target(&config, "SQLite"),
        "npx -y mcp-sqlite /people/ada/data.db"
    );
    assert_eq!(env(&config, "SQLite"), ["TOKEN=tok-en-from-env"]);
    let options = &spec(&config, "SQLite").options;
    assert_eq!(options.start_timeout, Some(Duration::from_secs(20)));
    assert_eq!(
        headers(&config, "docs"),
        ["authorization: Bearer tok-en-from-env"]
    );
    assert!(config.secrets().contains(&"tok-en-from-env".to_owned()));
    let is_hub_block = |warning: &ConfigWarning| matches!(warning, ConfigWarning::Skipped { server, .. } if server == "hub block");
    assert!(config.warnings.iter().any(is_hub_block));
}

#[test]
fn d3_vs_code_settings() {
    let text = include_str!("../clients/vscode-settings.json");
    let config = parse("settings.json", text);
    assert_eq!(names(&config), ["git", "github", "asks"]);
    assert_eq!(target(&config, "git"), "uvx mcp-server-git");
    let Err(ServerProblem::Broken(problem)) = &server(&config, "asks").state else {
        panic!("not broken");
    };
    assert_eq!(problem.key, "mcp.servers.asks.env.KEY");
    let text = include_str!("../clients/vscode-settings-dotted.json");
    let config = parse("settings.json", text);
    assert_eq!(names(&config), ["git"]);
    assert_eq!(skipped(&config), [""; 0]);
}

#[test]
fn d3_gemini() {
    let text = include_str!("../clients/gemini-settings.json");
    let config = parse("settings.json", text);
    assert_eq!(names(&config), ["stream", "events", "typed", "local"]);
    assert_eq!(kind(&config, "stream"), Some(UrlKind::StreamableHttp));
    // Whatever the URL speaks, the first message finds out.
    assert_eq!(kind(&config, "events"), None);
    assert_eq!(env(&config, "local"), ["API_KEY=tok-en-from-env"]);
    let tools = ["read", "list", "write"];
    assert_eq!(allowed(&config, "local", &tools), [true, false, false]);
}

#[test]
fn gemini_fills_in_a_variable_inside_a_text_and_has_other_settings() {
    let text = include_str!("../clients/gemini-settings.json");
    let config = parse("settings.json", text);
    let mut stream = headers(&config, "stream");
    stream.sort();
    let expected = [
        "authorization: Bearer tok-en-from-env",
        "x-price: $5 $UNSET",
    ];
    assert_eq!(stream, expected);
    assert!(config.secrets().contains(&"tok-en-from-env".to_owned()));
    for warning in &config.warnings {
        let ConfigWarning::UnknownKeys { keys, .. } = warning else {
            panic!("{warning}");
        };
        let is_of_entry = |path: &str| path.starts_with("mcpServers.");
        assert!(keys.iter().all(|key| is_of_entry(&key.path)), "{warning}");
    }
}

#[test]
fn our_own_key_is_misspelt_among_settings_too() {
    let text = r#"{"ui": {}, "proxy": "", "mcp_prxy": {}, "mcpServers": {"a": {"command": "x", "excludeTools": ["b"]}}}"#;
    let config = try_read(text).unwrap();
    let [ConfigWarning::UnknownKeys { keys, .. }] = &config.warnings[..] else {
        panic!("{:?}", config.warnings);
    };
    assert_eq!(keys[0].path, "mcp_prxy");
    assert_eq!(keys.len(), 1);
}

#[test]
fn d3_windsurf_and_cline_and_roo() {
    let text = include_str!("../clients/windsurf-mcp_config.json");
    let config = parse("mcp_config.json", text);
    assert_eq!(
        headers(&config, "figma"),
        ["authorization: Bearer tok-en-from-env"]
    );
    let tools = ["write_file", "read_file"];
    assert_eq!(allowed(&config, "files", &tools), [false, true]);

    let text = include_str!("../clients/cline_mcp_settings.json");
    let config = parse("cline_mcp_settings.json", text);
    for name in ["remote", "roo"] {
        assert_eq!(kind(&config, name), Some(UrlKind::StreamableHttp));
    }
    assert_eq!(allowed(&config, "roo", &["delete"]), [false]);
    assert!(is_off(&config, "local"));
}

#[test]
fn all_lists_of_denied_tools_count() {
    let text = r#"{"mcpServers": {
        "own": {"command": "x", "excludeTools": ["b"], "mcp-proxy": {"deny": ["a"]}},
        "two": {"command": "x", "excludeTools": ["a"], "disabledTools": ["b"]},
        "null": {"command": "x", "disabledTools": ["a", "b"], "mcp-proxy": {"deny": null}}
    }}"#;
    let config = try_read(text).unwrap();
    for name in ["own", "two", "null"] {
        let allowed = allowed(&config, name, &["a", "b", "c"]);
        assert_eq!(allowed, [false, false, true], "{name}");
    }
    let text =
        "[mcp_servers.a]\ncommand = 'x'\ndisabled_tools = ['a']\nmcp-proxy = {deny = ['b']}\n";
    let config = parse("config.toml", text);
    assert_eq!(
        allowed(&config, "a", &["a", "b", "c"]),
        [false, false, true]
    );
}

#[test]
fn d3_amp_and_copilot() {
    let text = include_str!("../clients/amp-settings.json");
    let config = parse("settings.json", text);
    assert_eq!(names(&config), ["playwright", "semgrep"]);
    let tools = ["browser_click", "other"];
    assert_eq!(allowed(&config, "playwright", &tools), [true, false]);
    assert_eq!(skipped(&config), [""; 0]);

    let text = include_str!("../clients/copilot-mcp-config.json");
    let config = parse("mcp-config.json", text);
    assert_eq!(target(&config, "playwright"), "npx @playwright/mcp@latest");
    assert_eq!(allowed(&config, "playwright", &["any"]), [true]);
    assert_eq!(
        allowed(&config, "docs", &["search", "write"]),
        [true, false]
    );
    assert_eq!(skipped(&config), [""; 0]);
}

#[test]
fn d3_claude_code_has_servers_for_the_current_folder() {
    let read_in = |folder: &str| {
        let text = include_str!("../clients/claude.json");
        let file = ConfigText {
            current_folder: Some(folder.into()),
            ..file("/people/ada/.claude.json", text)
        };
        parse_config(&[file], &environment).unwrap()
    };
    // The nearest folder above that has servers; of one name the folder's wins.
    for folder in ["/people/ada/code", "/people/ada/code/web/src"] {
        let config = read_in(folder);
        assert_eq!(names(&config), ["everywhere", "git", "api"]);
        assert_eq!(target(&config, "git"), "project-git");
    }
    assert_eq!(
        names(&read_in("/people/ada/notes")),
        ["everywhere", "git", "home"]
    );
    assert_eq!(names(&read_in("/srv")), ["everywhere", "git"]);
}

#[test]
fn d3_servers_of_other_folders_are_not_no_servers() {
    let text = r#"{"projects": {"/a": {"mcpServers": {"x": {"command": "x"}}}}}"#;
    let file = ConfigText {
        current_folder: Some(Path::new("/b").into()),
        ..file(".claude.json", text)
    };
    let error = parse_config(&[file], &environment).unwrap_err();
    assert_eq!(error.fault, ConfigFault::OtherProjects);
}

#[test]
fn d3_a_file_without_servers_says_what_it_has() {
    for (name, text, meant) in [
        (
            "zed.json",
            r#"{"theme": 1, "context_server": {}}"#,
            Some("context_servers"),
        ),
        (
            "mcp.json",
            r#"{"a": 1, "mcpServer": {"x": {"command": "x"}}}"#,
            Some("mcpServers"),
        ),
        (
            "x.toml",
            "model = 'x'\n[mcp_server.x]\ncommand = 'x'\n",
            Some("mcp_servers"),
        ),
        ("x.yaml", "colour: red\n", None),
        ("x.json", "{}", None),
        ("x.json", r#"{"mcpServers": null}"#, None),
        // Words that other programs use for other things.
        (
            "x.json",
            r#"{"mcp": {"allowed": ["a"]}, "extensions": {"theme": "dark"}}"#,
            None,
        ),
    ] {
        let error = try_parse(name, text).unwrap_err();
        let ConfigFault::NoServers { suggestion, .. } = error.fault else {
            panic!("{error}");
        };
        assert_eq!(suggestion, meant, "{text}");
    }
    let error = try_parse("zed.json", r#"{"theme": 1, "context_server": {}}"#).unwrap_err();
    insta::assert_snapshot!("config_without_servers", error);
}

#[test]
fn d3_our_own_options_alone_are_a_file() {
    assert!(try_read(r#"{"mcp-proxy": {"expose": "all"}}"#).is_ok());
    assert!(try_read(r#"{"mcpServers": {}}"#).is_ok());
}

#[test]
fn d3_a_file_is_read_in_the_language_of_its_name() {
    for (name, text, language) in [
        ("x.toml", "{\"mcpServers\": {}}", FileLanguage::Toml),
        ("x.yml", "a: [", FileLanguage::Yaml),
        (
            "x.json",
            "[mcp_servers.a]\ncommand = 'hunter2'",
            FileLanguage::Json,
        ),
        ("pipe", "extensions:\n  a: [hunter2\n", FileLanguage::Yaml),
    ] {
        let error = try_parse(name, text).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
        match error.fault {
            ConfigFault::Syntax { language: read, .. } => assert_eq!(read, language),
            fault => panic!("{fault}"),
        }
    }
    // Without a telling name the text decides.
    let text = include_str!("../clients/codex-config.toml");
    assert_eq!(parse("/dev/fd/63", text).servers.len(), 3);
}

#[test]
fn d28_the_key_or_place_that_was_meant_is_named() {
    for (entry, meant) in [
        (r#"{"cmd": "uvx", "args": ["x"]}"#, "command"),
        (r#"{"uri": "http://localhost/mcp"}"#, "url"),
        (r#"{"comand": "uvx"}"#, "command"),
    ] {
        let config = try_read(&format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#)).unwrap();
        let Err(ServerProblem::Broken(problem)) = &server(&config, "a").state else {
            panic!("not broken: {entry}");
        };
        let suggestion = Some(meant);
        assert_eq!(problem.fault, ConfigFault::UnknownKey { suggestion });
    }
    let text = r#"{"mcpServers": {"a": {"command": "uvx mcp-server-time"}, "b": {"command": "/opt/my tools/run"}}}"#;
    let config = try_read(text).unwrap();
    let Err(ServerProblem::Broken(problem)) = &server(&config, "a").state else {
        panic!("not broken");
    };
    assert_eq!(problem.key, "mcpServers.a.command");
    assert_eq!(target(&config, "b"), "/opt/my tools/run");
}

#[test]
fn d4_servers_inherit_unless_they_or_the_hub_say_otherwise() {
    let read_with = |hub: &str| {
        let text = format!(
            r#"{{{hub} "mcpServers": {{
                "a": {{"command": "x"}},
                "all": {{"command": "x", "mcp-proxy": {{"inherit-env": true}}}},
                "none": {{"command": "x", "mcp-proxy": {{"inherit-env": false}}}},
                "some": {{"command": "x", "mcp-proxy": {{"inherit-env": ["HTTPS_PROXY"]}}}}
            }}}}"#
        );
        let mut config = try_read(&text).unwrap();
        config.resolve_inherited_env();
        let inherited = |name: &str| match &spec(&config, name).target {
            ServerTarget::Command { inherit_env, .. } => inherit_env.clone().unwrap(),
            _ => panic!("not a command"),
        };
        ["a", "all", "none", "some"].map(inherited)
    };
    let some = || InheritedEnv::Named(vec!["HTTPS_PROXY".to_owned()]);
    let rest = || (InheritedEnv::All, InheritedEnv::Minimal, some());
    for (hub, first) in [
        ("", InheritedEnv::All),
        (
            r#""mcp-proxy": {"inherit-env": false},"#,
            InheritedEnv::Minimal,
        ),
        (r#""mcp-proxy": {"inherit-env": ["HTTPS_PROXY"]},"#, some()),
    ] {
        let (all, none, named) = rest();
        assert_eq!(read_with(hub), [first, all, none, named], "{hub}");
    }
}
