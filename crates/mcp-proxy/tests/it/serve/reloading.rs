//! A configuration that changes while the hub runs.

use std::process::Command;

use serde_json::{Value, json};

use super::test_hub::{TestHub, demo, processes_with, time};
use crate::control::test_home::until;
use crate::programs::{INITIALIZE, PROXY, request};

fn reload(hub: &TestHub, config: &Value) {
    std::fs::write(&hub.config, config.to_string()).unwrap();
    hub.home.ctl(&["servers.reload"]);
}

#[test]
fn a_profile_has_its_path_as_soon_as_it_is_configured() {
    let without = json!({"mcpServers": {"time": time()}});
    let mut with = without.clone();
    with["mcp-proxy"] = json!({"profiles": {"clock": {"servers": ["time"]}}});
    let hub = TestHub::start(&without, &[]);
    let status = || {
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        let body = INITIALIZE.as_bytes();
        request(&hub.program.address, "POST", "/mcp/p/clock", &headers, body).status
    };
    assert_eq!(status(), 404);
    reload(&hub, &with);
    assert_eq!(status(), 200);
    reload(&hub, &without);
    assert_eq!(status(), 404);
}

#[test]
fn a_server_with_other_arguments_is_another_server() {
    let server =
        |script: &str| json!({"mcpServers": {"s": {"command": "sh", "args": ["-c", script]}}});
    let hub = TestHub::start(
        &server(&format!("exec {PROXY} demo-server stdio")),
        &["--expose", "all"],
    );
    let listing = hub.home.path("state").join("mcp-proxy/listings/s.json");
    hub.until("the lists are kept", |_| listing.exists());
    let TestHub { home, program, .. } = hub;
    program.end("-TERM");
    let hub = TestHub::start_in(home, &server("exec sleep 1000"), &["--expose", "all"]);
    assert!(hub.tool_names().is_empty());
}

#[test]
fn a4_a_config_that_does_not_end_stops_nobody() {
    let hub = TestHub::start(
        &json!({"mcpServers": {"time": time()}}),
        &["--expose", "all"],
    );
    hub.until("the server is up", |hub| hub.is_ready("time"));
    std::fs::remove_file(&hub.config).unwrap();
    let made = Command::new("mkfifo").arg(&hub.config).status();
    assert!(made.unwrap().success());
    let reloaded = hub.home.run(&["ctl", "servers.reload"]);
    assert_eq!(reloaded.status.code(), Some(1));
    assert_eq!(
        hub.tool_names(),
        ["time_get_current_time", "time_convert_time"]
    );
    hub.program.end("-TERM");
}

/// A configuration with one server that stays, and one that no other has: every second one is a process with this mark.
fn changed(change: usize, mark: &str) -> Value {
    let (name, value) = mark.split_once('=').unwrap();
    let other = match change % 2 {
        0 => time(),
        _ => json!({"command": PROXY, "args": ["demo-server", "stdio"], "env": {name: value}}),
    };
    let mut servers = json!({"steady": demo()});
    servers[format!("other{change}")] = other;
    json!({ "mcpServers": servers })
}

#[test]
fn reloading_under_load_loses_no_call_and_leaves_no_process() {
    const CLIENTS: usize = 16;
    const CHANGES: usize = 100;
    let mark = format!("RELOADED=under-load-{}", std::process::id());
    let hub = TestHub::start(&changed(0, &mark), &["--expose", "all", "--quiet"]);
    hub.until("the server is up", |hub| hub.is_ready("steady"));
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let calls = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (hub, is_over) = (&hub, &is_over);
                scope.spawn(move || {
                    let session = hub.program.session();
                    let headers = [("mcp-session-id", session.as_str())];
                    let mut calls = 0;
                    while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                        let body = json!({"jsonrpc": "2.0", "id": calls, "method": "tools/call",
                            "params": {"name": "steady_add", "arguments": {"a": number, "b": calls}}});
                        let text = hub.program.post(&headers, &body.to_string()).text();
                        let sum = (number + calls).to_string();
                        assert!(text.contains(&format!(r#""sum":{sum}.0"#)), "{text}");
                        calls += 1;
                    }
                    calls
                })
            })
            .collect();
        let mut processes = 0;
        for change in 1..=CHANGES {
            reload(&hub, &changed(change, &mark));
            processes += processes_with(&mark);
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(processes > 0, "no server was ever a process");
        let calls = clients.into_iter().map(|client| client.join().unwrap());
        calls.sum::<usize>()
    });
    assert!(calls >= CLIENTS, "{calls} calls");
    // Nothing of the earlier configurations is left.
    hub.until("the last server is up", |hub| {
        hub.is_ready(&format!("other{CHANGES}"))
    });
    assert_eq!(hub.states().len(), 2);
    let names = hub.tool_names();
    let is_stale =
        |name: &String| name.starts_with("other") && !name.starts_with(&format!("other{CHANGES}_"));
    assert!(!names.iter().any(is_stale), "{names:?}");
    until("no process is left", || processes_with(&mark) == 0);
}
