//! Points 2, 10, 11, 13 and 14: connections.

use mcp_proxy_relay::RelaySettings;

use crate::scenes::{BOB, CONNECTED, WITH_TAB, connected, with_tab};
use crate::transcript::play_with;

/// A client that is connected to two browsers.
const TWO_BROWSERS: &str = r#"
    E+ extension chrome
    E< {"method":"authenticated"}
    F+ extension firefox
    F< {"method":"authenticated"}
    A+ client alice
    A< {"id":0}
    A> {"id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}
    A< {"id":1,"result":{"connection_id":"conn-1"}}
    A> {"id":2,"method":"connect","params":{"extension_id":"ext-firefox"}}
    A< {"id":2,"result":{"connection_id":"conn-2"}}
"#;

fn multi_connection() -> RelaySettings {
    RelaySettings {
        multi_connection: true,
        ..RelaySettings::default()
    }
}

#[test]
fn rule_02_a_connection_id_is_optional_checked_and_never_forwarded() {
    let mut conversation = connected();
    conversation.continue_with(BOB);
    conversation.continue_with(
        r#"
        A> {"id":2,"method":"getTabs","connectionId":"conn-1"}
        E<= {"jsonrpc":"2.0","id":"conn-1:2","method":"getTabs"}
        A> {"id":3,"method":"getTabs","connection_id":"conn-1","params":{}}
        E<= {"jsonrpc":"2.0","id":"conn-1:3","method":"getTabs","params":{}}
        A> {"id":4,"method":"getTabs"}
        E<= {"jsonrpc":"2.0","id":"conn-1:4","method":"getTabs"}
        A> {"id":5,"method":"getTabs","connectionId":"conn-2"}
        A< {"id":5,"error":{"code":-32003,"data":{"reason":"wrong_connection"}}}
        A> {"id":6,"method":"getTabs","connectionId":7}
        A< {"id":6,"error":{"code":-32003,"data":{"reason":"wrong_connection"}}}
        A> {"id":7,"method":"disconnect","connectionId":"conn-2"}
        A< {"id":7,"error":{"code":-32003,"data":{"reason":"wrong_connection"}}}
        "#,
    );
}

#[test]
fn rule_10_a_list_has_the_connected_extensions_and_others_on_request() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        F+ extension firefox
        F< {"method":"authenticated"}
        A> {"id":2,"method":"list_extensions","params":{}}
        A< {"id":2,"result":{"extensions":[{"id":"ext-chrome","name":"Chrome 141","connected":true},{"id":"ext-firefox","connected":true}]}}
        F-
        A> {"id":3,"method":"list_extensions"}
        A< {"id":3,"result":{"extensions":[{"id":"ext-chrome"}]}}
        A> {"id":4,"method":"list_extensions","params":{"include_offline":true}}
        A< {"id":4,"result":{"extensions":[{"id":"ext-chrome","connected":true},{"id":"ext-firefox","connected":false}]}}
        E-
        A< {"method":"disconnected"}
        A> {"id":5,"method":"list_extensions"}
        A< {"id":5,"result":{"extensions":[]}}
        "#,
    );
}

#[test]
fn rule_11_a_client_has_one_connection() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        F+ extension firefox
        F< {"method":"authenticated"}
        A> {"id":2,"method":"connect","params":{"extension_id":"ext-firefox"}}
        A< {"id":2,"error":{"code":-32001,"message":"MCP client already connected to an extension"}}
        A> {"id":3,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":3,"error":{"code":-32001}}
        A> {"id":4,"method":"disconnect","params":{}}
        A< {"id":4,"result":{"disconnected":true}}
        E< {"method":"disconnected","params":{"connection_id":"conn-1"}}
        A> {"id":5,"method":"connect","params":{"extension_id":"ext-firefox"}}
        A< {"id":5,"result":{"connection_id":"conn-2"}}
        "#,
    );
}

#[test]
fn rule_11_with_several_connections_each_command_names_one() {
    let mut conversation = play_with(multi_connection(), TWO_BROWSERS);
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"getTabs"}
        A< {"id":3,"error":{"code":-32003,"data":{"reason":"connection_not_named"}}}
        A> {"id":3,"method":"getTabs","connectionId":"conn-1"}
        E<= {"jsonrpc":"2.0","id":"conn-1:3","method":"getTabs"}
        A> {"id":4,"method":"getTabs","connectionId":"conn-2"}
        F<= {"jsonrpc":"2.0","id":"conn-2:4","method":"getTabs"}
        A> {"id":3,"method":"getTabs","connectionId":"conn-2"}
        A< {"id":3,"error":{"code":-32600}}
        A> {"id":5,"method":"getTabs","connectionId":"conn-9"}
        A< {"id":5,"error":{"code":-32003,"data":{"reason":"wrong_connection"}}}
        F> {"id":"conn-2:4","result":{"of":"firefox"}}
        A< {"id":4,"result":{"of":"firefox"}}
        E> {"id":"conn-1:3","result":{"of":"chrome"}}
        A< {"id":3,"result":{"of":"chrome"}}
        "#,
    );
}

#[test]
fn rule_11_one_of_several_connections_can_be_ended_and_then_all() {
    let mut conversation = play_with(multi_connection(), TWO_BROWSERS);
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"disconnect","params":{"connection_id":"conn-1"}}
        A< {"id":3,"result":{"disconnected":true}}
        E< {"method":"disconnected","params":{"connection_id":"conn-1"}}
        A> {"id":4,"method":"getTabs"}
        F< {"id":"conn-2:4"}
        A> {"id":5,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":5,"result":{"connection_id":"conn-3"}}
        A> {"id":6,"method":"disconnect"}
        A< {"id":4,"error":{"code":-32004,"data":{"reason":"disconnected","delivered":"unknown"}}}
        A< {"id":6,"result":{"disconnected":true}}
        E< {"method":"disconnected","params":{"connection_id":"conn-3"}}
        F< {"method":"disconnected","params":{"connection_id":"conn-2"}}
        "#,
    );
}

#[test]
fn rule_11_two_connections_to_one_browser_do_not_share_tabs() {
    let mut conversation = play_with(multi_connection(), CONNECTED);
    conversation.continue_with(WITH_TAB);
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":3,"result":{"connection_id":"conn-2"}}
        A> {"id":4,"method":"screenshot","connectionId":"conn-2"}
        A< {"id":4,"error":{"code":-32003,"data":{"reason":"no_tab"}}}
        A> {"id":5,"method":"screenshot","connectionId":"conn-1"}
        E< {"id":"conn-1:5","method":"screenshot"}
        "#,
    );
}

#[test]
fn rule_11_several_connections_are_resumed_one_by_one() {
    let mut conversation = play_with(multi_connection(), TWO_BROWSERS);
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"getTabs","connectionId":"conn-1"}
        E< {"id":"conn-1:3"}
        A> {"id":4,"method":"getTabs","connectionId":"conn-2"}
        F< {"id":"conn-2:4"}
        B+ client alice
        A< {"id":3,"error":{"code":-32004,"data":{"reason":"superseded"}}}
        A< {"id":4,"error":{"code":-32004,"data":{"reason":"superseded"}}}
        A<! 4409
        B< {"id":0,"result":{"mcp_client_id":"mcp-alice"}}
        A-
        B> {"id":1,"method":"connect","params":{"extension_id":"ext-firefox"}}
        B< {"id":1,"result":{"connection_id":"conn-2"}}
        B> {"id":2,"method":"connect","params":{"extension_id":"ext-chrome"}}
        B< {"id":2,"result":{"connection_id":"conn-1"}}
        F-
        B< {"method":"disconnected","params":{"connection_id":"conn-2"}}
        B> {"id":3,"method":"getTabs"}
        E< {"id":"conn-1:3#1"}
        "#,
    );
}

#[test]
fn rule_13_an_extension_is_told_which_client_left_and_who_is_still_there() {
    let mut conversation = connected();
    conversation.continue_with(BOB);
    conversation.continue_with(
        r#"
        A> {"id":2,"method":"disconnect"}
        A< {"id":2,"result":{"disconnected":true}}
        E< {"jsonrpc":"2.0","method":"disconnected","params":{"connection_id":"conn-1"}}
        E< {"method":"connection_status","params":{"connections_to_this_browser":1,"active_connections":[{"connection_id":"conn-2","mcp_client_id":"mcp-bob"}]}}
        "#,
    );
}

#[test]
fn rule_14_after_disconnected_a_client_connects_at_once_and_has_its_connection_back() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        E-
        A< {"method":"disconnected","params":{"connection_id":"conn-1"}}
        F+ extension chrome
        F< {"method":"authenticated","params":{"extension_id":"ext-chrome"}}
        A> {"id":3,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":3,"result":{"connection_id":"conn-1"}}
        A> {"id":4,"method":"screenshot"}
        F< {"id":"conn-1:4"}
        "#,
    );
}
