//! What clients want of servers beyond single calls: log levels, subscriptions and lists of tasks.

use insta::assert_snapshot;

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
