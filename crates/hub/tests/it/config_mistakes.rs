//! Entries that clients accept and the hub cannot run as they are: the rest of the file works, and a text says what is wrong.

use mcp_proxy_hub::config::{
    ConfigFault, ConfigText, ConfigWarning, HubConfig, ServerProblem, parse_config,
};

use crate::config::{environment, file, server};

fn parse(name: &str, text: &str) -> HubConfig {
    parse_config(&[file(name, text)], &environment).unwrap()
}

fn names(config: &HubConfig) -> Vec<&str> {
    let servers = config.servers.iter();
    servers.map(|server| server.name.as_str()).collect()
}

#[test]
fn an_entry_of_a_list_without_a_name_stops_nothing_else() {
    let text = "mcpServers:\n  - uses: anthropic/foo-mcp\n  - {command: x}\n  - {name: time, command: uvx}\n  - word\n";
    let config = parse("config.yaml", text);
    assert_eq!(names(&config), ["time"]);
    assert!(server(&config, "time").state.is_ok());
    let skipped = config.warnings.iter().map(|warning| match warning {
        ConfigWarning::Skipped { server, .. } => server.as_str(),
        other => panic!("{other}"),
    });
    assert_eq!(
        skipped.collect::<Vec<_>>(),
        ["anthropic/foo-mcp", "mcpServers[1]", "mcpServers[3]"]
    );
}

/// The servers that a setting of the client turns off, each with the setting.
fn turned_off<'a>(config: &'a HubConfig, by: &str) -> Vec<(&'a str, &'static str)> {
    let off = config.servers.iter().filter_map(|server| {
        let Err(ServerProblem::TurnedOff { file, key }) = &server.state else {
            return None;
        };
        assert_eq!(file, by);
        Some((server.name.as_str(), *key))
    });
    off.collect()
}

#[test]
fn what_gemini_leaves_out_is_disabled() {
    let with = |settings: &str| {
        let servers = r#""mcpServers": {"a": {"command": "x"}, "b": {"command": "${NOT_SET}"}, "c": {"command": "x", "disabled": true}}"#;
        parse(
            "settings.json",
            &format!(r#"{{"mcp": {settings}, {servers}}}"#),
        )
    };
    let config = with(r#"{"excluded": ["b", "c", "unknown"]}"#);
    assert_eq!(
        turned_off(&config, "settings.json"),
        [("b", "mcp.excluded")]
    );
    assert_eq!(server(&config, "c").state, Err(ServerProblem::Disabled));
    assert!(server(&config, "a").state.is_ok());
    let problem = server(&config, "b").state.as_ref().unwrap_err();
    let text = "it is disabled in settings.json by `mcp.excluded`";
    assert_eq!(problem.to_string(), text);
    assert_eq!(config.warnings, []);
    let config = with(r#"{"allowed": ["a"]}"#);
    assert_eq!(turned_off(&config, "settings.json"), [("b", "mcp.allowed")]);
    for settings in [
        r#"{"allowed": [], "excluded": []}"#,
        r#"{"allowed": "b"}"#,
        "null",
    ] {
        assert_eq!(turned_off(&with(settings), ""), [], "{settings}");
    }
}

#[test]
fn what_claude_code_turns_off_in_a_project_is_disabled_there() {
    let text = r#"{
        "mcpServers": {"glob": {"command": "x"}, "git": {"command": "x"}},
        "projects": {
            "/people/ada": {"disabledMcpServers": ["git"]},
            "/people/ada/code": {
                "mcpServers": {"web": {"command": "x"}},
                "disabledMcpServers": ["glob", "web"],
                "disabledMcpjsonServers": ["team"]
            },
            "/people/ada/code/new": {"mcpServers": {}}
        }
    }"#;
    let read_in = |folder: &str| {
        let in_folder = |name, text| ConfigText {
            current_folder: Some(folder.into()),
            ..file(name, text)
        };
        let project = r#"{"mcpServers": {"team": {"command": "x"}}}"#;
        let other = r#"{"mcpServers": {"glob-2": {"command": "x"}}}"#;
        let files = [
            in_folder("code/.mcp.json", project),
            in_folder("other.json", other),
            in_folder(".claude.json", text),
        ];
        parse_config(&files, &environment).unwrap()
    };
    for folder in ["/people/ada/code", "/people/ada/code/new"] {
        let config = read_in(folder);
        let mut off = turned_off(&config, ".claude.json");
        off.sort_unstable();
        let expected = [
            ("glob", "disabledMcpServers"),
            ("team", "disabledMcpjsonServers"),
            ("web", "disabledMcpServers"),
        ];
        assert_eq!(off, expected);
    }
    let alone = r#"{"numStartups": 1, "mcpServers": {"glob": {"command": "x"}}, "projects": {"/srv": {"disabledMcpServers": ["glob"]}}}"#;
    let own = ConfigText {
        current_folder: Some("/srv".into()),
        ..file(".claude.json", alone)
    };
    let config = parse_config(&[own], &environment).unwrap();
    assert_eq!(config.warnings, []);
    let config = read_in("/people/ada/notes");
    let expected = [("git", "disabledMcpServers")];
    assert_eq!(turned_off(&config, ".claude.json"), expected);
    assert_eq!(turned_off(&read_in("/srv"), ""), []);
}

#[test]
fn a_key_that_names_a_variable_is_named_and_takes_no_default() {
    let codex = |line: &str| {
        format!(
            "[mcp_servers.a]\nurl = 'https://a.example/mcp'\nhttp_headers = {{B = 'x'}}\n{line}\n"
        )
    };
    for (name, text, key) in [
        (
            "config.toml",
            codex("bearer_token_env_var = 'NOPE'"),
            "mcp_servers.a.bearer_token_env_var",
        ),
        (
            "config.toml",
            codex("env_http_headers = {X-User = 'NOPE'}"),
            "mcp_servers.a.env_http_headers.X-User",
        ),
        (
            "config.yaml",
            "extensions: {a: {type: stdio, cmd: x, envs: {B: c}, env_keys: [NOPE]}}\n".to_owned(),
            "extensions.a.env_keys",
        ),
    ] {
        let config = parse(name, &text);
        let Err(ServerProblem::Broken(problem)) = &server(&config, "a").state else {
            panic!("not broken: {text}");
        };
        assert_eq!(problem.key, key);
        let fault = ConfigFault::MissingNamedVariable("NOPE".to_owned());
        assert_eq!(problem.fault, fault);
        assert!(problem.to_string().ends_with("variable NOPE is not set"));
    }
}
