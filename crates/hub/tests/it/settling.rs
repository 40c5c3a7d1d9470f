//! Who waits for servers that are starting, what is told about them, and how they are counted.

use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use mcp_proxy_hub::{AllowedNames, ServerNaming, ServerSettings};

use crate::transcript::{ECHO, Transcript, call, server, settings};

const MODERN_META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"m","version":"1"}}"#;

fn modern(id: u32, method: &str, params: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{MODERN_META}}}}}"#
    )
}

/// A server that works, and one that never answers.
fn one_hangs() -> Transcript {
    let hung = ServerSettings {
        start_timeout: Duration::from_secs(60),
        ..server("hung")
    };
    let mut hub = Transcript::new(settings(), vec![server("a"), hung]);
    hub.start_server(1, ECHO);
    hub.take();
    hub
}

#[test]
fn only_requests_soon_after_the_start_of_a_server_wait_for_it() {
    let mut hub = one_hangs();
    hub.client();
    hub.client_says(1, &modern(1, "tools/list", ""));
    hub.wait(Duration::from_secs(10));
    // A modern client is a new one with each request.
    hub.client();
    hub.client_says(2, &modern(1, "tools/list", ""));
    hub.client();
    hub.initialize(3, "{}");
    assert_snapshot!(hub.take());
}

#[test]
fn a_call_through_the_proxy_tool_does_not_wait_for_other_servers() {
    let mut hub = one_hangs();
    hub.client();
    let arguments = |arguments: &str| format!(r#""name":"proxy","arguments":{{{arguments}}},"#);
    let one = r#""action":"call","type":"tool","path":"a_echo""#;
    hub.client_says(1, &modern(1, "tools/call", &arguments(one)));
    let batch = format!(r#""action":"batch","operations":[{{{one}}}]"#);
    hub.client_says(1, &modern(2, "tools/call", &arguments(&batch)));
    let list = r#""action":"list","type":"tool""#;
    hub.client_says(1, &modern(3, "tools/call", &arguments(list)));
    assert_snapshot!(hub.take());
}

#[test]
fn what_is_wrong_with_a_listing_is_told_once() {
    let allow = |name: &str| {
        let settings = server(name);
        ServerSettings {
            naming: Arc::new(ServerNaming {
                prefix: None,
                tools: AllowedNames {
                    allow: None,
                    deny: vec!["hidden".to_owned()],
                    ..AllowedNames::default()
                },
                ..ServerNaming::clone(&settings.naming)
            }),
            ..settings
        }
    };
    let mut hub = Transcript::new(settings(), vec![allow("a"), allow("b")]);
    let odd = r#"[{"name":""},{"name":"x"},{"name":"x"},5,{"name":"hidden"}]"#;
    hub.start_server(2, odd);
    hub.start_server(1, r#"[{"name":"x"},{"name":"y"}]"#);
    assert_snapshot!(hub.take());
    assert_eq!(hub.status()[1], "b Ready [1, 0, 0, 0] stale=false");
}

#[test]
fn a_server_with_subscribers_is_not_idle() {
    let idle = ServerSettings {
        idle_stop: Some(Duration::from_secs(30)),
        ..server("a")
    };
    let mut hub = Transcript::new(settings(), vec![idle]);
    hub.server_opens(1);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"s","version":"1"}}}"#);
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":2,"result":{"resources":[{"uri":"note://1","name":"n"}]}}"#,
    );
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":3,"result":{"resourceTemplates":[]}}"#,
    );
    hub.client();
    hub.initialize(1, "{}");
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"note://a/1"}}"#,
    );
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
    hub.wait(Duration::from_secs(30));
    hub.wait(Duration::from_secs(30));
    assert_eq!(hub.status(), ["a Ready [0, 1, 0, 0] stale=false"]);
    hub.client_leaves(1);
    hub.wait(Duration::from_secs(30));
    assert_eq!(hub.status(), ["a Stopped [0, 1, 0, 0] stale=false"]);
}

#[test]
fn every_crash_is_told_and_every_restart_counted() {
    let mut hub = Transcript::ready(
        r#"[{"name":"look","inputSchema":{},"annotations":{"readOnlyHint":true}}]"#,
    );
    // The call finds out that the server is dead, and starts it again before its end is reported.
    hub.client_says(1, &call(1, "a_look"));
    hub.server_crashes_with_calls_open(1, "killed by signal 9");
    assert_eq!(hub.restarts(), 1);
    hub.start_server(1, ECHO);
    hub.server_ends(1, "killed by signal 9");
    hub.client_says(1, &call(2, "a_echo"));
    assert_eq!(hub.restarts(), 2);
    // A server that never comes up says the same each time.
    hub.server_ends(1, "killed by signal 9");
    assert_snapshot!(hub.take());
}
