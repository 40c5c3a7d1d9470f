//! Points 1, 3, 4, 5, 12, 18 and 19: ids.

use mcp_proxy_relay::{CommandIdMode, RelaySettings};

use crate::scenes::{BOB, CONNECTED, connected, with_tab};
use crate::transcript::{play, play_with};

fn with_id_mode(id_mode: CommandIdMode) -> RelaySettings {
    RelaySettings {
        id_mode,
        ..RelaySettings::default()
    }
}

#[test]
fn rule_01_ids_are_mapped_and_restored() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        A> {"jsonrpc":"2.0","id":100,"method":"createTab","params":{"url":"https://example.com"}}
        E<= {"jsonrpc":"2.0","id":"conn-1:100","method":"createTab","params":{"url":"https://example.com"}}
        E> {"jsonrpc":"2.0","id":"conn-1:100","result":{"tabId":42,"url":"https://example.com"}}
        A<= {"jsonrpc":"2.0","id":100,"result":{"tabId":42,"url":"https://example.com"}}
        "#,
    );
}

#[test]
fn rule_01_ids_are_kept_for_an_extension_that_asks_for_it() {
    play(
        r#"
        E+ extension chrome preserve
        E< {"method":"authenticated"}
        A+ client alice
        A< {"id":0}
        A> {"id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":1,"result":{"connection_id":"conn-1"}}
        A> {"jsonrpc":"2.0","id":100,"method":"createTab","params":{"url":"https://example.com"}}
        E<= {"jsonrpc":"2.0","id":100,"method":"createTab","params":{"url":"https://example.com"}}
        E> {"jsonrpc":"2.0","id":100,"result":{"tabId":42}}
        A< {"id":100,"result":{"tabId":42}}
        A> {"id":"8f14e45f","method":"getTabs"}
        E< {"id":"8f14e45f"}
        E> {"id":"8f14e45f","result":{}}
        A< {"id":"8f14e45f","result":{}}
        "#,
    );
}

#[test]
fn rule_01_ids_are_mapped_as_soon_as_there_are_two_connections() {
    let mut conversation = play_with(with_id_mode(CommandIdMode::Preserve), CONNECTED);
    conversation.continue_with(
        r#"
        A> {"id":5,"method":"getTabs"}
        E< {"id":5,"method":"getTabs"}
        "#,
    );
    conversation.continue_with(BOB);
    conversation.continue_with(
        r#"
        B> {"id":5,"method":"getTabs"}
        E< {"id":"conn-2:5","method":"getTabs"}
        A> {"id":6,"method":"getTabs"}
        E< {"id":"conn-1:6","method":"getTabs"}
        E> {"id":"conn-2:5","result":{"for":"bob"}}
        B< {"id":5,"result":{"for":"bob"}}
        E> {"id":5,"result":{"for":"alice"}}
        A< {"id":5,"result":{"for":"alice"}}
        E> {"id":"conn-1:6","result":{}}
        A< {"id":6}
        A> {"id":7,"method":"disconnect"}
        A< {"id":7,"result":{"disconnected":true}}
        E< {"method":"disconnected"}
        B> {"id":6,"method":"getTabs"}
        E< {"id":"conn-2:6","method":"getTabs"}
        B> {"id":7,"method":"disconnect"}
        B< {"id":6,"error":{"code":-32004}}
        B< {"id":7,"result":{"disconnected":true}}
        E< {"method":"disconnected"}
        A> {"id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":1,"result":{"connection_id":"conn-3"}}
        A> {"id":8,"method":"getTabs"}
        E< {"id":8,"method":"getTabs"}
        "#,
    );
}

#[test]
fn rule_01_a_kept_id_is_not_used_twice_so_that_a_late_answer_never_fits() {
    let mut conversation = play_with(with_id_mode(CommandIdMode::Preserve), CONNECTED);
    conversation.continue_with(
        r#"
        A> {"id":5,"method":"getTabs"}
        E< {"id":5,"method":"getTabs"}
        @ 31
        A< {"id":5,"error":{"code":-32005}}
        A> {"id":5,"method":"getTabs"}
        E< {"id":1,"method":"getTabs"}
        E> {"id":5,"result":{"late":true}}
        E> {"id":1,"result":{"late":false}}
        A< {"id":5,"result":{"late":false}}
        A> {"id":"5","method":"getTabs"}
        E< {"id":2,"method":"getTabs"}
        A> {"id":9,"method":"disconnect"}
        A< {"id":"5","error":{"code":-32004}}
        A< {"id":9}
        E< {"method":"disconnected"}
        A> {"id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":1,"result":{"connection_id":"conn-2"}}
        A> {"id":5,"method":"getTabs"}
        E< {"id":3,"method":"getTabs"}
        "#,
    );
    assert_eq!(conversation.relay.counters().late_answers, 1);
}

#[test]
fn rule_01_an_extension_may_ask_for_mapped_ids_and_the_relay_may_insist_on_them() {
    let joined = r#"
        A+ client alice
        A< {"id":0}
        A> {"id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":1,"result":{"connection_id":"conn-1"}}
        A> {"id":5,"method":"getTabs"}
        E< {"id":"conn-1:5","method":"getTabs"}
    "#;
    for (mode, declared) in [
        (CommandIdMode::Preserve, "map"),
        (CommandIdMode::Map, "preserve"),
    ] {
        let extension = format!("E+ extension chrome {declared}");
        let mut conversation = play_with(with_id_mode(mode), "");
        conversation.continue_with(&format!(
            "{extension}\nE< {{\"method\":\"authenticated\"}}\n{joined}"
        ));
    }
}

#[test]
fn rule_01_an_extension_says_which_ids_it_wants_when_it_authenticates() {
    play(
        r#"
        E+ /extension
        E< {"id":"proxy:1","method":"authenticate"}
        E> {"id":"proxy:1","result":{"accessToken":"token-ada","client_id":"chrome","id_mode":"preserve"}}
        E< {"method":"authenticated"}
        A+ client alice
        A< {"id":0}
        A> {"id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":1}
        A> {"id":5,"method":"getTabs"}
        E< {"id":5,"method":"getTabs"}
        "#,
    );
}

#[test]
fn rule_03_an_id_comes_back_exactly_as_the_client_wrote_it() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        A> {"id":7,"method":"getTabs"}
        E< {"id":"conn-1:7"}
        A> {"id":"7","method":"getTabs"}
        E< {"id":"conn-1:7#1"}
        A> {"id":"550e8400-e29b-41d4-a716-446655440000","method":"getTabs"}
        E< {"id":"conn-1:550e8400-e29b-41d4-a716-446655440000"}
        A> {"id":"a:b","method":"getTabs"}
        E< {"id":"conn-1:a:b"}
        A> {"id":-1,"method":"getTabs"}
        E< {"id":"conn-1:-1"}
        E> {"id":"conn-1:-1","result":{"n":5}}
        A< {"id":-1,"result":{"n":5}}
        E> {"id":"conn-1:a:b","result":{"n":4}}
        A< {"id":"a:b","result":{"n":4}}
        E> {"id":"conn-1:550e8400-e29b-41d4-a716-446655440000","result":{"n":3}}
        A< {"id":"550e8400-e29b-41d4-a716-446655440000","result":{"n":3}}
        E> {"id":"conn-1:7#1","result":{"n":2}}
        A< {"id":"7","result":{"n":2}}
        E> {"id":"conn-1:7","result":{"n":1}}
        A< {"id":7,"result":{"n":1}}
        A> {"id":null,"method":"getTabs"}
        A< {"id":null,"error":{"code":-32600}}
        A> {"id":1.5,"method":"getTabs"}
        A< {"id":1.5,"error":{"code":-32600}}
        A> {"id":true,"method":"getTabs"}
        A< {"error":{"code":-32600}}
        "#,
    );
}

#[test]
fn rule_04_mapped_ids_have_a_colon_and_kept_ids_never_do() {
    let mut conversation = play_with(with_id_mode(CommandIdMode::Preserve), CONNECTED);
    conversation.continue_with(
        r#"
        A> {"id":"a:b","method":"getTabs"}
        E< {"id":1}
        A> {"id":"a-b","method":"getTabs"}
        E< {"id":"a-b"}
        "#,
    );
    conversation.continue_with(BOB);
    conversation.continue_with(
        r#"
        B> {"id":"a-b","method":"getTabs"}
        E< {"id":"conn-2:a-b"}
        A> {"id":"a-c","method":"getTabs"}
        E< {"id":"conn-1:a-c"}
        "#,
    );
}

#[test]
fn rule_05_ids_that_extensions_take_for_none_or_would_change_are_never_sent() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        A> {"id":0,"method":"getTabs"}
        E< {"id":"conn-1:0"}
        E> {"id":"conn-1:0","result":{}}
        A< {"id":0,"result":{}}
        A> {"id":"","method":"getTabs"}
        E< {"id":"conn-1:"}
        E> {"id":"conn-1:","result":{}}
        A< {"id":"","result":{}}
        "#,
    );
    let mut conversation = play_with(with_id_mode(CommandIdMode::Preserve), CONNECTED);
    conversation.continue_with(
        r#"
        A> {"id":0,"method":"getTabs"}
        E< {"id":1}
        A> {"id":"","method":"getTabs"}
        E< {"id":2}
        A> {"id":-5,"method":"getTabs"}
        E< {"id":3}
        A> {"id":12345678901234567890,"method":"getTabs"}
        E< {"id":4}
        E> {"id":1,"result":{}}
        A< {"id":0,"result":{}}
        E> {"id":4,"result":{}}
        A< {"id":12345678901234567890,"result":{}}
        "#,
    );
}

#[test]
fn rule_12_two_clients_of_one_extension_may_use_the_same_ids() {
    let mut conversation = connected();
    conversation.continue_with(BOB);
    conversation.continue_with(
        r#"
        A> {"id":1,"method":"getTabs"}
        B> {"id":1,"method":"getTabs"}
        E< {"id":"conn-1:1","method":"getTabs"}
        E< {"id":"conn-2:1","method":"getTabs"}
        E> {"id":"conn-2:1","result":{"tabs":[]}}
        B< {"id":1,"result":{"tabs":[]}}
        E> {"id":"conn-1:1","result":{"tabs":[{"id":1}]}}
        A< {"id":1,"result":{"tabs":[{"id":1}]}}
        "#,
    );
}

#[test]
fn rule_18_reserved_ids_are_refused_and_answers_to_them_are_dropped() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        A> {"id":"proxy:1","method":"getTabs"}
        A< {"id":"proxy:1","error":{"code":-32600}}
        A> {"id":"\u0070roxy:1","method":"getTabs"}
        A< {"id":"proxy:1","error":{"code":-32600}}
        A> {"id":"ext:1","method":"getTabs"}
        A< {"id":"ext:1","error":{"code":-32600}}
        E> {"id":"proxy:77","result":{"accessToken":"x"}}
        E> {"id":"proxy:auth","result":{}}
        "#,
    );
    let counters = conversation.relay.counters();
    assert_eq!((counters.late_answers, counters.ignored), (1, 1));
}

#[test]
fn rule_19_an_id_is_taken_only_while_its_request_is_open() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A> {"id":1,"method":"list_extensions"}
        A< {"id":1,"result":{}}
        A> {"id":1,"method":"list_extensions"}
        A< {"id":1,"result":{}}
        A> {"id":7,"method":"getTabs"}
        E< {"id":"conn-1:7"}
        A> {"id":7,"method":"getTabs"}
        A< {"id":7,"error":{"code":-32600}}
        E> {"id":"conn-1:7","result":{"n":1}}
        A< {"id":7,"result":{"n":1}}
        A> {"id":7,"method":"getTabs"}
        E< {"id":"conn-1:7#1"}
        E> {"id":"conn-1:7","result":{"n":2}}
        E> {"id":"conn-1:7#1","result":{"n":3}}
        A< {"id":7,"result":{"n":3}}
        "#,
    );
    assert_eq!(conversation.relay.counters().late_answers, 1);
}
