//! Servers that answer, but cannot say what they offer.

use std::time::Duration;

use insta::assert_snapshot;
use mcp_proxy_hub::ServerChange;

use crate::transcript::{ECHO, Transcript, call};

const OPENING: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"s","version":"1"}}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#;

/// A server that was listed, and was opened again after a restart.
fn restarted() -> Transcript {
    let mut hub = Transcript::ready(ECHO);
    hub.change(ServerChange::Restart);
    hub.server_opens(1);
    hub.server_says(1, OPENING);
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":3,"result":{"resources":[{"uri":"note://1","name":"n"}]}}"#,
    );
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"unknown method"}}"#,
    );
    hub.take();
    hub
}

#[test]
fn a_list_that_fails_leaves_the_last_one() {
    let mut hub = restarted();
    let saved = hub.saved();
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"db locked"}}"#,
    );
    hub.client_says(1, LIST);
    assert_eq!(hub.status(), ["a Ready [1, 1, 0, 0] stale=true"]);
    assert!(hub.last_error().unwrap().contains("db locked"));
    assert_eq!(hub.saved(), saved);
    // It is asked again after a while, and the same failure is not told twice.
    hub.wait(Duration::from_secs(10));
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"db locked"}}"#,
    );
    hub.wait(Duration::from_secs(10));
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":6,"result":{"tools":[{"name":"new","inputSchema":{}}]}}"#,
    );
    assert_snapshot!(hub.take());
    assert_eq!(hub.status(), ["a Ready [1, 1, 0, 0] stale=false"]);
    assert_eq!(hub.saved(), saved + 1);
}

#[test]
fn a_list_that_does_not_come_leaves_the_last_one() {
    let mut hub = restarted();
    let saved = hub.saved();
    hub.wait(Duration::from_secs(10));
    hub.client_says(1, LIST);
    // It is too late for this answer.
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#);
    assert_snapshot!(hub.take());
    assert_eq!(hub.status(), ["a Ready [1, 1, 0, 0] stale=true"]);
    assert_eq!(hub.saved(), saved);
}

#[test]
fn what_a_server_could_never_list_can_still_be_called() {
    let mut hub = Transcript::new(
        crate::transcript::settings(),
        vec![crate::transcript::server("a")],
    );
    hub.server_opens(1);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#);
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"db locked"}}"#,
    );
    hub.client();
    hub.initialize(1, "{}");
    hub.take();
    hub.client_says(1, &call(1, "a_echo"));
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"proxy","arguments":{"action":"list","type":"tool"}}}"#);
    assert_snapshot!(hub.take());
    assert_eq!(hub.saved(), 0);
}
