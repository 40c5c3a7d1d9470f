//! What clients want of servers beyond single calls: log levels and subscriptions.

use std::time::Duration;

use insta::assert_snapshot;
use mcp_proxy_hub::config::SharingScope;

use crate::transcript::{Transcript, server, settings};

/// A legacy server with resources and log messages, and clients that have said hello.
fn with_resources(clients: usize) -> Transcript {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    open_with_resources(&mut hub);
    for client in 1..=clients {
        hub.client();
        hub.initialize(client, "{}");
    }
    hub.take();
    hub
}

fn open_with_resources(hub: &mut Transcript) {
    hub.server_opens(1);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true},"logging":{}},"serverInfo":{"name":"s","version":"1"}}}"#);
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":2,"result":{"resources":[{"uri":"note://1","name":"n"}]}}"#,
    );
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":3,"result":{"resourceTemplates":[]}}"#,
    );
}

fn set_level(id: u32, level: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"logging/setLevel","params":{{"level":"{level}"}}}}"#
    )
}

#[test]
fn a_log_level_is_told_only_when_it_changes() {
    let mut hub = with_resources(3);
    hub.client_says(1, &set_level(1, "info"));
    hub.client_says(2, &set_level(1, "warning"));
    hub.client_leaves(3);
    hub.client_leaves(1);
    // Nobody wants a level any more: the server keeps the last one.
    hub.client_leaves(2);
    assert_snapshot!(hub.take());
}

fn subscribe(id: u32) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/subscribe","params":{{"uri":"note://a/1"}}}}"#
    )
}

const UPDATED: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"note://1"}}"#;

#[test]
fn a_refused_subscription_is_not_remembered() {
    let mut hub = with_resources(3);
    hub.client_says(1, &subscribe(1));
    // The server has not answered yet, so the second client asks for itself.
    hub.client_says(2, &subscribe(1));
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"no"}}"#,
    );
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"no"}}"#,
    );
    hub.client_says(3, &subscribe(1));
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":6,"result":{}}"#);
    hub.client_says(1, &subscribe(2));
    hub.server_says(1, UPDATED);
    assert_snapshot!(hub.take());
}

#[test]
fn a_subscription_that_is_given_up_halfway_is_ended() {
    let mut hub = with_resources(2);
    hub.client_says(1, &subscribe(1));
    hub.client_says(2, &subscribe(1));
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
    // The other client still waits, so the server is not told to stop.
    hub.client_leaves(1);
    hub.client_leaves(2);
    assert_snapshot!(hub.take());
}

#[test]
fn a_server_may_refuse_a_subscription_after_a_restart() {
    let mut hub = with_resources(2);
    hub.client_says(1, &subscribe(1));
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
    hub.server_ends(1, "gone");
    hub.wait(Duration::from_secs(1));
    open_with_resources(&mut hub);
    hub.take();
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"no"}}"#,
    );
    hub.client_says(2, &subscribe(1));
    assert_snapshot!(hub.take());
}

#[test]
fn subscriptions_of_a_session_go_to_its_own_server() {
    let mut own = server("a");
    own.scope = SharingScope::Session;
    let mut hub = Transcript::new(settings(), vec![own]);
    open_with_resources(&mut hub);
    for client in 1..=2 {
        hub.client();
        hub.initialize(client, "{}");
    }
    hub.take();
    hub.client_says(1, &subscribe(1));
    open_with_resources(&mut hub);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
    hub.server_says(1, UPDATED);
    hub.server_ends(1, "gone");
    // The next request of this client starts its server, which is told again.
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"note://a/1"}}"#,
    );
    open_with_resources(&mut hub);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
    hub.server_says(1, UPDATED);
    // The second client is asked for at a server of its own.
    hub.client_says(2, &subscribe(1));
    hub.client_leaves(1);
    assert_snapshot!(hub.take());
}

/// A server that speaks only 2026-07-28.
fn modern_server(hub: &mut Transcript) {
    hub.server_opens(1);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"modern only","data":{"supported":["2026-07-28"]}}}"#);
    open_modern(hub);
}

fn open_modern(hub: &mut Transcript) {
    hub.server_opens(1);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{"subscribe":true}},"resultType":"complete"}}"#);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}],"resultType":"complete"}}"#);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":4,"result":{"resources":[{"uri":"note://1","name":"n"},{"uri":"note://2","name":"m"}],"resultType":"complete"}}"#);
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":5,"result":{"resourceTemplates":[],"resultType":"complete"}}"#,
    );
}

fn acknowledged(listen: u32, resources: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{{"resourceSubscriptions":[{resources}]}},"_meta":{{"io.modelcontextprotocol/subscriptionId":{listen}}}}}}}"#
    )
}

fn error(id: u32, code: i32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no"}}}}"#)
}

fn updated_on(listen: u32) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"note://1","_meta":{{"io.modelcontextprotocol/subscriptionId":{listen}}}}}}}"#
    )
}

#[test]
fn a_modern_server_is_told_the_level_with_each_request() {
    let mut hub = with_modern_server(2);
    hub.client_says(1, &set_level(1, "warning"));
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a_echo","arguments":{}}}"#);
    let log = |level: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":"x"}}}}"#
        )
    };
    hub.server_says(1, &log("info"));
    hub.server_says(1, &log("error"));
    assert_snapshot!(hub.take());
}

#[test]
fn a_legacy_client_subscribes_at_a_modern_server() {
    let mut hub = with_modern_server(2);
    hub.client_says(1, &subscribe(1));
    // The old listen request is open until the new one is acknowledged.
    hub.server_says(1, &acknowledged(2, ""));
    hub.server_says(1, &acknowledged(6, r#""note://1""#));
    hub.server_says(1, &updated_on(6));
    hub.client_says(2, &subscribe(1));
    hub.client_says(
        2,
        r#"{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"note://a/2"}}"#,
    );
    hub.server_says(1, &updated_on(6));
    hub.server_says(1, &acknowledged(7, r#""note://1","note://2""#));
    // What comes on the request that was cancelled came on the new one as well.
    hub.server_says(1, &updated_on(6));
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":3,"method":"resources/unsubscribe","params":{"uri":"note://a/1"}}"#);
    hub.server_says(1, &updated_on(7));
    hub.server_ends(1, "gone");
    hub.wait(Duration::from_secs(1));
    open_modern(&mut hub);
    hub.client_leaves(2);
    assert_snapshot!(hub.take());
}

#[test]
fn a_modern_client_listens_to_a_modern_server() {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    modern_server(&mut hub);
    hub.client();
    hub.take();
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["note://a/1","note://nobody/1"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#);
    hub.server_says(1, &acknowledged(6, r#""note://1""#));
    hub.server_says(1, &updated_on(6));
    hub.client_leaves(1);
    assert_snapshot!(hub.take());
}

/// A modern server without a client yet, and legacy clients that have said hello.
fn with_modern_server(clients: usize) -> Transcript {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    modern_server(&mut hub);
    for client in 1..=clients {
        hub.client();
        hub.initialize(client, "{}");
    }
    hub.take();
    hub
}

#[test]
fn a_modern_server_that_tells_nothing_is_noticed() {
    let mut hub = with_modern_server(1);
    hub.server_says(1, &error(2, -32601));
    // It is not asked again until somebody subscribes.
    hub.wait(Duration::from_secs(100));
    assert_snapshot!(hub.take());
    assert_eq!(
        hub.last_error().as_deref(),
        Some("it refused to tell about its changes: no")
    );
}

#[test]
fn a_modern_server_that_never_promised_changes_may_refuse_to_tell_them() {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    hub.server_opens(1);
    hub.server_says(1, &error(1, -32022));
    hub.server_opens(1);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}}"#);
    hub.take();
    hub.server_says(1, &error(2, -32601));
    assert_snapshot!(hub.take());
    assert_eq!(hub.last_error(), None);
}

#[test]
fn a_legacy_client_is_told_that_a_modern_server_refused() {
    let mut hub = with_modern_server(2);
    hub.server_says(1, &acknowledged(2, ""));
    hub.client_says(1, &subscribe(1));
    hub.client_says(2, &subscribe(1));
    hub.server_says(1, &error(6, -32602));
    // The first listen request is still open. The next one leaves out what it was asked for.
    hub.client_says(1, &subscribe(2));
    hub.server_says(1, &acknowledged(7, ""));
    hub.client_says(1, &subscribe(3));
    hub.server_says(1, &acknowledged(8, r#""note://1""#));
    hub.client_says(2, &subscribe(2));
    assert_snapshot!(hub.take());
}

#[test]
fn a_subscription_at_a_modern_server_that_is_given_up_is_not_remembered() {
    let mut hub = with_modern_server(2);
    hub.client_says(1, &subscribe(1));
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    );
    hub.client_says(2, &subscribe(1));
    hub.server_ends(1, "gone");
    hub.wait(Duration::from_secs(1));
    open_modern(&mut hub);
    assert_snapshot!(hub.take());
}

#[test]
fn a_listen_request_that_a_modern_server_ends_is_made_again() {
    let ended =
        |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete"}}}}"#);
    let mut hub = with_modern_server(1);
    hub.client_says(1, &subscribe(1));
    hub.server_says(1, &acknowledged(6, r#""note://1""#));
    hub.server_says(1, &ended(6));
    hub.wait(Duration::from_millis(900));
    hub.wait(Duration::from_millis(100));
    // Each time it waits longer.
    hub.server_says(1, &ended(7));
    hub.wait(Duration::from_secs(1));
    hub.wait(Duration::from_secs(1));
    // What has changed in between is read again.
    hub.server_says(1, &acknowledged(8, r#""note://1""#));
    hub.server_says(1, &updated_on(8));
    assert_snapshot!(hub.take());
}
