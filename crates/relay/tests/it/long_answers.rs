//! Answers that are too long to be collected, and what can happen in the middle of one.

use mcp_proxy_relay::{PiecePlace, RelayClose, RelaySettings};

use crate::transcript::{CONNECTED, Conversation, WITH_TAB, play, play_with};

/// A client with a tab, and a second client of the same extension.
pub fn two_clients(settings: RelaySettings) -> Conversation {
    let mut conversation = play_with(settings, CONNECTED);
    conversation.continue_with(WITH_TAB);
    conversation.continue_with(
        r#"
        B+ client bob
        B< {"id":0}
        B> {"id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}
        B< {"id":1}
        "#,
    );
    conversation
}

/// A client that reads nothing has begun to get an answer.
fn deaf_client() -> Conversation {
    let mut conversation = two_clients(RelaySettings::default());
    conversation.continue_with(SCREENSHOT);
    let client = conversation.socket("A");
    conversation.deaf.push(client);
    conversation.continue_with(r#"E>[ {"id":"conn-1:3","result":{"data":"begin"#);
    let piece = "x".repeat(128 << 10);
    let extension = conversation.socket("E");
    while conversation.relay.has_room(extension) {
        conversation.piece("E", &piece, PiecePlace::Middle);
    }
    conversation
}

pub const SCREENSHOT: &str = r#"
    A> {"id":3,"method":"screenshot"}
    E< {"id":"conn-1:3","method":"screenshot"}
"#;

#[test]
fn an_answer_crosses_in_pieces_with_the_clients_own_tab() {
    let mut conversation = play(CONNECTED);
    conversation.continue_with(WITH_TAB);
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
    let mut conversation = play(CONNECTED);
    conversation.continue_with(WITH_TAB);
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
    let mut conversation = two_clients(RelaySettings::default());
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
    let mut conversation = two_clients(RelaySettings::default());
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
    let mut conversation = two_clients(RelaySettings::default());
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
fn an_id_is_free_again_when_its_long_answer_was_cut() {
    let mut conversation = play(CONNECTED);
    conversation.continue_with(WITH_TAB);
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
fn an_answer_that_nobody_waits_for_is_skipped() {
    let mut conversation = two_clients(RelaySettings::default());
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
fn the_end_of_an_extension_in_the_middle_closes_the_client_that_has_the_beginning() {
    let mut conversation = two_clients(RelaySettings::default());
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
    let mut conversation = two_clients(RelaySettings::default());
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
    let mut conversation = two_clients(settings);
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
    let mut conversation = two_clients(RelaySettings::default());
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
    let mut conversation = two_clients(RelaySettings::default());
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
fn a_client_that_disconnects_in_the_middle_gets_the_rest() {
    let mut conversation = two_clients(RelaySettings::default());
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

#[test]
fn a_newer_socket_of_the_client_does_not_get_the_rest() {
    let mut conversation = two_clients(RelaySettings::default());
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
    let mut conversation = two_clients(RelaySettings::default());
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

#[test]
fn a_client_that_does_not_read_holds_the_extension_up_and_is_then_cut() {
    let mut conversation = deaf_client();
    let extension = conversation.socket("E");
    conversation.relay.resumed();
    conversation.continue_with("@ 4.9");
    assert!(!conversation.relay.has_room(extension));
    assert_eq!(conversation.relay.resumed(), []);
    conversation.continue_with("@ 0.2");
    assert!(conversation.relay.has_room(extension));
    assert_eq!(conversation.relay.resumed(), [extension]);
    assert_eq!(conversation.relay.counters().slow_readers, 1);
    conversation.deaf.clear();
    conversation.continue_with(
        r#"
        A<! 1013
        E>] "}}
        B> {"id":2,"method":"listExtensions"}
        E< {"id":"conn-2:2"}
        E> {"id":"conn-2:2","result":{}}
        B< {"id":2}
        "#,
    );
}

#[test]
fn a_client_that_reads_again_gets_the_rest() {
    let mut conversation = deaf_client();
    let extension = conversation.socket("E");
    conversation.continue_with("@ 4");
    conversation.deaf.clear();
    conversation.listen();
    assert!(conversation.relay.has_room(extension));
    conversation.continue_with(
        r#"
        @ 4
        E>] "}}
        A< {"id":3}
        "#,
    );
}

#[test]
fn little_of_a_long_answer_waits_for_its_client() {
    let mut conversation = two_clients(RelaySettings::default());
    conversation.continue_with(SCREENSHOT);
    let (client, extension) = (conversation.socket("A"), conversation.socket("E"));
    conversation.deaf.push(client);
    conversation.continue_with(r#"E>[ {"id":"conn-1:3","result":{"data":"x"#);
    let (mut said, mut taken, mut most) = (0, 0, 0);
    let piece = "x".repeat(128 << 10);
    for _ in 0..200 {
        while conversation.relay.has_room(extension) {
            conversation.piece("E", &piece, PiecePlace::Middle);
            said += piece.len();
        }
        most = most.max(said - taken);
        let output = conversation
            .relay
            .take(client, 256 << 10, conversation.now());
        let now = output.pieces.iter().map(|piece| piece.bytes.len());
        let now: usize = now.sum();
        assert!(now > 0 && now <= 64 << 10, "{now} bytes at once");
        taken += now;
    }
    assert!(taken > 8 << 20, "{taken}");
    assert!(most <= 384 << 10, "{most} bytes waited");
}

/// A client that reads nothing, with one long answer in its outbox and another that has begun behind it.
fn with_a_waiting_answer() -> Conversation {
    let mut conversation = two_clients(RelaySettings::default());
    conversation.continue_with(SCREENSHOT);
    conversation.continue_with(
        r#"
        A> {"id":4,"method":"screenshot"}
        E< {"id":"conn-1:4"}
        "#,
    );
    conversation.deaf.push(conversation.socket("A"));
    conversation.continue_with(
        r#"
        E>[ {"id":"conn-1:3","result":{"data":"one
        E>] "}}
        E>[ {"id":"conn-1:4","result":{"data":"two
        "#,
    );
    conversation
}

#[test]
fn a_second_long_answer_waits_for_the_first() {
    let mut conversation = with_a_waiting_answer();
    let extension = conversation.socket("E");
    assert!(!conversation.relay.has_room(extension));
    conversation.deaf.clear();
    conversation.listen();
    conversation.continue_with(
        r#"
        E>] "}}
        A< {"id":3,"result":{"data":"one"}}
        A< {"id":4,"result":{"data":"two"}}
        "#,
    );
}

#[test]
fn a_long_answer_that_waits_when_its_client_is_closed_says_that_the_command_was_carried_out() {
    let mut conversation = with_a_waiting_answer();
    let client = conversation.socket("A");
    let close = RelayClose::Unauthorized("Token revoked");
    conversation.relay.close(client, close, conversation.now());
    conversation.deaf.clear();
    conversation.listen();
    conversation.continue_with(
        r#"
        A< {"id":3,"result":{"data":"one"}}
        A< {"id":4,"error":{"code":-32004,"data":{"delivered":true}}}
        A<! 4401
        E< {"method":"disconnected"}
        "#,
    );
}

#[test]
fn a_client_that_reads_a_little_holds_others_up_for_a_limited_time() {
    let mut conversation = deaf_client();
    conversation.continue_with(
        r#"
        B> {"id":2,"method":"getTabs"}
        E< {"id":"conn-2:2"}
        "#,
    );
    let (client, extension) = (conversation.socket("A"), conversation.socket("E"));
    let piece = "x".repeat(128 << 10);
    let mut seconds = 0;
    // Every four seconds it takes what there is, and no more: it never stalls for five.
    while conversation.relay.counters().slow_readers == 0 {
        conversation.continue_with("@ 4");
        seconds += 4;
        assert!(seconds < 30, "it is still served");
        conversation.relay.take(client, 1 << 20, conversation.now());
        while conversation.relay.has_room(extension)
            && conversation.relay.counters().slow_readers == 0
        {
            conversation.piece("E", &piece, PiecePlace::Middle);
        }
    }
    assert!(seconds >= 12, "{seconds}");
    conversation.continue_with(
        r#"
        E>] "}}
        E> {"id":"conn-2:2","result":{"tabs":[{"id":11}]}}
        B< {"id":2,"result":{}}
        "#,
    );
}
