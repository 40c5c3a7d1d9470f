//! Extensions that attach to one tab for all their clients: the relay selects the caller's tab first.

use mcp_proxy_relay::RelaySettings;

use crate::scenes::{BOB, CONNECTED, WITH_TAB, connected};
use crate::transcript::{Conversation, play_with};

const BOBS_TAB: &str = r#"
    B> {"id":2,"method":"createTab","params":{}}
    E< {"id":"conn-2:2"}
    E> {"id":"conn-2:2","result":{"tab":{"id":12}}}
    B< {"id":2}
"#;

/// Two clients, each with a tab. The extension is attached to the second one's.
fn two_tabs() -> Conversation {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        E> {"method":"build_info","params":{"buildTimestamp":"2026-08-10"}}
        "#,
    );
    conversation.continue_with(WITH_TAB);
    conversation.continue_with(BOB);
    conversation.continue_with(BOBS_TAB);
    conversation
}

#[test]
fn the_callers_tab_is_selected_before_its_command_is_sent() {
    let mut conversation = two_tabs();
    conversation.continue_with(
        r#"
        B> {"id":3,"method":"screenshot"}
        E< {"id":"conn-2:3"}
        A> {"id":3,"method":"screenshot"}
        A> {"id":4,"method":"screenshot"}
        E> {"id":"conn-2:3","result":{"of":12}}
        B< {"id":3,"result":{"of":12}}
        E< {"id":"proxy:2","method":"getTabs"}
        E> {"id":"proxy:2","result":{"tabs":[{"id":5},{"id":11},{"id":12}]}}
        E<= {"jsonrpc":"2.0","id":"proxy:3","method":"selectTab","params":{"tabIndex":1,"activate":false}}
        B> {"id":4,"method":"screenshot"}
        E> {"id":"proxy:3","result":{"success":true,"tab":{"id":11}}}
        E< {"id":"conn-1:3","method":"screenshot"}
        E> {"id":"conn-1:3","result":{"of":11}}
        A< {"id":3,"result":{"of":11}}
        E< {"id":"proxy:4","method":"getTabs"}
        E> {"id":"proxy:4","result":{"tabs":[{"id":5},{"id":11},{"id":12}]}}
        E< {"id":"proxy:5","method":"selectTab","params":{"tabIndex":2}}
        E> {"id":"proxy:5","result":{"tab":{"id":12}}}
        E< {"id":"conn-2:4","method":"screenshot"}
        "#,
    );
}

#[test]
fn commands_in_the_attached_tab_are_sent_at_once_and_lists_at_any_time() {
    let mut conversation = two_tabs();
    conversation.continue_with(
        r#"
        B> {"id":3,"method":"screenshot"}
        E< {"id":"conn-2:3"}
        B> {"id":4,"method":"screenshot"}
        E< {"id":"conn-2:4"}
        A> {"id":3,"method":"createTab","params":{}}
        A> {"id":4,"method":"getTabs"}
        B> {"id":5,"method":"getTabs"}
        E< {"id":"conn-2:5","method":"getTabs"}
        E> {"id":"conn-2:4","result":{}}
        B< {"id":4}
        E> {"id":"conn-2:3","result":{}}
        B< {"id":3}
        E< {"id":"conn-1:3","method":"createTab"}
        E< {"id":"conn-1:4","method":"getTabs"}
        "#,
    );
}

#[test]
fn a_command_fails_if_its_tab_cannot_be_selected() {
    let mut conversation = two_tabs();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"screenshot"}
        E< {"id":"proxy:2","method":"getTabs"}
        E> {"id":"proxy:2","result":{"tabs":[{"id":11},{"id":12}]}}
        E< {"id":"proxy:3","method":"selectTab","params":{"tabIndex":0}}
        E> {"id":"proxy:3","result":{"tab":{"id":12}}}
        A< {"id":3,"error":{"code":-32003,"data":{"reason":"tab_unavailable","delivered":false}}}
        A> {"id":4,"method":"screenshot"}
        E< {"id":"proxy:4","method":"getTabs"}
        E> {"id":"proxy:4","result":{"tabs":[{"id":12}]}}
        A< {"id":4,"error":{"code":-32003,"data":{"reason":"tab_unavailable"}}}
        A> {"id":5,"method":"screenshot"}
        E< {"id":"proxy:5","method":"getTabs"}
        @ 11
        A< {"id":5,"error":{"code":-32005,"data":{"delivered":false}}}
        B> {"id":3,"method":"screenshot"}
        E< {"id":"proxy:6","method":"getTabs"}
        "#,
    );
}

#[test]
fn the_tab_of_a_client_that_left_while_it_was_opened_is_not_used_for_others() {
    let mut conversation = two_tabs();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"createTab","params":{}}
        E< {"id":"conn-1:3"}
        B> {"id":3,"method":"screenshot"}
        A> {"id":4,"method":"disconnect"}
        A< {"id":3,"error":{"code":-32004}}
        A< {"id":4}
        E< {"method":"disconnected"}
        E> {"id":"conn-1:3","result":{"tab":{"id":30}}}
        E< {"id":"proxy:2","method":"getTabs"}
        E> {"id":"proxy:2","result":{"tabs":[{"id":11},{"id":12},{"id":30}]}}
        E< {"id":"proxy:3","method":"selectTab","params":{"tabIndex":1}}
        E> {"id":"proxy:3","result":{"tab":{"id":12}}}
        E< {"id":"conn-2:3","method":"screenshot"}
        "#,
    );
}

#[test]
fn a_flag_makes_every_extension_one_of_these_and_a_reconnect_selects_again() {
    let settings = RelaySettings {
        shared_debugger: true,
        ..RelaySettings::default()
    };
    let mut conversation = play_with(settings, CONNECTED);
    conversation.continue_with(WITH_TAB);
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"screenshot"}
        E< {"id":"conn-1:3"}
        E> {"id":"conn-1:3","result":{}}
        A< {"id":3}
        F+ extension chrome
        E<! 4409
        F< {"method":"authenticated"}
        A> {"id":4,"method":"screenshot"}
        F< {"id":"proxy:2","method":"getTabs"}
        F> {"id":"proxy:2","result":{"tabs":[{"id":11}]}}
        F< {"id":"proxy:3","method":"selectTab"}
        F> {"id":"proxy:3","result":{"tab":{"id":11}}}
        F< {"id":"conn-1:4","method":"screenshot"}
        "#,
    );
}

#[test]
fn a_tab_named_by_its_index_is_listed_once_while_its_command_waits() {
    let mut conversation = two_tabs();
    conversation.continue_with(
        r#"
        B> {"id":3,"method":"screenshot"}
        E< {"id":"conn-2:3"}
        A> {"id":3,"method":"selectTab","params":{"tabIndex":0}}
        E< {"id":"proxy:2","method":"getTabs"}
        E> {"id":"proxy:2","result":{"tabs":[{"id":11},{"id":12}]}}
        E> {"method":"build_info"}
        E> {"id":"conn-2:3","result":{}}
        B< {"id":3}
        E< {"id":"conn-1:3","method":"selectTab","params":{"tabId":11,"tabIndex":0}}
        "#,
    );
}
