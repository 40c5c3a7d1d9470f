//! Requests of the server, and the clients that answer them.

use mcp_proxy_core::MultiplexerError;

use super::{CANCEL_1, Conversation, Multiplexer, message, text};

#[test]
fn a_server_request_is_answered_by_the_client_that_was_asked() {
    let mut multiplexer = Multiplexer::default();
    let request =
        r#"{"id":"s","method":"sampling/createMessage","params":{"_meta":{"progressToken":"s"}}}"#;
    assert_eq!(multiplexer.receive(request), format!("one< {request}"));
    let asked = |number: u32| {
        format!(
            r#"{{"id":{number},"method":"sampling/createMessage","params":{{"_meta":{{"progressToken":{number}}}}}}}"#
        )
    };
    assert_eq!(multiplexer.ask("ann", request).unwrap(), asked(1));
    assert_eq!(multiplexer.ask("ben", request).unwrap(), asked(2));
    // Neither an answer nor progress can come from another client.
    let progress =
        r#"{"method":"notifications/progress","params":{"progressToken":1,"progress":5}}"#;
    let unknown = Err(MultiplexerError::UnknownRequest);
    assert_eq!(multiplexer.send("ben", progress), unknown);
    assert_eq!(multiplexer.send("ben", r#"{"id":1,"result":{}}"#), unknown);
    assert_eq!(
        multiplexer.send("ann", progress).unwrap(),
        r#"{"method":"notifications/progress","params":{"progressToken":"s","progress":5}}"#
    );
    assert_eq!(
        multiplexer.send("ann", r#"{"id":1,"result":{}}"#).unwrap(),
        r#"{"id":"s","result":{}}"#
    );
    assert_eq!(multiplexer.send("ann", r#"{"id":1,"result":{}}"#), unknown);
    assert_eq!(multiplexer.send("ann", progress), unknown);
    let refusal = message(r#"{"id":2,"error":{"code":-1,"message":"no"}}"#);
    let answer = multiplexer.answer_from_client(&"ben", &refusal).unwrap();
    assert_eq!(
        text(&answer),
        r#"{"id":"s","error":{"code":-1,"message":"no"}}"#
    );
}

#[test]
fn a_server_cancels_its_own_request() {
    let mut multiplexer = Multiplexer::default();
    let listen = r#"{"id":"L","method":"subscriptions/listen"}"#;
    multiplexer.send("ben", listen).unwrap();
    multiplexer
        .ask("ann", r#"{"id":5,"method":"roots/list"}"#)
        .unwrap();
    let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":5}}"#;
    assert_eq!(multiplexer.receive(cancel), format!("ann< {CANCEL_1}"));
    assert_eq!(multiplexer.receive(cancel), "nobody");
    assert!(multiplexer.send("ann", r#"{"id":1,"result":{}}"#).is_err());
    // A server that asks is a legacy one: it does not mean the request that a client has open under its number 1.
    assert_eq!(multiplexer.receive(CANCEL_1), "nobody");
    assert!(multiplexer.is_open(&"ben"));
}

#[test]
fn several_servers_ask_one_client_under_ids_of_their_own() {
    let mut files = Multiplexer::default().with_asked_prefix("files");
    let mut mail = Multiplexer::default().with_asked_prefix("mail \"1\"");
    let request = r#"{"id":1,"method":"roots/list"}"#;
    assert_eq!(
        files.ask("ann", request).unwrap(),
        r#"{"id":"files-1","method":"roots/list"}"#
    );
    assert_eq!(
        mail.ask("ann", request).unwrap(),
        r#"{"id":"mail \"1\"-1","method":"roots/list"}"#
    );
    let unknown = Err(MultiplexerError::UnknownRequest);
    for foreign in ["1", "\"1\"", "\"files-\"", "\"file-1\"", "\"mail-1\""] {
        let answer = format!(r#"{{"id":{foreign},"result":{{}}}}"#);
        assert_eq!(files.send("ann", &answer), unknown);
        assert_eq!(mail.send("ann", &answer), unknown);
    }
    let answer = r#"{"id":"mail \u00221\u0022-1","result":{}}"#;
    assert_eq!(files.send("ann", answer), unknown);
    assert_eq!(mail.send("ann", answer).unwrap(), r#"{"id":1,"result":{}}"#);
}
