//! `subscriptions/listen` of modern clients.

use std::time::Duration;

use insta::assert_snapshot;
use mcp_proxy_hub::NewServer;

use crate::transcript::{Transcript, server, settings};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn listen(id: u32, notifications: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"notifications":{{{notifications}}},{META}}}}}"#
    )
}

fn updated(uri: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}"}}}}"#
    )
}

/// A legacy server with these capabilities for two resources, and a client.
fn with_resources(capabilities: &str) -> Transcript {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    open(&mut hub, 1, capabilities);
    hub.client();
    hub.take();
    hub
}

fn open(hub: &mut Transcript, number: usize, capabilities: &str) {
    hub.server_opens(number);
    hub.server_says(number, &format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{"resources":{capabilities}}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#));
    hub.server_says(number, r#"{"jsonrpc":"2.0","id":2,"result":{"resources":[{"uri":"note://1","name":"n"},{"uri":"note://2","name":"m"}]}}"#);
    hub.server_says(
        number,
        r#"{"jsonrpc":"2.0","id":3,"result":{"resourceTemplates":[]}}"#,
    );
}

const SUBSCRIBE: &str = r#"{"subscribe":true}"#;
const BOTH: &str = r#""toolsListChanged":true,"resourceSubscriptions":["note://a/1","note://a/2"]"#;
const FIRST: &str = r#""resourceSubscriptions":["note://a/1"]"#;

#[test]
fn a_legacy_server_is_waited_for_and_what_it_refuses_is_left_out() {
    let mut hub = with_resources(SUBSCRIBE);
    hub.client_says(1, &listen(1, BOTH));
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
    // Nothing is told before the acknowledgement.
    hub.server_says(1, &updated("note://1"));
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"no"}}"#,
    );
    hub.server_says(1, &updated("note://1"));
    hub.server_says(1, &updated("note://2"));
    assert_snapshot!(hub.take());
}

#[test]
fn a_server_without_subscriptions_is_not_waited_for() {
    let mut hub = with_resources("{}");
    hub.client_says(1, &listen(1, FIRST));
    assert_snapshot!(hub.take());
}

#[test]
fn a_server_that_ends_or_does_not_answer_is_left_out() {
    let mut hub = with_resources(SUBSCRIBE);
    hub.client_says(1, &listen(1, FIRST));
    hub.wait(Duration::from_secs(20));
    // It agrees too late.
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
    hub.client_says(1, &listen(2, FIRST));
    hub.server_ends(1, "gone");
    // It is started for the next one.
    hub.client_says(1, &listen(3, FIRST));
    open(&mut hub, 1, SUBSCRIBE);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
    assert_snapshot!(hub.take());
}

#[test]
fn several_listen_requests_are_open_side_by_side() {
    let mut hub = with_resources(SUBSCRIBE);
    hub.client_says(1, &listen(1, BOTH));
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":5,"result":{}}"#);
    hub.client_says(1, &listen(2, r#""resourcesListChanged":true"#));
    hub.client_says(1, &listen(3, FIRST));
    hub.server_says(1, &updated("note://1"));
    hub.server_says(1, &updated("note://2"));
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#,
    );
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":6,"result":{"resources":[{"uri":"note://1","name":"n"}]}}"#,
    );
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":7,"result":{"resourceTemplates":[]}}"#,
    );
    // The third one still hears of the first resource.
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    );
    hub.server_says(1, &updated("note://1"));
    assert_snapshot!(hub.take());
}

#[test]
fn listen_requests_outlive_a_new_configuration() {
    let mut hub = Transcript::new(settings(), vec![server("0"), server("a")]);
    open(&mut hub, 2, SUBSCRIBE);
    hub.client();
    hub.client_says(1, &listen(1, FIRST));
    hub.server_says(2, r#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
    hub.take();
    // The server has another place now.
    hub.reconfigure(settings(), vec![NewServer::Unchanged("a".into())]);
    hub.server_says(2, &updated("note://1"));
    assert_snapshot!(hub.take());
}
