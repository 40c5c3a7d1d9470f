//! How much is open and remembered at once.

use mcp_proxy_core::{MultiplexerError, MultiplexerLimits, RequestMultiplexer};

use super::{Conversation, Multiplexer, message};

fn limited(open: usize, open_per_client: usize) -> Multiplexer {
    RequestMultiplexer::new(MultiplexerLimits {
        open,
        open_per_client,
        asked: open,
        asked_per_client: open_per_client,
    })
}

#[test]
fn one_client_cannot_fill_the_table_of_the_others() {
    let mut multiplexer = limited(3, 2);
    let request = r#"{"id":1,"method":"m"}"#;
    multiplexer.send("ann", request).unwrap();
    multiplexer.send("ann", request).unwrap();
    let client_limit = Err(MultiplexerError::ClientLimit(2));
    assert_eq!(multiplexer.send("ann", request), client_limit);
    multiplexer.send("ben", request).unwrap();
    let total_limit = Err(MultiplexerError::TotalLimit(3));
    assert_eq!(multiplexer.send("cid", request), total_limit);
    assert_eq!(multiplexer.open_count(), 3);
    multiplexer.receive(r#"{"id":1,"result":{}}"#);
    multiplexer.send("cid", request).unwrap();
    multiplexer.told_on_close("ben");
    multiplexer.send("ann", request).unwrap();
    assert_eq!(multiplexer.open_count(), 3);
}

#[test]
fn cancelled_requests_that_are_never_answered_make_room() {
    let mut multiplexer = limited(3, 2);
    for id in 1..=100 {
        let request = format!(r#"{{"id":{id},"method":"m"}}"#);
        let cancel =
            format!(r#"{{"method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
        for client in ["ann", "ben"] {
            multiplexer.send(client, &request).unwrap();
            multiplexer.send(client, &cancel).unwrap();
        }
    }
    assert_eq!(multiplexer.open_count(), 3);
    assert_eq!(multiplexer.receive(r#"{"id":1,"result":{}}"#), "nobody");
    assert_eq!(
        multiplexer.receive(r#"{"id":200,"result":{}}"#),
        r#"ben< {"id":100,"result":{}}"#
    );
    assert!(multiplexer.told_on_close("ann").is_empty());
    assert!(multiplexer.told_on_close("ben").is_empty());
    assert_eq!(multiplexer.open_count(), 0);
}

#[test]
fn a_client_that_never_answers_is_not_asked_without_end() {
    let mut multiplexer = limited(3, 2);
    let request = r#"{"id":1,"method":"roots/list"}"#;
    multiplexer.ask("ann", request).unwrap();
    multiplexer.ask("ann", request).unwrap();
    let client_limit = Err(MultiplexerError::ClientLimit(2));
    assert_eq!(multiplexer.ask("ann", request), client_limit);
    multiplexer.ask("ben", request).unwrap();
    let total_limit = Err(MultiplexerError::TotalLimit(3));
    assert_eq!(multiplexer.ask("ben", request), total_limit);
    multiplexer.send("ann", r#"{"id":2,"result":{}}"#).unwrap();
    multiplexer.ask("ben", request).unwrap();
    // The server's requests take no room from those of clients.
    assert_eq!(multiplexer.open_count(), 0);
    assert!(!multiplexer.is_open(&"ann"));
}

#[test]
fn the_ids_of_closed_clients_are_not_remembered_without_end() {
    let mut multiplexer = Multiplexer::default();
    for id in 0..200 {
        let request = format!(r#"{{"id":{id},"method":"m"}}"#);
        multiplexer.send("ann", &request).unwrap();
    }
    assert_eq!(multiplexer.told_on_close("ann").len(), 200);
    let mut may_cancel = |id: u32| {
        let request = format!(r#"{{"id":{id},"method":"m"}}"#);
        multiplexer.send("ben", &request).unwrap();
        let cancel =
            format!(r#"{{"method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
        multiplexer.cancel_any(&message(&cancel)).is_ok()
    };
    // The last 64 are remembered: a cancel of one of them is taken for the closed client's.
    assert!(may_cancel(0) && may_cancel(135));
    assert!(!may_cancel(136) && !may_cancel(199));
}
