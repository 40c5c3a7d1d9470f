//! Long answers that the relay has to collect, and those that are too large for that.

use mcp_proxy_core::MemoryBudget;
use mcp_proxy_relay::{PiecePlace, RelaySettings};

use crate::long_answers::SCREENSHOT;
use crate::scenes::{two_clients, two_clients_with};
use crate::transcript::Conversation;

/// A client with a tab, and another, of a relay that takes answers of up to 200 bytes.
fn small_answers() -> Conversation {
    two_clients_with(RelaySettings {
        max_answer: 200,
        ..RelaySettings::default()
    })
}

#[test]
fn what_the_relay_has_to_read_is_collected() {
    let mut conversation = two_clients();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"createTab"}
        E< {"id":"conn-1:3"}
        E>[ {"id":"conn-1:3","result":{"tab":{"id"
        E>] :12,"title":"b"}}}
        A< {"id":3,"result":{"tab":{"id":12}}}
        A> {"id":4,"method":"screenshot","params":{"tabId":12}}
        E< {"id":"conn-1:4"}
        E>[ {"id":"conn-1:4","error":{"message":"no","stack"
        E>] :"at x"}}
        A< {"id":4,"error":{"code":-32000,"message":"no"}}
        A> {"id":5,"method":"screenshot"}
        E< {"id":"conn-1:5"}
        E>[ {"result":{"data":"the id comes la
        E>] st"},"id":"conn-1:5"}
        A< {"id":5,"result":{"data":"the id comes last"}}
        E>[ {"method":"notifications/tab_info_update","params":{"currentTab":{"id":11,"title":"
        E>] x"}}}
        A< {"method":"notifications/tab_info_update"}
        "#,
    );
}

#[test]
fn a_message_that_is_collected_and_does_not_go_on_is_forgotten() {
    let mut conversation = two_clients();
    conversation.continue_with(
        r#"
        E>[ {"method":"notifications/tab_info_update","params":{"text":"
        @ 29
        E>| more
        @ 31
        E>| too late
        E>] "}}
        A> {"id":3,"method":"getTabs"}
        E< {"id":"conn-1:3"}
        E> {"id":"conn-1:3","result":{"tabs":[{"id":11}]}}
        A< {"id":3}
        "#,
    );
}

#[test]
fn an_answer_that_is_known_to_be_too_large_fails_alone() {
    let settings = RelaySettings {
        max_answer: 1000,
        ..RelaySettings::default()
    };
    let mut conversation = two_clients_with(settings);
    conversation.continue_with(SCREENSHOT);
    let announced = PiecePlace::First { announced: 1001 };
    let front = r#"{"id":"conn-1:3","result":{"data":"x"#;
    conversation.piece("E", front, announced);
    conversation.continue_with(
        r#"
        A< {"id":3,"error":{"code":-32007,"data":{"reason":"too_large"}}}
        E>| more
        E>] "}}
        A> {"id":4,"method":"screenshot"}
        E< {"id":"conn-1:4"}
        E> {"id":"conn-1:4","result":{}}
        A< {"id":4}
        "#,
    );
}

#[test]
fn what_is_collected_and_turns_out_to_be_too_large_fails_in_words() {
    let long = "x".repeat(300);
    small_answers().continue_with(&format!(
        r#"
        B> {{"id":3,"method":"createTab"}}
        E< {{"id":"conn-2:3"}}
        E>[ {{"id":"conn-2:3","result":{{"data":"
        E>| {long}
        B< {{"id":3,"error":{{"code":-32007}}}}
        E>] "}}}}
        E>[ {{"result":{{"data":"
        E>] {long}"}}}}
        "#
    ));
}

#[test]
fn an_answer_that_is_too_large_fails_as_soon_as_its_id_comes() {
    let long = "x".repeat(300);
    let mut conversation = small_answers();
    conversation.continue_with(SCREENSHOT);
    conversation.continue_with(&format!(
        r#"
        E>[ {{"jsonrpc":"2.0","result":{{"data":"
        E>| {long}
        E>| {long}
        E>| "}},"id":"conn-
        E>] 1:3"}}
        A< {{"id":3,"error":{{"code":-32007,"data":{{"reason":"too_large"}}}}}}
        A> {{"id":4,"method":"screenshot"}}
        E< {{"id":"conn-1:4"}}
        E>[ {{"result":{{"data":"
        E>] {long}","id":"conn-1:3"}},"id":"conn-1:4"}}
        A< {{"id":4,"error":{{"code":-32007}}}}
        E>[ {{"result":{{"data":"
        E>] {long}"}},"id":"conn-1:4"}}
        E>[ {{"result":{{"data":"
        E>] {long}","id":"conn-1:4"}}}}
        "#
    ));
    let counters = conversation.relay.counters();
    assert_eq!((counters.late_answers, counters.ignored), (1, 1));
}

#[test]
fn an_answer_that_is_announced_as_too_large_fails_as_soon_as_its_id_comes() {
    let mut conversation = small_answers();
    conversation.continue_with(SCREENSHOT);
    let announced = PiecePlace::First { announced: 201 };
    conversation.piece("E", r#"{"result":{"data":"x"#, announced);
    conversation.continue_with(
        r#"
        E>| more
        E>] "},"id":"conn-1:3"}
        A< {"id":3,"error":{"code":-32007}}
        "#,
    );
}

#[test]
fn a5_an_answer_without_room_fails_alone() {
    let memory = MemoryBudget::new(70_000);
    let mut conversation = two_clients_with(RelaySettings {
        memory: memory.clone(),
        ..RelaySettings::default()
    });
    let long = "x".repeat(70_000);
    conversation.continue_with(&format!(
        r#"
        A> {{"id":3,"method":"createTab"}}
        E< {{"id":"conn-1:3"}}
        E>[ {{"id":"conn-1:3","result":{{"tab":{{"id"
        E>| :12,"title":"{long}"
        A< {{"id":3,"error":{{"code":-32006,"data":{{"reason":"no_room","delivered":true}}}}}}
        E>] ,"url":"b"}}}}}}
        A> {{"id":4,"method":"createTab"}}
        E< {{"id":"conn-1:4"}}
        E>[ {{"id":"conn-1:4","result":{{"tab":{{"id"
        E>] :12,"title":"b"}}}}}}
        A< {{"id":4,"result":{{"tab":{{"id":12}}}}}}
        A> {{"id":5,"method":"screenshot"}}
        E< {{"id":"conn-1:5"}}
        E>[ {{"result":{{"data":"the id comes last, and there is no
        E>| room for it {long}
        E>] "}},"id":"conn-1:5"}}
        A< {{"id":5,"error":{{"code":-32006,"data":{{"reason":"no_room"}}}}}}
        "#
    ));
    assert_eq!((memory.used(), memory.refused()), (0, 2));
}

#[test]
fn a5_a_client_whose_event_has_no_room_is_closed() {
    let memory = MemoryBudget::new(70_000);
    let mut conversation = two_clients_with(RelaySettings {
        memory: memory.clone(),
        ..RelaySettings::default()
    });
    conversation.continue_with(SCREENSHOT);
    let long = "x".repeat(70_000);
    conversation.continue_with(&format!(
        r#"
        E> {{"method":"notifications/tab_info_update","params":{{"currentTab":{{"id":11,"title":"{long}"}}}}}}
        A<! 1013
        "#
    ));
    assert_eq!(conversation.relay.counters().slow_readers, 1);
    assert_eq!((memory.used(), memory.refused()), (0, 1));
}
