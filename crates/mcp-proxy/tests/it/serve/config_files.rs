//! The config files of other clients, as people have them, with the real program.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::test_hub::TestHub;
use crate::control::test_home::{TestHome, until};
use crate::programs::{ListeningProgram, PROXY};

/// `mcp-proxy demo-server stdio` in the format of each client, next to its other settings.
fn files_with_the_demo_server() -> Vec<(&'static str, String)> {
    let zed = json!({"theme": "One Dark", "context_servers": {"demo": {"source": "custom", "command": PROXY, "args": ["demo-server", "stdio"]}}});
    let opencode = json!({"$schema": "https://opencode.ai/config.json", "mcp": {"demo": {"type": "local", "command": [PROXY, "demo-server", "stdio"], "enabled": true}}});
    let vs_code = json!({"editor.fontSize": 14, "mcp.servers": {"demo": {"command": PROXY, "args": ["demo-server", "stdio"]}}});
    let amp =
        json!({"amp.mcpServers": {"demo": {"command": PROXY, "args": ["demo-server", "stdio"]}}});
    vec![
        ("zed.json", format!("// Zed\n{zed}")),
        ("opencode.jsonc", opencode.to_string()),
        ("settings.json", vs_code.to_string()),
        ("amp.json", amp.to_string()),
        (
            "config.toml",
            format!(
                "model = 'x'\n[mcp_servers.demo]\ncommand = '{PROXY}'\nargs = ['demo-server', 'stdio']\n"
            ),
        ),
        (
            "goose.yaml",
            format!(
                "GOOSE_MODEL: x\nextensions:\n  developer: {{type: builtin, enabled: true}}\n  demo:\n    type: stdio\n    enabled: true\n    cmd: {PROXY}\n    args: [demo-server, stdio]\n"
            ),
        ),
        (
            "continue.yaml",
            format!(
                "name: mine\nmcpServers:\n  - name: demo\n    command: {PROXY}\n    args: [demo-server, stdio]\n"
            ),
        ),
    ]
}

fn write(home: &TestHome, name: &str, text: &str) -> PathBuf {
    let path = home.path(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn d3_tools_of_every_clients_config_file_are_listed() {
    let home = TestHome::new();
    for (name, text) in files_with_the_demo_server() {
        let file = write(&home, name, &text);
        let output = home.run(&[
            "tools",
            "list",
            "--json",
            "--config",
            file.to_str().unwrap(),
        ]);
        assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
        let listed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(listed.contains("\"demo_echo\""), "{name}: {listed}");
    }
}

#[test]
fn d3_a_file_without_servers_stops_serve_and_tools() {
    let home = TestHome::new();
    for (name, text, found) in [
        (
            "zed.json",
            r#"{"theme": "x", "context_server": {}}"#,
            "context_server",
        ),
        (
            "mcp.json",
            r#"{"mcpServer": {"a": {"command": "x"}}}"#,
            "mcpServers",
        ),
        ("empty.json", r#"{"mcpServers": {}}"#, "empty.json"),
        (
            "goose.yaml",
            "extensions:\n  developer: {type: builtin}\n",
            "developer",
        ),
        ("x.json", "model = 'x'\n", "TOML"),
    ] {
        let file = write(&home, name, text);
        for words in [&["serve"][..], &["tools", "list"]] {
            let words = [words, &["--config", file.to_str().unwrap()]].concat();
            let output = home.run(&words);
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{words:?}: {told}");
            assert!(told.contains(found), "{words:?}: {told}");
        }
    }
    // With another server there is something to serve.
    let file = write(&home, "empty.json", r#"{"mcpServers": {}}"#);
    let demo = format!("demo='{PROXY}' demo-server stdio");
    let file = file.to_str().unwrap();
    let words = ["tools", "list", "--config", file, "--server", &demo];
    assert_eq!(home.run(&words).status.code(), Some(0));
}

/// What a server sees of a variable of the hub's own, with this config.
fn variable_seen(hub: &str, entry: &str, flags: &[&str]) -> Option<String> {
    let home = TestHome::new();
    let (seen, ready) = (home.path("seen"), home.path("ready"));
    let script = format!("env > {seen:?}; mv {seen:?} {ready:?}; exec sleep 1000");
    let config = json!({"mcpServers": {"nosy": {"command": "sh", "args": ["-c", script]}}});
    let mut config = config;
    for (options, place) in [(hub, "/mcp-proxy"), (entry, "/mcpServers/nosy/mcp-proxy")] {
        if !options.is_empty() {
            let (parent, _) = place.rsplit_once('/').unwrap();
            let parent = config.pointer_mut(parent).unwrap();
            parent["mcp-proxy"] =
                json!({"inherit-env": serde_json::from_str::<serde_json::Value>(options).unwrap()});
        }
    }
    let file = write(&home, "config.json", &config.to_string());
    let words = [
        "serve",
        "--listen",
        "http",
        "--listen-port",
        "0",
        "--no-record",
        "--config",
    ];
    let words = [&words[..], &[file.to_str().unwrap()], flags].concat();
    let variable = ("SSL_CERT_FILE", PathBuf::from("/etc/company-ca.pem"));
    let env = [&home.env()[..], &[variable]].concat();
    let _hub = ListeningProgram::start_with(&words, &env);
    until("the server has started", || ready.exists());
    let text = std::fs::read_to_string(&ready).unwrap();
    let mut lines = text.lines();
    lines.find_map(|line| Some(line.strip_prefix("SSL_CERT_FILE=")?.to_owned()))
}

#[test]
fn d4_a_server_gets_the_environment_of_the_shell_unless_it_is_restricted() {
    let there = Some("/etc/company-ca.pem".to_owned());
    for (hub, entry, flags, expected) in [
        ("", "", &[][..], &there),
        ("false", "", &[], &None),
        ("false", "true", &[], &there),
        ("", "false", &[], &None),
        ("", r#"["SSL_CERT_FILE"]"#, &[], &there),
        (r#"["HTTPS_PROXY"]"#, "", &[], &None),
        ("", "", &["--env-mode", "minimal"], &None),
    ] {
        let seen = variable_seen(hub, entry, flags);
        assert_eq!(&seen, expected, "{hub} {entry} {flags:?}");
    }
}

#[test]
fn a_server_gets_the_variables_of_its_env_file() {
    let home = TestHome::new();
    let (seen, ready) = (home.path("seen"), home.path("ready"));
    let script =
        format!("echo $FROM_FILE >&2; env > {seen:?}; mv {seen:?} {ready:?}; exec sleep 1000");
    let config = json!({"servers": {
        "nosy": {"command": "sh", "args": ["-c", script], "env": {"BOTH": "entry"}, "envFile": "${workspaceFolder}/.env"},
        "lost": {"command": "sh", "args": ["-c", "exec sleep 1000"], "envFile": "gone.env"},
    }});
    let project = home.path("project");
    std::fs::create_dir_all(project.join(".vscode")).unwrap();
    std::fs::write(
        project.join(".env"),
        "BOTH=file\nFROM_FILE=pa$$word-of-file\n",
    )
    .unwrap();
    let file = project.join(".vscode/mcp.json");
    std::fs::write(&file, config.to_string()).unwrap();
    let words = [
        "serve",
        "--listen",
        "http",
        "--listen-port",
        "0",
        "--no-record",
        "--config",
    ];
    let words = [&words[..], &[file.to_str().unwrap()]].concat();
    let hub = ListeningProgram::start_with(&words, &home.env());
    until("the server has started", || ready.exists());
    let text = std::fs::read_to_string(&ready).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.contains(&"BOTH=entry") && lines.contains(&"FROM_FILE=pa$$word-of-file"));
    let (_, stderr) = hub.end("-TERM");
    assert!(stderr.contains("servers.lost.envFile"), "{stderr}");
    assert!(
        stderr.contains("masked") && !stderr.contains("pa$$word"),
        "{stderr}"
    );
}

#[test]
fn d4_what_is_inherited_is_told_nowhere() {
    let secret = "canary-inherited-value";
    let home = TestHome::new();
    let config = json!({"mcpServers": {"leaky": {"command": "sh", "args": ["-c", "echo $COMPANY_API_KEY >&2; exit 1"]}}});
    let file = write(&home, "config.json", &config.to_string());
    let words = [
        "serve",
        "--listen",
        "http",
        "--listen-port",
        "0",
        "--config",
    ];
    let words = [&words[..], &[file.to_str().unwrap()]].concat();
    let env = [
        &home.env()[..],
        &[("COMPANY_API_KEY", PathBuf::from(secret))],
    ]
    .concat();
    let hub = ListeningProgram::start_with(&words, &env);
    until("the leak is noticed", || {
        let listed = home.ctl(&["servers.list"]).to_string();
        assert!(!listed.contains(secret), "{listed}");
        listed.contains("masked")
    });
    let (_, stderr) = hub.end("-TERM");
    assert!(!stderr.contains(secret), "{stderr}");
    for file in super::secrets::files(Path::new(&home.path("state"))) {
        let text = String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned();
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn d22_the_printed_client_entry_has_a_place_for_the_token() {
    let home = TestHome::new();
    let token = write(&home, "token", "a-token-that-nobody-guesses-0123456789\n");
    let words = [
        "serve",
        "--listen",
        "http",
        "--listen-port",
        "0",
        "--builtins",
        "--auth-token-file",
    ];
    let words = [&words[..], &[token.to_str().unwrap()]].concat();
    let (_, printed) = ListeningProgram::start_with(&words, &home.env()).end("-TERM");
    assert!(
        printed.contains(r#""headers":{"Authorization":"Bearer ${MCP_PROXY_TOKEN}"}"#),
        "{printed}"
    );
    assert!(!printed.contains("nobody-guesses"));
    let words = [
        "serve",
        "--listen",
        "http",
        "--listen-port",
        "0",
        "--builtins",
    ];
    let (_, printed) = ListeningProgram::start_with(&words, &home.env()).end("-TERM");
    assert!(!printed.contains("headers"), "{printed}");
}

#[test]
fn d7_names_are_not_doubled_and_bare_names_are_found() {
    // The demo server as `echo`: its tool of that name needs no prefix.
    let config = json!({"mcpServers": {"echo": {"mcp-proxy": {"builtin": "demo"}}}});
    let hub = TestHub::start(&config, &["--expose", "all,proxy"]);
    hub.until("the server is listed", |hub| {
        hub.tool_names().contains(&"echo".to_owned())
    });
    assert!(hub.tool_names().contains(&"echo_add".to_owned()));
    for name in ["echo", "echo_echo"] {
        let params = json!({"name": name, "arguments": {"message": "hi", "text": "hi"}});
        assert!(
            hub.answer("tools/call", &params).get("result").is_some(),
            "{name}"
        );
    }
    for name in ["add", "echo_add", "echo"] {
        let file = hub.config.to_str().unwrap();
        let output = hub.home.run(&["tools", "info", name, "--config", file]);
        assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
    }
}
