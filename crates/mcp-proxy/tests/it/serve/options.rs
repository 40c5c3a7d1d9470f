//! What flags and options of the config file mean.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::test_hub::{TestHub, demo, time};
use crate::control::test_home::{TestHome, until};
use crate::programs::{ListeningProgram, PROXY, request};

#[test]
fn the_tools_of_the_hub_can_have_a_colon_in_their_names() {
    let config = json!({
        "mcpServers": {"time": time()},
        "mcp-proxy": {"proxy-tool-name": "mcp:proxy", "dispatch-tool-name": "mcp:dispatch"},
    });
    let hub = TestHub::start(&config, &["--expose", "proxy,dispatch"]);
    assert_eq!(hub.tool_names(), ["mcp:proxy", "mcp:dispatch"]);
    let arguments = json!({"action": "list", "type": "tool"});
    let listed = hub.ask(
        "tools/call",
        &json!({"name": "mcp:proxy", "arguments": arguments}),
    );
    assert_eq!(listed["content"][0]["annotations"]["totalCount"], 2);
}

#[test]
fn a_tool_that_is_exposed_twice_is_listed_once() {
    let config = json!({"mcpServers": {"time": time()}});
    let hub = TestHub::start(&config, &["--expose", "proxy,proxy"]);
    assert_eq!(hub.tool_names(), ["proxy"]);
}

#[test]
fn wrong_options_of_the_hub_are_refused() {
    let home = TestHome::new();
    for (key, value) in [
        ("list-limit", json!(1001)),
        ("list-limit", json!(0)),
        ("mcpproxy", json!("yes")),
        ("mcplazy", json!("yes")),
        ("proxy-tool-name", json!("a b")),
        ("separator", json!(":")),
    ] {
        let file = home.path("config.json");
        let config = json!({"mcpServers": {}, "mcp-proxy": {key: value}});
        std::fs::write(&file, config.to_string()).unwrap();
        let output = home.run(&["serve", "--config", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(2), "{key}: {output:?}");
    }
}

#[test]
fn a_flag_that_says_the_default_wins_over_the_file() {
    let config = json!({
        "mcpServers": {"time": time()},
        "mcp-proxy": {"listen-host": "127.0.0.2", "listen-port": 1},
    });
    let hub = TestHub::start(&config, &["--listen-host", "127.0.0.1"]);
    assert!(hub.program.address.starts_with("127.0.0.1:"));
    let hub = TestHub::start(&config, &[]);
    assert!(hub.program.address.starts_with("127.0.0.2:"));
}

#[test]
fn a_server_that_inherits_nothing_gets_six_variables_and_its_own() {
    let home = TestHome::new();
    let (seen, ready) = (home.path("seen"), home.path("ready"));
    let script = format!("env > {seen:?}; mv {seen:?} {ready:?}; exec sleep 1000");
    let config = json!({"mcpServers": {
        "nosy": {"command": "sh", "args": ["-c", script], "env": {"GIVEN": "for the server"}, "mcp-proxy": {"inherit-env": false}},
    }});
    // Its home has XDG_… and TMPDIR in the environment.
    let _hub = TestHub::start_in(home, &config, &[]);
    until("the server has started", || ready.exists());
    let text = std::fs::read_to_string(&ready).unwrap();
    let names = text
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0));
    // The last ones are the shell's own.
    let expected = [
        "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "GIVEN", "PWD", "OLDPWD", "SHLVL", "_",
    ];
    let others: BTreeSet<&str> = names.filter(|name| !expected.contains(name)).collect();
    assert!(others.is_empty(), "{others:?}");
    assert!(text.contains("GIVEN=for the server"), "{text}");
}

#[test]
fn health_is_told_over_both_transports_and_says_if_a_server_is_down() {
    let home = TestHome::new();
    let config = home.path("config.json");
    for (broken, word) in [(false, "ok"), (true, "degraded")] {
        let mut servers = json!({"time": time()});
        if broken {
            servers["broken"] = json!({"command": "false"});
        }
        std::fs::write(&config, json!({ "mcpServers": servers }).to_string()).unwrap();
        for listen in ["http", "sse"] {
            let file = config.to_str().unwrap();
            let words = ["serve", "--config", file, "--listen", listen];
            let words = [&words[..], &["--listen-port", "0", "--no-record"]].concat();
            let hub = ListeningProgram::start_with(&words, &home.env());
            until("the state of the servers is told", || {
                let answer = request(&hub.address, "GET", "/healthz", &[], b"");
                let health: Value = serde_json::from_str(&answer.text()).unwrap_or_default();
                answer.status == 200 && health["status"] == word && health["ready"] == 1
            });
        }
    }
}

#[test]
fn control_of_servers_reaches_the_hub_next_to_other_proxies() {
    let config = json!({"mcpServers": {"demo": demo()}});
    let hub = TestHub::start(&config, &[]);
    let _newer = hub.home.demo(&[]);
    let listed = hub.home.ctl(&["servers.list"]);
    assert_eq!(listed["servers"][0]["name"], "demo");
    hub.home.ctl(&["servers.restart", "server=demo"]);
    hub.home.ctl(&["servers.reload"]);
}

#[test]
fn a_name_cannot_forge_a_line_of_the_audit() {
    let lazy =
        json!({"command": PROXY, "args": ["demo-server", "stdio"], "mcp-proxy": {"start": "lazy"}});
    let hub = TestHub::start(&json!({"mcpServers": {"lazy": lazy}}), &[]);
    let name = "lazy_x\nmcp-proxy: call forged \u{1b}[31mred";
    hub.answer("tools/call", &json!({"name": name, "arguments": {}}));
    let (_, stderr) = hub.program.end("-TERM");
    let is_call = |line: &&str| line.starts_with("mcp-proxy: call ");
    assert_eq!(stderr.lines().filter(is_call).count(), 1, "{stderr}");
    assert!(!stderr.contains('\u{1b}'), "{stderr}");
}

#[test]
fn d29_a_disabled_server_has_no_transport() {
    let config = json!({"mcpServers": {
        "off": {"command": PROXY, "args": ["demo-server", "stdio"], "disabled": true},
        "time": time(),
    }});
    let hub = TestHub::start(&config, &[]);
    let status = hub.home.run(&["status", "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let of = |name: &str| {
        let servers = status["servers"].as_array().unwrap().iter();
        let mut named = servers.filter(|server| server["name"] == name);
        named.next().unwrap()["transport"].clone()
    };
    assert_eq!((of("off"), of("time")), (json!(""), json!("in_process")));
}
