//! What a configuration means: options, several files, flags, reloads, secrets.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use mcp_proxy_hub::AllowedNames;
use mcp_proxy_hub::config::{
    BuiltinTarget, ConfigError, ConfigText, ConfigWarning, ExposeMode, FileAccess, HubConfig,
    InheritedEnv, ListenKind, RestartPolicy, ServerConfig, ServerFlagError, ServerName,
    ServerProblem, ServerSource, ServerSpec, ServerTarget, SharingScope, StartMode, ToolPrefix,
    changes, parse_config,
};
use serde_json::json;

/// A file with every option of ours, also for the check of the schema.
pub(crate) const ALL_OPTIONS: &str = r#"{
  "mcp-proxy": {
    "expose": ["dispatch", "all"],
    "proxy-tool-name": "mcp",
    "list-limit": 50,
    "separator": "__",
    "native-resources": true,
    "native-prompts": false,
    "page-size": 100,
    "threads": 2,
    "inherit-env": ["HTTPS_PROXY", "SSL_CERT_FILE"],
    "listen": "http",
    "listen-host": "127.0.0.1",
    "listen-port": 0,
    "profiles": {
      "work": {
        "servers": ["git"],
        "tools": { "allow": ["git__*"], "deny": ["*_push"] },
        "expose": "proxy, all",
        "pin": ["git__status"],
      },
    },
  },
  "mcpServers": {
    "git": {
      "command": "git-mcp",
      "mcp-proxy": {
        "prefix": "g",
        "separator": "-",
        "allow": ["*"],
        "deny": ["push"],
        "resources": { "deny": ["file:///etc/*"] },
        "prompts": { "allow": [] },
        "rename": { "st": "status" },
        "descriptions": { "st": "What has changed." },
        "hide-arguments": { "log": ["format"] },
        "fix-arguments": { "log": { "format": "short", "limits": [1, 2.5, null, "${USER_NAME}"] } },
        "pin": ["status"],
        "start": "lazy",
        "idle-stop": "5m",
        "start-timeout": "1m30s",
        "list-timeout": 10,
        "call-timeout": "500ms",
        "scope": "session",
        "roots": ["/srv/code", "file:///srv/more%20code", "~/x"],
        "inherit-env": true,
        "restart": "on-failure",
        "restart-limit": 0,
        "cache-ttl": 0,
      },
    },
    "files": { "mcp-proxy": { "builtin": "files", "roots": ["/srv"], "write": true, "prefix": null, "toolcachettl": "1h" } },
  },
}"#;

pub(crate) fn environment(name: &str) -> Option<String> {
    match name {
        "HOME" => Some("/people/ada".into()),
        "USER_NAME" => Some("ada".into()),
        "API_TOKEN" => Some("tok-en-from-env".into()),
        "NODE_HOME" => Some("/opt/node".into()),
        _ => None,
    }
}

pub(crate) fn file(name: &str, text: &str) -> ConfigText {
    ConfigText {
        name: name.into(),
        text: text.into(),
        folder: None,
        current_folder: None,
    }
}

pub(crate) fn try_read(text: &str) -> Result<HubConfig, ConfigError> {
    parse_config(&[file("mcp.json", text)], &environment)
}

pub(crate) fn read(text: &str) -> HubConfig {
    try_read(text).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn server<'a>(config: &'a HubConfig, name: &str) -> &'a ServerConfig {
    let mut servers = config.servers.iter();
    let server = servers.find(|server| server.name.as_str() == name);
    server.unwrap_or_else(|| panic!("no server {name}"))
}

pub(crate) fn spec<'a>(config: &'a HubConfig, name: &str) -> &'a ServerSpec {
    let state = &server(config, name).state;
    state.as_ref().unwrap_or_else(|problem| panic!("{problem}"))
}

fn names(servers: &[&str]) -> Vec<ServerName> {
    servers.iter().map(|name| ServerName::new(*name)).collect()
}

fn globs(patterns: &[&str]) -> Vec<String> {
    patterns.iter().map(|glob| (*glob).to_owned()).collect()
}

#[test]
fn every_option_of_the_hub_is_read() {
    let config = read(ALL_OPTIONS);
    assert!(config.warnings.is_empty());
    let options = &config.options;
    assert_eq!(
        options.expose,
        Some(vec![ExposeMode::Dispatch, ExposeMode::All])
    );
    assert_eq!(options.proxy_tool_name.as_deref(), Some("mcp"));
    assert_eq!(options.list_limit, NonZeroUsize::new(50));
    assert_eq!(options.separator.as_deref(), Some("__"));
    assert_eq!(options.native_resources, Some(true));
    assert_eq!(options.native_prompts, Some(false));
    assert_eq!(options.page_size, NonZeroUsize::new(100));
    assert_eq!(options.threads, NonZeroUsize::new(2));
    let inherited = ["HTTPS_PROXY", "SSL_CERT_FILE"].map(str::to_owned).to_vec();
    assert_eq!(options.inherit_env, Some(InheritedEnv::Named(inherited)));
    assert_eq!(options.listen, Some(ListenKind::Http));
    assert_eq!(options.listen_host.as_deref(), Some("127.0.0.1"));
    assert_eq!(options.listen_port, Some(0));
    let work = &options.profiles["work"];
    assert_eq!(work.servers.as_deref(), Some(&["git".to_owned()][..]));
    assert_eq!(work.expose, Some(vec![ExposeMode::Proxy, ExposeMode::All]));
    assert_eq!(work.pin, ["git__status"]);
    assert!(work.tools.permits("git__log") && !work.tools.permits("git__force_push"));
    assert!(config.unknown_profile_servers().is_empty());
}

#[test]
fn every_option_of_a_server_is_read() {
    let config = read(ALL_OPTIONS);
    let git = &spec(&config, "git").options;
    assert_eq!(git.prefix, ToolPrefix::Text("g".into()));
    assert_eq!(git.separator.as_deref(), Some("-"));
    assert_eq!(git.allow, Some(globs(&["*"])));
    assert_eq!(git.deny, globs(&["push"]));
    assert!(!git.resources.permits("file:///etc/passwd"));
    assert!(!git.prompts.permits("any"));
    assert_eq!(git.rename["st"], "status");
    assert_eq!(git.descriptions["st"], "What has changed.");
    assert_eq!(git.hide_arguments["log"], ["format"]);
    assert_eq!(
        serde_json::Value::Object(git.fix_arguments["log"].0.clone()),
        json!({"format": "short", "limits": [1, 2.5, null, "ada"]})
    );
    assert_eq!(git.pin, ["status"]);
    assert_eq!(git.start, Some(StartMode::Lazy));
    assert_eq!(git.idle_stop, Some(Duration::from_secs(300)));
    assert_eq!(git.start_timeout, Some(Duration::from_secs(90)));
    assert_eq!(git.list_timeout, Some(Duration::from_secs(10)));
    assert_eq!(git.call_timeout, Some(Duration::from_millis(500)));
    assert_eq!(git.scope, SharingScope::Session);
    let roots = git.roots.iter().flatten().map(|root| root.path());
    let expected = ["/srv/code", "/srv/more code", "/people/ada/x"].map(Path::new);
    assert_eq!(roots.collect::<Vec<_>>(), expected);
    assert_eq!(git.restart, Some(RestartPolicy::OnFailure));
    assert_eq!(git.restart_limit, Some(0));
    assert_eq!(git.cache_ttl, Some(Duration::ZERO));
    let ServerTarget::Command { inherit_env, .. } = &spec(&config, "git").target else {
        panic!("not a command");
    };
    assert_eq!(*inherit_env, Some(InheritedEnv::All));
}

#[test]
fn built_in_servers_need_no_command() {
    let config = read(ALL_OPTIONS);
    let files = spec(&config, "files");
    let ServerTarget::Builtin(BuiltinTarget::Files { roots, access }) = &files.target else {
        panic!("not the file server");
    };
    assert_eq!(roots[0].path(), Path::new("/srv"));
    assert_eq!(*access, FileAccess::ReadWrite);
    // They are what the server can see, not what it gets for roots/list.
    assert_eq!(files.options.roots, None);
    assert_eq!(files.options.prefix, ToolPrefix::Nothing);
    assert_eq!(files.options.cache_ttl, Some(Duration::from_secs(3600)));
    let config = read(
        r#"{"mcpServers": {"t": {"mcp-proxy": {"builtin": "time"}}, "d": {"mcp-proxy": {"builtin": "demo"}}}}"#,
    );
    assert_eq!(
        spec(&config, "t").target,
        ServerTarget::Builtin(BuiltinTarget::Time)
    );
    assert_eq!(
        spec(&config, "d").target,
        ServerTarget::Builtin(BuiltinTarget::Demo)
    );
}

#[test]
fn the_file_server_sees_the_current_folder_unless_told_otherwise() {
    let config = read(r#"{"mcpServers": {"f": {"mcp-proxy": {"builtin": "files"}}}}"#);
    let ServerTarget::Builtin(BuiltinTarget::Files { roots, access }) = &spec(&config, "f").target
    else {
        panic!("not the file server");
    };
    let paths: Vec<&Path> = roots.iter().map(|root| root.path()).collect();
    assert_eq!(paths, [Path::new(".")]);
    assert_eq!(*access, FileAccess::ReadOnly);
}

#[test]
fn an_entry_without_options_leaves_everything_open() {
    let config = read(r#"{"mcpServers": {"a": {"command": "a"}}}"#);
    let options = &spec(&config, "a").options;
    assert_eq!(options.prefix, ToolPrefix::ServerName);
    assert_eq!(options.tools(), AllowedNames::default());
    assert_eq!(options.scope, SharingScope::Auto);
    assert_eq!((options.start, options.call_timeout), (None, None));
}

#[test]
fn a_timeout_is_in_milliseconds_unless_it_is_ambiguous() {
    let config = read(
        r#"{"mcpServers": {
            "long": {"command": "a", "timeout": 60000},
            "ours": {"command": "a", "timeout": 60000, "mcp-proxy": {"call-timeout": 5}},
            "short": {"command": "a", "timeout": 60}
        }}"#,
    );
    let timeout = |name| spec(&config, name).options.call_timeout;
    assert_eq!(timeout("long"), Some(Duration::from_secs(60)));
    assert_eq!(timeout("ours"), Some(Duration::from_secs(5)));
    assert_eq!(timeout("short"), None);
    let server = ServerName::new("short");
    assert_eq!(
        config.warnings,
        [ConfigWarning::AmbiguousTimeout { server }]
    );
}

#[test]
fn later_files_win_by_server_and_by_option() {
    let one = r#"{"mcp-proxy": {"threads": 1, "page-size": 5, "profiles": {"a": {}, "b": {}}},
        "mcpServers": {"x": {"command": "old"}, "y": {"command": "y"}}}"#;
    let two = r#"{"mcp-proxy": {"threads": 2, "profiles": {"b": {"pin": ["t"]}}},
        "mcpServers": {"z": {"command": "z"}, "x": {"command": "new"}}}"#;
    let files = [file("one.json", one), file("two.json", two)];
    let config = parse_config(&files, &environment).unwrap();
    let order: Vec<&str> = config
        .servers
        .iter()
        .map(|server| server.name.as_str())
        .collect();
    assert_eq!(order, ["x", "y", "z"]);
    let ServerTarget::Command { program, .. } = &spec(&config, "x").target else {
        panic!("not a command");
    };
    assert_eq!(program, "new");
    assert_eq!(config.options.threads, NonZeroUsize::new(2));
    assert_eq!(config.options.page_size, NonZeroUsize::new(5));
    assert_eq!(config.options.profiles["b"].pin, ["t"]);
    assert_eq!(config.options.profiles.len(), 2);
    let source = |file: &str| ServerSource::File(file.into());
    let replaced = ConfigWarning::Replaced {
        server: ServerName::new("x"),
        earlier: source("one.json"),
        later: source("two.json"),
    };
    assert_eq!(config.warnings, [replaced]);
}

#[test]
fn profiles_can_name_servers_that_are_not_there() {
    let config = read(
        r#"{"mcp-proxy": {"profiles": {"p": {"servers": ["a", "b"]}}}, "mcpServers": {"a": {"command": "a"}}}"#,
    );
    assert_eq!(config.unknown_profile_servers(), [("p", "b")]);
}

#[test]
fn a_flag_is_a_command_or_a_url() {
    let server = ServerConfig::from_flag("fs=npx -y 'server fs' /tmp").unwrap();
    assert_eq!(server.name.as_str(), "fs");
    assert_eq!(server.source, ServerSource::Flag);
    let Ok(ServerTarget::Command { program, args, .. }) = server.state.map(|spec| spec.target)
    else {
        panic!("not a command");
    };
    assert_eq!(program, "npx");
    let args: Vec<&str> = args.iter().map(|arg| arg.reveal()).collect();
    assert_eq!(args, ["-y", "server fs", "/tmp"]);

    let server = ServerConfig::from_flag("web=https://example.com/mcp?key=a=b").unwrap();
    let spec = server.state.unwrap();
    assert_eq!(spec.secrets(), Vec::<String>::new());
    let ServerTarget::Url {
        url, kind: None, ..
    } = &spec.target
    else {
        panic!("not a URL");
    };
    assert_eq!(url.uri().query(), Some("key=a=b"));

    for (flag, error) in [
        ("npx", ServerFlagError::NoName),
        ("=npx", ServerFlagError::NoName),
        ("https://example.com/?a=b", ServerFlagError::NoName),
        ("a=", ServerFlagError::NoTarget(ServerName::new("a"))),
        ("a=''", ServerFlagError::NoTarget(ServerName::new("a"))),
        ("a=x 'y", ServerFlagError::BadCommand(ServerName::new("a"))),
    ] {
        assert_eq!(ServerConfig::from_flag(flag).unwrap_err(), error, "{flag}");
    }
    let error = ServerConfig::from_flag("a=http://").unwrap_err();
    assert!(matches!(error, ServerFlagError::BadUrl(..)));
}

#[test]
fn a_reload_knows_what_is_different() {
    let old = read(
        r#"{"mcpServers": {
            "same": {"command": "a", "env": {"A": "1", "B": "2"}},
            "other": {"command": "a"},
            "gone": {"command": "a"},
            "broken": {}, "fixed": {}
        }}"#,
    );
    // Other lines and another order, but `same` and `broken` mean the same.
    let new = read(
        r#"{"mcpServers": {"broken": {}, "fixed": {"command": "a"},
            "new": {"command": "a"}, "other": {"command": "a", "args": ["x"]},

            "same": {"env": {"B": "2", "A": "1"}, "command": "a"}}}"#,
    );
    let changes = changes(&old, &new);
    assert_eq!(changes.added, names(&["new"]));
    assert_eq!(changes.removed, names(&["gone"]));
    assert_eq!(changes.changed, names(&["fixed", "other"]));
    assert!(!changes.is_empty());
    assert!(mcp_proxy_hub::config::changes(&old, &old).is_empty());
}

#[test]
fn secrets_are_the_values_that_could_leak() {
    let config = read(
        r#"{"mcpServers": {
            "one": {"command": "a", "args": ["--token=${API_TOKEN}", "--home=${HOME}"],
                    "env": {"KEY": "sk-123456", "MODE": "production", "DEBUG": 1, "PORT": 8080}},
            "two": {"url": "https://u:passw0rd@example.com/mcp?api_key=query-key&x=1",
                    "headers": {"Authorization": "Bearer abc.def", "Accept": "application/json"}},
            "off": {"command": "a", "env": {"KEY": "never-used"}, "disabled": true}
        }}"#,
    );
    let expected = [
        "tok-en-from-env",
        "Bearer abc.def",
        "u:passw0rd",
        "query-key",
        "sk-123456",
        "passw0rd",
        "abc.def",
    ];
    assert_eq!(config.secrets(), expected);
    let shown = format!("{config:?}");
    for secret in expected {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    assert_eq!(server(&config, "off").state, Err(ServerProblem::Disabled));
}

#[test]
fn options_that_need_a_restart_are_named() {
    let options =
        |own: &str| read(&format!(r#"{{"mcpServers": {{}}, "mcp-proxy": {own}}}"#)).options;
    let old = options(r#"{"threads": 2, "expose": "all", "spill-ttl": "1h"}"#);
    let new = options(r#"{"threads": 3, "expose": "proxy", "listen-port": 1, "spill-ttl": "1h"}"#);
    assert_eq!(old.fixed_changes(&new), ["listen-port", "threads"]);
    assert!(old.fixed_changes(&old).is_empty());
}
