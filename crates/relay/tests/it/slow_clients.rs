//! Clients that do not take a long answer as fast as it comes.

use mcp_proxy_relay::{PiecePlace, RelayClose};

use crate::long_answers::SCREENSHOT;
use crate::scenes::two_clients;
use crate::transcript::Conversation;

/// A client that reads nothing has begun to get an answer.
fn deaf_client() -> Conversation {
    let mut conversation = two_clients();
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
    let mut conversation = two_clients();
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
    let mut conversation = two_clients();
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
