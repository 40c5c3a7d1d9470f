//! Servers that ask for roots before there is a client to ask.

use std::time::Duration;

use insta::assert_snapshot;
use mcp_proxy_hub::ServerSettings;
use mcp_proxy_hub::config::StartMode;

use crate::transcript::{ECHO, Transcript, call, server, settings};

const QUESTION: &str = r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const ROOTS: &str = r#"{"roots":{"listChanged":true}}"#;

/// A server that asks for roots as soon as it is open, before it has listed anything.
fn asking_server(hub: &mut Transcript) {
    hub.server_opens(1);
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#,
    );
    hub.take();
    hub.server_says(1, QUESTION);
    hub.server_says(
        1,
        &format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"tools":{ECHO}}}}}"#),
    );
}

#[test]
fn a_question_for_roots_waits_until_the_client_has_said_hello() {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    hub.client();
    hub.initialize(1, ROOTS);
    asking_server(&mut hub);
    hub.client_says(1, INITIALIZED);
    hub.client_says(1, &call(1, "a_echo"));
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":"s1-1","result":{"roots":[]}}"#);
    hub.wait(Duration::from_millis(50));
    assert_snapshot!(hub.take());
}

#[test]
fn a_question_for_roots_waits_for_the_first_client() {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    asking_server(&mut hub);
    hub.client();
    hub.initialize(1, ROOTS);
    hub.client_says(1, INITIALIZED);
    // The server works in the folders of the first client, so the second one gets its own.
    hub.client();
    hub.initialize(2, ROOTS);
    hub.client_says(2, INITIALIZED);
    hub.client_says(2, &call(1, "a_echo"));
    assert_snapshot!(hub.take());
}

#[test]
fn a_server_that_asked_in_vain_is_told_when_a_client_has_roots() {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    asking_server(&mut hub);
    hub.wait(Duration::from_secs(5));
    hub.client();
    hub.initialize(1, "{}");
    hub.client_says(1, INITIALIZED);
    hub.client_leaves(1);
    hub.client();
    hub.initialize(2, ROOTS);
    hub.client_says(2, INITIALIZED);
    hub.server_says(1, QUESTION);
    assert_snapshot!(hub.take());
}

#[test]
fn a_client_without_roots_is_not_waited_for() {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    hub.client();
    hub.initialize(1, "{}");
    asking_server(&mut hub);
    hub.client_says(1, INITIALIZED);
    assert_snapshot!(hub.take());
}

#[test]
fn a_server_that_has_become_one_clients_is_listed_all_the_same() {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    hub.client();
    hub.initialize(1, ROOTS);
    hub.server_opens(1);
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#,
    );
    // It lists its tools when it knows the roots, and asks for them twice.
    hub.server_says(1, QUESTION);
    hub.server_says(1, &QUESTION.replace("\"q\"", "\"r\""));
    hub.wait(Duration::from_millis(900));
    hub.take();
    hub.client_says(1, INITIALIZED);
    hub.server_says(
        1,
        &format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"tools":{ECHO}}}}}"#),
    );
    assert_snapshot!(hub.take());
    assert_eq!(hub.status(), ["a Ready [1, 0, 0, 0] stale=false"]);
}

/// The call of a client with roots has started a server, which is open now.
fn started_by_a_call() -> Transcript {
    let lazy = ServerSettings {
        start: StartMode::Lazy,
        ..server("a")
    };
    let mut hub = Transcript::new(settings(), vec![lazy]);
    hub.client();
    hub.initialize(1, ROOTS);
    hub.client();
    hub.initialize(2, ROOTS);
    hub.client_says(1, &call(1, "a_echo"));
    hub.server_opens(1);
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#,
    );
    hub.take();
    hub
}

#[test]
fn a_call_that_starts_a_server_waits_until_that_has_learned_the_roots() {
    let mut hub = started_by_a_call();
    hub.server_says(1, QUESTION);
    hub.server_says(
        1,
        &format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"tools":{ECHO}}}}}"#),
    );
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":"s4-1","result":{"roots":[]}}"#);
    hub.wait(Duration::from_millis(50));
    assert_snapshot!(hub.take());
}

#[test]
fn a_call_does_not_wait_for_a_question_that_does_not_come() {
    let mut hub = started_by_a_call();
    hub.server_says(
        1,
        &format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"tools":{ECHO}}}}}"#),
    );
    hub.client_says(1, &call(2, "a_echo"));
    assert_snapshot!(hub.take());
    // Nor for lists that do not come, in the end.
    let mut hub = started_by_a_call();
    hub.wait(Duration::from_secs(1));
    hub.wait(Duration::from_secs(14));
    assert_snapshot!(hub.take());
}
