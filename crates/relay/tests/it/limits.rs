//! Limits: each has its own error, and none of them hurts anybody else.

use mcp_proxy_core::MemoryBudget;
use mcp_proxy_relay::{RelayRates, RelaySettings};
use mcp_proxy_wire::Message;

use crate::scenes::{BOB, CONNECTED, WITH_TAB, connected};
use crate::transcript::play_with;

#[test]
fn too_many_commands_are_told_when_to_come_back() {
    let settings = RelaySettings {
        rates: RelayRates {
            per_user: 100,
            per_connection: 2,
            ..RelayRates::default()
        },
        ..RelaySettings::default()
    };
    let mut conversation = play_with(settings, CONNECTED);
    conversation.continue_with(
        r#"
        A> {"id":2,"method":"getTabs"}
        E< {"id":"conn-1:2"}
        A> {"id":3,"method":"getTabs"}
        E< {"id":"conn-1:3"}
        A> {"id":4,"method":"getTabs"}
        A< {"id":4,"error":{"code":-32006,"data":{"reason":"rate_limited","retry_after_ms":500}}}
        A> {"id":5,"method":"list_extensions"}
        A< {"id":5}
        @ 0.6
        A> {"id":4,"method":"getTabs"}
        E< {"id":"conn-1:4"}
        "#,
    );
    assert_eq!(conversation.relay.counters().rate_limited, 1);
}

#[test]
fn the_limit_of_a_user_counts_all_connections() {
    let settings = RelaySettings {
        rates: RelayRates {
            per_user: 1,
            per_connection: 100,
            ..RelayRates::default()
        },
        ..RelaySettings::default()
    };
    let mut conversation = play_with(settings, CONNECTED);
    conversation.continue_with(BOB);
    conversation.continue_with(
        r#"
        A> {"id":2,"method":"getTabs"}
        E< {"id":"conn-1:2"}
        B> {"id":2,"method":"getTabs"}
        B< {"id":2,"error":{"code":-32006}}
        "#,
    );
}

#[test]
fn a_connection_has_a_limited_number_of_open_commands() {
    let settings = RelaySettings {
        max_open_commands: 1,
        ..RelaySettings::default()
    };
    let mut conversation = play_with(settings, CONNECTED);
    conversation.continue_with(
        r#"
        A> {"id":2,"method":"getTabs"}
        E< {"id":"conn-1:2"}
        A> {"id":3,"method":"getTabs"}
        A< {"id":3,"error":{"code":-32006,"data":{"reason":"queue_full","delivered":false}}}
        E> {"id":"conn-1:2","result":{}}
        A< {"id":2}
        A> {"id":3,"method":"getTabs"}
        E< {"id":"conn-1:3"}
        "#,
    );
    let counted = conversation.relay.counters();
    assert_eq!((counted.queue_full, counted.refused), (1, 0));
}

#[test]
fn commands_that_wait_for_an_extension_have_a_limited_size() {
    let settings = RelaySettings {
        max_queued_bytes: 50,
        ..RelaySettings::default()
    };
    let mut conversation = play_with(settings, CONNECTED);
    let (client, now) = (conversation.socket("A"), conversation.now());
    for id in 2..4 {
        let text = format!(r#"{{"id":{id},"method":"getTabs"}}"#);
        conversation
            .relay
            .message(client, Message::parse(text), now);
    }
    conversation.continue_with(
        r#"
        A< {"id":3,"error":{"code":-32006,"data":{"reason":"queue_full","delivered":false}}}
        E< {"id":"conn-1:2"}
        "#,
    );
    assert_eq!(conversation.relay.counters().queue_full, 1);
}

#[test]
fn a_user_has_a_limited_number_of_connections() {
    let settings = RelaySettings {
        max_connections: 1,
        ..RelaySettings::default()
    };
    let mut conversation = play_with(settings, CONNECTED);
    conversation.continue_with(
        r#"
        B+ client bob
        B< {"id":0}
        B> {"id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}
        B< {"id":1,"error":{"code":-32006,"data":{"reason":"connection_limit","retry_after_ms":1000}}}
        "#,
    );
    assert_eq!(conversation.relay.counters().connection_limit, 1);
}

#[test]
fn a_command_that_is_too_large_is_refused() {
    let settings = RelaySettings {
        max_message: 60,
        ..RelaySettings::default()
    };
    let mut conversation = play_with(settings, "");
    conversation.continue_with(
        r#"
        E+ extension c
        E< {"method":"authenticated"}
        A+ client a
        A< {"id":0}
        A> {"id":1,"method":"connect","params":{"extension_id":"ext-c"}}
        A< {"id":1}
        A> {"id":2,"method":"createTab","params":{"url":"https://a.test/012345678901234567890"}}
        A< {"id":2,"error":{"code":-32007}}
        "#,
    );
    assert_eq!(conversation.relay.counters().too_large, 1);
}

#[test]
fn connections_take_turns() {
    let mut conversation = connected();
    conversation.continue_with(BOB);
    let (a, b) = (conversation.socket("A"), conversation.socket("B"));
    let (extension, now) = (conversation.socket("E"), conversation.now());
    let mut say = |socket, id: u32| {
        let text = format!(r#"{{"id":{id},"method":"getTabs"}}"#);
        conversation
            .relay
            .message(socket, Message::parse(text), now);
    };
    for id in 10..15 {
        say(a, id);
    }
    say(b, 10);
    let taken = conversation.relay.take(extension, 1 << 20, now).messages;
    let ids: Vec<String> = taken
        .iter()
        .map(|message| {
            let id = message.id().unwrap();
            String::from_utf8(id.token().to_vec()).unwrap()
        })
        .collect();
    assert_eq!(
        ids[..3],
        ["\"conn-1:10\"", "\"conn-2:10\"", "\"conn-1:11\""]
    );
    assert_eq!(ids.len(), 6);
}

#[test]
fn a_client_that_does_not_read_is_cut_and_others_are_not() {
    let settings = RelaySettings {
        max_outbox: 1000,
        ..RelaySettings::default()
    };
    let mut conversation = play_with(settings, CONNECTED);
    conversation.continue_with(WITH_TAB);
    let (client, now) = (conversation.socket("A"), conversation.now());
    for id in 0..50 {
        let text = format!(r#"{{"id":{id},"method":"list_extensions"}}"#);
        conversation
            .relay
            .message(client, Message::parse(text), now);
    }
    conversation.continue_with("A<! 1013");
    assert_eq!(conversation.relay.counters().slow_readers, 1);
}

#[test]
fn a_user_has_a_limited_number_of_sockets() {
    let settings = RelaySettings {
        max_sockets: 2,
        ..RelaySettings::default()
    };
    let mut conversation = play_with(settings, CONNECTED);
    conversation.continue_with(
        r#"
        F+ extension firefox
        F<! 1013
        F-
        B+ client bob
        B< {"id":0,"error":{"code":-32006,"data":{"reason":"socket_limit","retry_after_ms":1000}}}
        B<! 1013
        B-
        A> {"id":2,"method":"getTabs"}
        E< {"id":"conn-1:2"}
        "#,
    );
    assert_eq!(conversation.relay.counters().socket_limit, 2);
}

#[test]
fn requests_to_the_relay_itself_are_limited_too() {
    let settings = RelaySettings {
        rates: RelayRates {
            control: 2,
            ..RelayRates::default()
        },
        ..RelaySettings::default()
    };
    let mut conversation = play_with(settings, CONNECTED);
    conversation.continue_with(
        r#"
        A> {"id":2,"method":"list_extensions"}
        A< {"id":2,"result":{}}
        A> {"id":3,"method":"list_extensions"}
        A< {"id":3,"error":{"code":-32006}}
        A> {"id":4,"method":"getTabs"}
        E< {"id":"conn-1:4"}
        "#,
    );
}

#[test]
fn an_answer_over_the_limit_fails_its_command_and_nothing_else() {
    let settings = RelaySettings {
        max_message: 60,
        ..RelaySettings::default()
    };
    let mut conversation = play_with(settings, CONNECTED);
    conversation.continue_with(
        r#"
        A> {"id":2,"method":"getTabs"}
        E< {"id":"conn-1:2"}
        E> {"id":"conn-1:2","result":{"tabs":[],"text":"0123456789012345678901234567890123456789"}}
        A< {"id":2,"error":{"code":-32007,"data":{"reason":"too_large"}}}
        A> {"id":3,"method":"getTabs"}
        E< {"id":"conn-1:3"}
        E> {"id":"conn-1:3","result":{"tabs":[]}}
        A< {"id":3,"result":{"tabs":[]}}
        "#,
    );
    assert_eq!(conversation.relay.counters().too_large, 1);
}

#[test]
fn ids_of_requests_are_short() {
    let mut conversation = connected();
    let id = "i".repeat(255);
    conversation.continue_with(&format!(
        r#"
        A> {{"id":"{id}","method":"getTabs"}}
        A< {{"id":"{id}","error":{{"code":-32600}}}}
        A> {{"id":2,"method":"getTabs"}}
        E< {{"id":"conn-1:2"}}
        "#
    ));
}

#[test]
fn a5_an_answer_without_room_fails_alone() {
    let memory = MemoryBudget::new(70_000);
    let settings = RelaySettings {
        memory: memory.clone(),
        ..RelaySettings::default()
    };
    let mut conversation = play_with(settings, CONNECTED);
    let long = "x".repeat(70_000);
    conversation.continue_with(&format!(
        r#"
        A> {{"id":3,"method":"createTab"}}
        E< {{"id":"conn-1:3"}}
        E> {{"id":"conn-1:3","result":{{"tab":{{"id":12,"title":"{long}"}}}}}}
        A< {{"id":3,"error":{{"code":-32006,"data":{{"reason":"no_room","delivered":true}}}}}}
        A> {{"id":4,"method":"createTab"}}
        E< {{"id":"conn-1:4"}}
        E> {{"id":"conn-1:4","result":{{"tab":{{"id":13,"title":"b"}}}}}}
        A< {{"id":4,"result":{{"tab":{{"id":13}}}}}}
        "#
    ));
    assert_eq!((memory.used(), memory.refused()), (0, 1));
}

#[test]
fn a5_an_answer_that_could_not_be_read_fails_its_command() {
    let mut conversation = play_with(RelaySettings::default(), CONNECTED);
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"getTabs"}
        E< {"id":"conn-1:3"}
        "#,
    );
    let (extension, now) = (conversation.socket("E"), conversation.now());
    let refusal = Message::parse(r#"{"id":"conn-1:3","error":{"code":-31015,"message":""}}"#);
    conversation.relay.answer_refused(extension, &refusal, now);
    conversation.continue_with(
        r#"
        A< {"id":3,"error":{"code":-32006,"data":{"reason":"no_room","delivered":true}}}
        "#,
    );
}

#[test]
fn a5_a_client_whose_event_has_no_room_is_closed() {
    let memory = MemoryBudget::new(70_000);
    let settings = RelaySettings {
        memory: memory.clone(),
        ..RelaySettings::default()
    };
    let mut conversation = play_with(settings, CONNECTED);
    conversation.continue_with(WITH_TAB);
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
