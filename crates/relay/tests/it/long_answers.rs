//! Answers that are too long to be collected, on their way to the client.

use crate::scenes::{two_clients, with_tab};

pub const SCREENSHOT: &str = r#"
    A> {"id":3,"method":"screenshot"}
    E< {"id":"conn-1:3","method":"screenshot"}
"#;

#[test]
fn an_answer_crosses_in_pieces_with_the_clients_own_tab() {
    let mut conversation = with_tab();
    conversation.continue_with(SCREENSHOT);
    conversation.continue_with(
        r#"
        E>[ {"jsonrpc":"2.0","id":"conn-1:3","result":{"da
        E>| ta":"picture\"","curr
        E>| entTab":{"id":99,"title":"an
        E>] other's"},"end":true}}
        A< {"jsonrpc":"2.0","id":3,"result":{"data":"picture\"","currentTab":{"id":11,"title":"a"},"end":true}}
        A> {"id":4,"method":"screenshot"}
        E< {"id":"conn-1:4"}
        E>[ {"id":"conn-1:4","result":{"currentTab":{"id":11,"title":"new
        E>] er"},"data":""},"error":"not looked at"}
        A< {"id":4,"result":{"currentTab":{"id":11,"title":"newer"}}}
        A> {"id":5,"method":"screenshot"}
        E< {"id":"conn-1:5"}
        E>[ {"id":"conn-1:5","result":{"currentTab":
        E>] null}}
        A< {"id":5,"result":{"currentTab":null}}
        "#,
    );
    let counted = conversation.relay.counters();
    assert_eq!((counted.answers, counted.late_answers), (4, 0));
}

#[test]
fn the_bytes_of_a_result_are_those_of_the_extension() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A> {"id":"\u0078","method":"screenshot"}
        E< {"id":"conn-1:x"}
        "#,
    );
    let client = conversation.socket("A");
    conversation.deaf.push(client);
    conversation.continue_with(
        r#"
        E>[ { "id" : "conn-1:x", "result" : [1.0, "\u00e9", {"currentTab": 1e2
        E>] } ] , "more": 1 }
        "#,
    );
    let output = conversation.relay.take(client, 1 << 20, conversation.now());
    let pieces: Vec<&[u8]> = output.pieces.iter().map(|piece| &piece.bytes[..]).collect();
    assert_eq!(
        String::from_utf8(pieces.concat()).unwrap(),
        r#"{"jsonrpc":"2.0","id":"\u0078","result":[1.0, "\u00e9", {"currentTab": 1e2} ]}"#
    );
}

#[test]
fn a_client_without_a_tab_is_shown_none() {
    let mut conversation = two_clients();
    conversation.continue_with(
        r#"
        B> {"id":2,"method":"listExtensions"}
        E< {"id":"conn-2:2"}
        E>[ {"id":"conn-2:2","result":{"currentTab":{"id":1
        E>] 1},"list":[]}}
        B< {"id":2,"result":{"currentTab":null,"list":[]}}
        "#,
    );
}

#[test]
fn other_messages_of_the_client_wait_for_the_end_of_the_answer() {
    let mut conversation = two_clients();
    conversation.continue_with(SCREENSHOT);
    conversation.continue_with(
        r#"
        E>[ {"id":"conn-1:3","result":{"data":"x
        A> {"id":4,"method":"list_extensions"}
        B> {"id":4,"method":"list_extensions"}
        B< {"id":4,"result":{}}
        E>] "}}
        A< {"id":3,"result":{"data":"x"}}
        A< {"id":4,"result":{}}
        "#,
    );
}

#[test]
fn an_id_is_in_use_until_its_long_answer_has_ended() {
    let mut conversation = two_clients();
    conversation.continue_with(SCREENSHOT);
    let client = conversation.socket("A");
    conversation.continue_with(
        r#"
        E>[ {"id":"conn-1:3","result":{"data":"x
        A> {"id":3,"method":"getTabs"}
        "#,
    );
    // All of the answer has come, and its client has not read the end.
    conversation.deaf.push(client);
    conversation.continue_with(
        r#"
        E>] "}}
        A> {"id":3,"method":"getTabs"}
        "#,
    );
    conversation.deaf.clear();
    conversation.continue_with(
        r#"
        A< {"id":3,"result":{"data":"x"}}
        A< {"id":3,"error":{"code":-32600}}
        A< {"id":3,"error":{"code":-32600}}
        A> {"id":3,"method":"getTabs"}
        E< {"id":"conn-1:3#1","method":"getTabs"}
        "#,
    );
}

#[test]
fn an_answer_that_nobody_waits_for_is_skipped() {
    let mut conversation = two_clients();
    conversation.continue_with(
        r#"
        E>[ {"id":"conn-1:77","result":{"data":"
        E>| not in memory
        E>] "}}
        A> {"id":3,"method":"screenshot"}
        E< {"id":"conn-1:3"}
        E> {"id":"conn-1:3","result":{}}
        A< {"id":3,"result":{}}
        "#,
    );
    assert_eq!(conversation.relay.counters().late_answers, 1);
}

#[test]
fn a_client_that_disconnects_in_the_middle_gets_the_rest() {
    let mut conversation = two_clients();
    conversation.continue_with(SCREENSHOT);
    conversation.continue_with(
        r#"
        E>[ {"id":"conn-1:3","result":{"data":"x
        A> {"id":4,"method":"disconnect"}
        E< {"method":"disconnected"}
        E>] ","currentTab":{"id":11}}}
        A< {"id":3,"result":{"data":"x","currentTab":null}}
        A< {"id":4,"result":{"disconnected":true}}
        "#,
    );
}
