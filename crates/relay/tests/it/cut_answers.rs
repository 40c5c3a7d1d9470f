//! Long answers that end in the middle, for whatever reason.

use mcp_proxy_relay::RelaySettings;

use crate::long_answers::SCREENSHOT;
use crate::scenes::{two_clients, two_clients_with, with_tab};

#[test]
fn an_id_is_free_again_when_its_long_answer_was_cut() {
    let mut conversation = with_tab();
    conversation.continue_with(SCREENSHOT);
    let client = conversation.socket("A");
    conversation.deaf.push(client);
    conversation.continue_with(
        r#"
        E>[ {"id":"conn-1:3","result":{"data":"x
        E>]
        "#,
    );
    conversation.deaf.clear();
    conversation.continue_with(
        r#"
        A< {"id":3,"error":{"code":-32603}}
        A> {"id":3,"method":"getTabs"}
        E< {"id":"conn-1:3#1","method":"getTabs"}
        "#,
    );
}

#[test]
fn the_end_of_an_extension_in_the_middle_closes_the_client_that_has_the_beginning() {
    let mut conversation = two_clients();
    conversation.continue_with(SCREENSHOT);
    conversation.continue_with(
        r#"
        E>[ {"id":"conn-1:3","result":{"data":"x
        E-
        A<! 1011
        B< {"method":"disconnected"}
        B> {"id":2,"method":"list_extensions"}
        B< {"id":2}
        "#,
    );
    assert_eq!(conversation.relay.counters().cut_answers, 1);
    // It can come back to its connection.
    conversation.continue_with(
        r#"
        A-
        E+ extension chrome
        E< {"method":"authenticated"}
        A+ client alice
        A< {"id":0}
        A> {"id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":1,"result":{"connection_id":"conn-1"}}
        "#,
    );
}

#[test]
fn an_answer_of_which_nothing_was_written_fails_in_words() {
    let mut conversation = two_clients();
    conversation.continue_with(SCREENSHOT);
    let client = conversation.socket("A");
    conversation.deaf.push(client);
    conversation.continue_with(
        r#"
        E>[ {"id":"conn-1:3","result":{"data":"x
        E-
        B< {"method":"disconnected"}
        "#,
    );
    conversation.deaf.clear();
    conversation.continue_with(
        r#"
        A> {"id":4,"method":"list_extensions"}
        A< {"id":3,"error":{"code":-32004,"data":{"reason":"extension_gone","delivered":true}}}
        A< {"method":"disconnected"}
        A< {"id":4}
        "#,
    );
    assert_eq!(conversation.relay.counters().cut_answers, 0);
}

#[test]
fn an_answer_that_turns_out_to_be_too_large_closes_its_client_and_not_the_extension() {
    let settings = RelaySettings {
        max_answer: 200,
        ..RelaySettings::default()
    };
    let mut conversation = two_clients_with(settings);
    conversation.continue_with(SCREENSHOT);
    let long = "x".repeat(300);
    conversation.continue_with(&format!(
        r#"
        B> {{"id":2,"method":"listExtensions"}}
        E< {{"id":"conn-2:2"}}
        E>[ {{"id":"conn-1:3","result":{{"data":"x
        E>| {long}
        A<! 1011
        E>| {long}
        E>] "}}}}
        E> {{"id":"conn-2:2","result":{{}}}}
        B< {{"id":2}}
        "#
    ));
}

#[test]
fn an_answer_that_ends_in_the_middle_closes_its_client() {
    let mut conversation = two_clients();
    conversation.continue_with(SCREENSHOT);
    conversation.continue_with(
        r#"
        E>[ {"id":"conn-1:3","result":{"data":[
        E>] 1,2
        A<! 1011
        "#,
    );
}

#[test]
fn a_client_that_leaves_in_the_middle_does_not_disturb_the_extension() {
    let mut conversation = two_clients();
    conversation.continue_with(SCREENSHOT);
    conversation.continue_with(
        r#"
        B> {"id":2,"method":"listExtensions"}
        E< {"id":"conn-2:2"}
        E>[ {"id":"conn-1:3","result":{"data":"x
        A-
        E>| xx
        E>] "}}
        E> {"id":"conn-2:2","result":{}}
        B< {"id":2}
        "#,
    );
}

#[test]
fn a_newer_socket_of_the_client_does_not_get_the_rest() {
    let mut conversation = two_clients();
    conversation.continue_with(SCREENSHOT);
    conversation.continue_with(
        r#"
        E>[ {"id":"conn-1:3","result":{"data":"x
        C+ client alice
        C< {"id":0}
        A<! 4409
        E>| xx
        E>] "}}
        "#,
    );
}

#[test]
fn an_answer_that_makes_progress_has_time_and_one_that_stops_has_not() {
    let mut conversation = two_clients();
    conversation.continue_with(SCREENSHOT);
    conversation.continue_with(
        r#"
        @ 29
        E>[ {"id":"conn-1:3","result":{"data":"x
        @ 29
        E>| xx
        @ 29
        E>] "}}
        A< {"id":3,"result":{"data":"xxx"}}
        A> {"id":4,"method":"createTab"}
        E< {"id":"conn-1:4"}
        E>[ {"id":"conn-1:4","result":{"tab":{"id":77},"data":"collected
        @ 29
        E>| x
        @ 29
        E>] "}}
        A< {"id":4}
        A> {"id":5,"method":"screenshot"}
        E< {"id":"conn-1:5"}
        E>[ {"id":"conn-1:5","result":{"data":"x
        @ 31
        A<! 1011
        E>] too late"}}
        "#,
    );
    let counted = conversation.relay.counters();
    assert_eq!((counted.timeouts, counted.cut_answers), (1, 1));
}
