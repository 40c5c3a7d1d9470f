//! Which clients hear the log messages of a server that they share.

use mcp_proxy_hub::config::SharingScope;

use crate::transcript::{ECHO, Transcript, call, server, settings};

const LOG: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;

/// A legacy server that has started, and clients that have said hello.
fn shared_by(clients: usize) -> Transcript {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    hub.start_server(1, ECHO);
    for client in 1..=clients {
        hub.client();
        hub.initialize(client, "{}");
    }
    hub.take();
    hub
}

/// The clients that hear a log message which the server sends now.
fn who_hears(hub: &mut Transcript) -> Vec<String> {
    hub.take();
    hub.server_says(1, LOG);
    let text = hub.take();
    let lines = text.lines().filter(|line| line.contains("< "));
    lines.map(|line| line[..2].to_owned()).collect()
}

#[test]
fn a9_log_messages_of_a_shared_server_reach_clients_with_an_open_call_only() {
    let mut hub = shared_by(3);
    hub.client_says(
        2,
        r#"{"jsonrpc":"2.0","id":5,"method":"logging/setLevel","params":{"level":"debug"}}"#,
    );
    hub.client_says(1, &call(1, "a_echo"));
    assert_eq!(who_hears(&mut hub), ["C1"]);
    hub.client_says(3, &call(1, "a_echo"));
    assert_eq!(who_hears(&mut hub), ["C1", "C3"]);
    hub.client_leaves(1);
    assert_eq!(who_hears(&mut hub), ["C3"]);
    hub.client_leaves(3);
    // It may be about what a client did that has left.
    assert_eq!(who_hears(&mut hub), [""; 0]);
}

#[test]
fn a9_the_only_client_of_a_server_hears_it_between_its_calls() {
    let mut hub = shared_by(2);
    assert_eq!(who_hears(&mut hub), [""; 0]);
    hub.client_says(2, &call(1, "a_echo"));
    hub.client_says(
        2,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    );
    assert_eq!(who_hears(&mut hub), ["C2"]);
}

#[test]
fn a9_a_client_with_a_server_of_its_own_hears_everything() {
    let mut own = server("a");
    own.scope = SharingScope::Session;
    let mut hub = Transcript::new(settings(), vec![own]);
    hub.start_server(1, ECHO);
    for client in 1..=2 {
        hub.client();
        hub.initialize(client, "{}");
    }
    hub.client_says(2, &call(1, "a_echo"));
    hub.server_opens(1);
    assert_eq!(who_hears(&mut hub), ["C2"]);
}
