//! At most once, and honest about what is not known.

use mcp_proxy_relay::{RelayClose, RelaySettings, SocketId};
use mcp_proxy_wire::Message;

use crate::scenes::{connected, with_tab};

#[test]
fn a_lost_extension_fails_everything_at_once_and_says_what_was_delivered() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"screenshot"}
        E< {"id":"conn-1:3"}
        A> {"id":4,"method":"screenshot"}
        E< {"id":"conn-1:4"}
        A> {"id":5,"method":"screenshot"}
        E< {"id":"conn-1:5"}
        E> {"id":"conn-1:4","result":{}}
        A< {"id":4,"result":{}}
        "#,
    );
    conversation.continue_with(
        r#"
        E|
        A> {"id":6,"method":"screenshot"}
        E-
        A< {"id":3,"error":{"code":-32004,"data":{"reason":"extension_gone","delivered":true}}}
        A< {"id":5,"error":{"code":-32004,"data":{"delivered":"unknown"}}}
        A< {"id":6,"error":{"code":-32004,"data":{"delivered":false}}}
        A< {"method":"disconnected"}
        "#,
    );
    assert_eq!(conversation.relay.counters().lost, 3);
}

#[test]
fn a_command_that_the_writer_had_taken_and_not_begun_was_not_delivered() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        E| 1
        A> {"id":3,"method":"screenshot"}
        E< {"id":"conn-1:3"}
        A> {"id":4,"method":"screenshot"}
        A> {"id":5,"method":"screenshot"}
        E-
        A< {"id":3,"error":{"code":-32004,"data":{"reason":"extension_gone","delivered":"unknown"}}}
        A< {"id":4,"error":{"code":-32004,"data":{"reason":"extension_gone","delivered":false}}}
        A< {"id":5,"error":{"code":-32004,"data":{"reason":"extension_gone","delivered":false}}}
        A< {"method":"disconnected"}
        E+ extension chrome
        E< {"method":"authenticated"}
        A> {"id":6,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":6,"result":{"connection_id":"conn-1"}}
        A> {"id":7,"method":"getTabs"}
        E< {"id":"conn-1:7"}
        E-
        A< {"id":7,"error":{"code":-32004,"data":{"delivered":"unknown"}}}
        A< {"method":"disconnected"}
        "#,
    );
}

#[test]
fn a_command_that_is_not_answered_in_time_fails_and_its_late_answer_is_dropped() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"screenshot"}
        E< {"id":"conn-1:3"}
        @ 29
        @ 1.5
        A< {"id":3,"error":{"code":-32005,"data":{"reason":"timeout","delivered":"unknown"}}}
        A> {"id":3,"method":"screenshot"}
        E< {"id":"conn-1:3#1","method":"screenshot"}
        E> {"id":"conn-1:3","result":{"late":true}}
        E> {"id":"conn-1:3#1","result":{"late":false}}
        A< {"id":3,"result":{"late":false}}
        "#,
    );
    let counters = conversation.relay.counters();
    assert_eq!((counters.timeouts, counters.late_answers), (1, 1));
    assert_eq!(counters.lost, 0);
}

#[test]
fn an_extension_that_takes_nothing_is_said_to_have_got_nothing() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        E|
        A> {"id":3,"method":"screenshot"}
        @ 31
        A< {"id":3,"error":{"code":-32005,"data":{"delivered":false}}}
        "#,
    );
}

#[test]
fn a_newer_socket_of_the_same_extension_takes_over() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"screenshot"}
        E< {"id":"conn-1:3"}
        F+ extension chrome
        E<! 4409
        F< {"method":"authenticated","params":{"extension_id":"ext-chrome"}}
        A< {"id":3,"error":{"code":-32004,"data":{"reason":"superseded","delivered":"unknown"}}}
        E-
        A> {"id":4,"method":"screenshot"}
        F< {"id":"conn-1:4"}
        F> {"id":"conn-1:4","result":{}}
        A< {"id":4,"result":{}}
        "#,
    );
}

#[test]
fn a_newer_socket_of_an_extension_fails_commands_that_were_not_written_too() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"createTab"}
        E< {"id":"conn-1:3"}
        A> {"id":4,"method":"screenshot"}
        E|
        A> {"id":5,"method":"getTabs"}
        F+ extension chrome
        F< {"method":"authenticated"}
        A< {"id":3,"error":{"code":-32004,"data":{"reason":"superseded","delivered":"unknown"}}}
        A< {"id":4,"error":{"code":-32004,"data":{"reason":"superseded","delivered":false}}}
        A< {"id":5,"error":{"code":-32004,"data":{"reason":"superseded","delivered":false}}}
        A> {"id":6,"method":"getTabs"}
        F< {"id":"conn-1:6"}
        "#,
    );
    assert_eq!(conversation.relay.counters().lost, 3);
}

#[test]
fn a_newer_socket_of_the_same_client_takes_over() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"screenshot"}
        E< {"id":"conn-1:3"}
        B+ client alice
        A< {"id":3,"error":{"code":-32004,"data":{"reason":"superseded"}}}
        A<! 4409
        B< {"id":0,"result":{"mcp_client_id":"mcp-alice"}}
        A-
        B> {"id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}
        B< {"id":1,"result":{"connection_id":"conn-1"}}
        E> {"id":"conn-1:3","result":{}}
        B> {"id":2,"method":"screenshot"}
        E< {"id":"conn-1:2#1"}
        E> {"id":"conn-1:2#1","result":{}}
        B< {"id":2,"result":{}}
        "#,
    );
}

#[test]
fn open_commands_fail_when_their_client_disconnects_and_say_what_was_delivered() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"getTabs"}
        E< {"id":"conn-1:3"}
        A> {"id":4,"method":"getTabs"}
        E< {"id":"conn-1:4"}
        A> {"id":5,"method":"getTabs"}
        E< {"id":"conn-1:5"}
        E> {"id":"conn-1:4","result":{}}
        A< {"id":4,"result":{}}
        E|
        A> {"id":6,"method":"getTabs"}
        A> {"id":7,"method":"disconnect"}
        A< {"id":3,"error":{"code":-32004,"data":{"reason":"disconnected","delivered":true}}}
        A< {"id":5,"error":{"code":-32004,"data":{"reason":"disconnected","delivered":"unknown"}}}
        A< {"id":6,"error":{"code":-32004,"data":{"reason":"disconnected","delivered":false}}}
        A< {"id":7,"result":{"disconnected":true}}
        E> {"id":"conn-1:5","result":{}}
        "#,
    );
    assert_eq!(conversation.relay.counters().late_answers, 1);
}

#[test]
fn open_commands_of_a_client_whose_token_expires_fail_before_it_is_closed() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"getTabs"}
        E< {"id":"conn-1:3"}
        "#,
    );
    let (client, now) = (conversation.socket("A"), conversation.now());
    let close = RelayClose::Unauthorized("Token revoked");
    conversation.relay.close(client, close, now);
    conversation.continue_with(
        r#"
        A< {"id":3,"error":{"code":-32004,"data":{"reason":"disconnected","delivered":"unknown"}}}
        A<! 4401
        E< {"method":"disconnected"}
        "#,
    );
}

#[test]
fn a_restart_is_announced_and_everybody_is_closed() {
    let mut conversation = connected();
    let now = conversation.now();
    conversation.relay.shut_down(now);
    conversation.continue_with(
        r#"
        E< {"method":"serverShuttingDown"}
        E<! 1012
        A<! 1012
        "#,
    );
}

#[test]
fn answers_of_peers_that_were_not_asked_have_no_effect() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        F+ extension firefox
        F< {"method":"authenticated"}
        A> {"id":3,"method":"getTabs"}
        E< {"id":"conn-1:3"}
        F> {"id":"conn-1:3","result":{"forged":true}}
        F> {"id":"conn-1:3","error":{"message":"forged"}}
        A> {"id":"conn-1:3","result":{"forged":true}}
        B+ client bob
        B< {"id":0}
        B> {"id":"conn-1:3","result":{"forged":true}}
        E> {"id":"conn-1:3","result":{"forged":false}}
        A< {"id":3,"result":{"forged":false}}
        "#,
    );
    let counters = conversation.relay.counters();
    assert_eq!((counters.late_answers, counters.ignored), (2, 2));
}

#[test]
fn sockets_that_never_joined_are_not_known() {
    let mut conversation = connected();
    let now = conversation.now();
    conversation.relay.socket_closed(SocketId(999), now);
    let stranger = Message::parse(r#"{"id":1,"method":"getTabs"}"#);
    conversation.relay.message(SocketId(999), stranger, now);
    assert!(conversation.relay.take(SocketId(999), 1000, now).is_empty());
    assert!(RelaySettings::default().command_timeout.as_secs() == 30);
}

#[test]
fn an_answer_that_cannot_be_used_fails_its_command_at_once() {
    let mut conversation = with_tab();
    for (id, rest) in [
        (
            3,
            r#","result":{"ok":true},"error":{"code":-1,"message":"no"}}"#,
        ),
        (4, r#","error":"no","result":false}"#),
        (5, r#","error":null}"#),
        (6, "}"),
        (7, r#","result":{"ok":tr"#),
        (8, r#","result":{}}}"#),
    ] {
        conversation.continue_with(&format!(
            r#"
            A> {{"id":{id},"method":"screenshot"}}
            E< {{"id":"conn-1:{id}"}}
            E> {{"id":"conn-1:{id}"{rest}
            A< {{"id":{id},"error":{{"code":-32603,"data":{{"reason":"unusable_answer"}}}}}}
            "#
        ));
    }
    conversation.continue_with(
        r#"
        A> {"id":9,"method":"screenshot"}
        E< {"id":"conn-1:9"}
        E>
        E> not JSON
        E> []
        E> {"result":{}}
        E> {"id":"conn-1:9","result":null,"error":{"code":-1,"message":"no"}}
        A< {"id":9,"error":{"code":-1,"message":"no"}}
        A> {"id":10,"method":"screenshot"}
        E< {"id":"conn-1:10"}
        E> {"id":"conn-1:10","result":null,"error":null}
        A< {"id":10,"result":null}
        "#,
    );
    assert_eq!(conversation.relay.counters().ignored, 4);
}
