//! A cancelled call is over at once: servers do not answer what was cancelled.

use std::time::Duration;

use insta::assert_snapshot;
use mcp_proxy_hub::ServerSettings;

use crate::transcript::{ECHO, Transcript, call, server, settings};

const CANCEL: &str = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"enough"}}"#;

#[test]
fn a_cancelled_call_is_over_and_its_late_answer_is_dropped() {
    let mut hub = Transcript::ready(ECHO);
    hub.client();
    hub.initialize(2, r#"{"sampling":{}}"#);
    hub.take();
    hub.client_says(1, &call(1, "a_echo"));
    hub.client_says(1, CANCEL);
    // Only the second client has a call open now, so the question is for that client.
    hub.client_says(2, &call(1, "a_echo"));
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}"#,
    );
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":3,"result":{"content":[]}}"#);
    hub.client_says(1, &call(1, "a_echo"));
    assert_snapshot!(hub.take());
}

#[test]
fn a_cancelled_call_does_not_keep_an_idle_server_running() {
    let idle = ServerSettings {
        idle_stop: Some(Duration::from_secs(30)),
        call_timeout: None,
        ..server("a")
    };
    let mut hub = Transcript::new(settings(), vec![idle]);
    hub.start_server(1, ECHO);
    hub.client();
    hub.initialize(1, "{}");
    hub.client_says(1, &call(1, "a_echo"));
    hub.client_says(1, CANCEL);
    hub.take();
    hub.wait(Duration::from_secs(30));
    assert_eq!(hub.status(), ["a Stopped [1, 0, 0, 0] stale=false"]);
}

#[test]
fn a_cancelled_batch_is_cancelled_at_the_servers_with_its_reason() {
    let mut hub = Transcript::ready(ECHO);
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"proxy","arguments":{"action":"batch","operations":[{"action":"call","type":"tool","path":"a_echo"},{"action":"call","type":"tool","path":"a_echo"}]}}}"#);
    hub.client_says(1, CANCEL);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":3,"result":{"content":[]}}"#);
    assert_snapshot!(hub.take());
}
