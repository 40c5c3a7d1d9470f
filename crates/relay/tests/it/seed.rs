//! Every exchange that the protocol's specification shows, in its order and with its messages.
//!
//! | the specification's section | tests |
//! |---|---|
//! | ID Format Requirements and Mapping | `rules::ids` (`rule_01_…`, `rule_12_…`) |
//! | Connection Phase 1, `authenticate` | `an_extension_is_asked_answers_and_is_confirmed` |
//! | Connection Phase 2, `mcp_handshake` | `a_client_shows_its_token_and_is_answered`, `rule_08_…`, `rule_23_…` |
//! | Connection Phase 3, `list_extensions` | `a_client_lists_its_extensions` |
//! | Connection Phase 4, `connect` | `a_client_connects_to_an_extension_or_learns_why_not` |
//! | Browser Automation Commands | `a_command_is_forwarded_and_its_answer_comes_back` |
//! | Error Handling | `errors_of_an_extension_are_forwarded` |
//! | Status Updates | `status_comes_often_enough_to_keep_a_service_worker_awake` |
//! | Disconnection Notice | `a_client_is_told_when_its_extension_leaves` |
//! | `disconnect` | `a_client_may_disconnect_at_any_time` |
//! | Forwarded Methods | `every_listed_method_is_forwarded` |
//! | Connection Lifecycle | `the_lifecycle_of_a_client_from_beginning_to_end`, `a_client_that_leaves_makes_room_for_others` |
//! | Error Codes | `each_error_code_is_used_as_listed` |
//! | Security Considerations | `rule_18_…`, `rule_21_…`, `limits`, and the program's hostile suite |
//! | Critical rules for extensions | `an_answer_without_a_result_is_an_error` |

use crate::scenes::{BOB, connected, with_tab};
use crate::transcript::play;

#[test]
fn an_extension_is_asked_answers_and_is_confirmed() {
    play(
        r#"
        E+ /extension
        E<= {"jsonrpc":"2.0","id":"proxy:1","method":"authenticate","params":{}}
        E> {"jsonrpc":"2.0","id":"proxy:1","result":{"name":"Chrome 141","accessToken":"token-ada","client_id":"d1cdb70b-b20a-46ed-8fa7-7597a0f2837a"}}
        E<= {"jsonrpc":"2.0","method":"authenticated","params":{"user_id":"ada","extension_id":"ext-d1cdb70b-b20a-46ed-8fa7-7597a0f2837a"}}
        F+ /extension
        F< {"id":"proxy:1","method":"authenticate"}
        F> {"jsonrpc":"2.0","id":"proxy:1","result":{"name":"Chrome 140","accessToken":"token-ada"}}
        F< {"method":"authenticated","params":{"extension_id":"ext-1"}}
        "#,
    );
}

#[test]
fn a_client_shows_its_token_and_is_answered() {
    play(
        r#"
        A+ /mcp
        A> {"jsonrpc":"2.0","id":1,"method":"mcp_handshake","params":{"accessToken":"token-ada"}}
        A<= {"jsonrpc":"2.0","id":1,"result":{"authenticated":true,"user_id":"ada","mcp_client_id":"mcp-1"}}
        B+ /mcp
        B> {"jsonrpc":"2.0","id":1,"method":"mcp_handshake","params":{"accessToken":"eyJhbGciOiJub25lIn0.e30."}}
        B< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Authentication failed: Invalid token"}}
        B<! 4401
        "#,
    );
}

#[test]
fn a_client_lists_its_extensions() {
    play(
        r#"
        A+ client
        A< {"id":0}
        A> {"jsonrpc":"2.0","id":1,"method":"list_extensions","params":{}}
        A<= {"jsonrpc":"2.0","id":1,"result":{"extensions":[]}}
        E+ extension chrome
        E< {"method":"authenticated"}
        F+ extension edge
        F< {"method":"authenticated"}
        A> {"jsonrpc":"2.0","id":2,"method":"list_extensions","params":{}}
        A<= {"jsonrpc":"2.0","id":2,"result":{"extensions":[{"id":"ext-chrome","name":"Chrome 141","connected":true},{"id":"ext-edge","name":"Chrome 141","connected":true}]}}
        "#,
    );
}

#[test]
fn a_client_connects_to_an_extension_or_learns_why_not() {
    play(
        r#"
        E+ extension chrome
        E< {"method":"authenticated"}
        A+ client
        A< {"id":0}
        A> {"jsonrpc":"2.0","id":2,"method":"connect","params":{"extension_id":"ext-unknown"}}
        A< {"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"Extension not found or not accessible"}}
        A> {"jsonrpc":"2.0","id":3,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A<= {"jsonrpc":"2.0","id":3,"result":{"connection_id":"conn-2","extension_id":"ext-chrome","extension_name":"Chrome 141"}}
        A> {"jsonrpc":"2.0","id":4,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"jsonrpc":"2.0","id":4,"error":{"code":-32001,"message":"MCP client already connected to an extension"}}
        "#,
    );
}

#[test]
fn a_command_is_forwarded_and_its_answer_comes_back() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        A> {"jsonrpc":"2.0","id":100,"method":"createTab","params":{"url":"https://example.com","stealth":true},"connectionId":"conn-1"}
        E<= {"jsonrpc":"2.0","id":"conn-1:100","method":"createTab","params":{"url":"https://example.com","stealth":true}}
        E> {"jsonrpc":"2.0","id":"conn-1:100","result":{"tabId":42,"url":"https://example.com"}}
        A<= {"jsonrpc":"2.0","id":100,"result":{"tabId":42,"url":"https://example.com"}}
        "#,
    );
}

#[test]
fn errors_of_an_extension_are_forwarded() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        A> {"id":100,"method":"createTab","params":{}}
        E< {"id":"conn-1:100"}
        E> {"jsonrpc":"2.0","id":"conn-1:100","error":{"code":-32000,"message":"Tab creation failed: Permission denied"}}
        A<= {"jsonrpc":"2.0","id":100,"error":{"code":-32000,"message":"Tab creation failed: Permission denied"}}
        "#,
    );
}

#[test]
fn an_answer_without_a_result_is_an_error() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        A> {"id":1,"method":"createTab","params":{}}
        E< {"id":"conn-1:1"}
        E> {"id":"conn-1:1"}
        A< {"id":1,"error":{"code":-32603}}
        A> {"id":2,"method":"getTabs"}
        E< {"id":"conn-1:2"}
        E> {"id":"conn-1:2","result":{}}
        A<= {"jsonrpc":"2.0","id":2,"result":{}}
        "#,
    );
}

#[test]
fn status_comes_often_enough_to_keep_a_service_worker_awake() {
    let mut conversation = connected();
    for _ in 0..3 {
        conversation.continue_with(
            r#"
            @ 20
            E< {"method":"status","params":{"connected":true,"peer_count":1}}
            A< {"method":"status","params":{"connected":true,"peer_count":1}}
            "#,
        );
    }
}

#[test]
fn a_client_is_told_when_its_extension_leaves() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        E-
        A<= {"jsonrpc":"2.0","method":"disconnected","params":{"connection_id":"conn-1","reason":"Extension closed"}}
        A> {"id":4,"method":"getTabs"}
        A< {"id":4,"error":{"code":-32003,"data":{"reason":"not_connected"}}}
        A> {"id":5,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":5,"error":{"code":-32000,"message":"Extension not found or not accessible"}}
        "#,
    );
}

#[test]
fn a_client_may_disconnect_at_any_time() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        A> {"jsonrpc":"2.0","id":4,"method":"disconnect","params":{}}
        A<= {"jsonrpc":"2.0","id":4,"result":{"disconnected":true}}
        E< {"method":"disconnected","params":{"connection_id":"conn-1"}}
        A> {"id":5,"method":"disconnect","params":{}}
        A< {"id":5,"result":{"disconnected":true}}
        A> {"id":6,"method":"disconnect","connectionId":"conn-1"}
        A< {"id":6,"result":{"disconnected":true}}
        A> {"id":7,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":7,"result":{"connection_id":"conn-2"}}
        "#,
    );
}

#[test]
fn every_listed_method_is_forwarded() {
    let mut conversation = with_tab();
    let methods = [
        ("createTab", r#"{"url":"https://b.test"}"#),
        ("getTabs", "{}"),
        ("selectTab", r#"{"tabId":11}"#),
        ("activateTab", r#"{"tabId":11}"#),
        ("browser_navigate", r#"{"url":"https://b.test"}"#),
        ("goBack", "{}"),
        ("goForward", "{}"),
        ("forwardCDPCommand", r#"{"method":"Page.reload"}"#),
        ("click", r##"{"selector":"#a"}"##),
        ("type", r#"{"text":"x"}"#),
        ("hover", r##"{"selector":"#a"}"##),
        ("screenshot", "{}"),
        ("closeTab", "{}"),
    ];
    for (id, (method, params)) in (10..).zip(methods) {
        conversation.continue_with(&format!(
            r#"
            A> {{"id":{id},"method":"{method}","params":{params}}}
            E<= {{"jsonrpc":"2.0","id":"conn-1:{id}","method":"{method}","params":{params}}}
            E> {{"id":"conn-1:{id}","result":{{"tab":{{"id":11}}}}}}
            A< {{"id":{id},"result":{{}}}}
            "#
        ));
    }
}

#[test]
fn the_lifecycle_of_a_client_from_beginning_to_end() {
    play(
        r#"
        E+ /extension
        E< {"id":"proxy:1","method":"authenticate"}
        E> {"id":"proxy:1","result":{"name":"Chrome 141","accessToken":"token-ada","client_id":"chrome"}}
        E< {"method":"authenticated"}
        A+ /mcp
        A> {"id":1,"method":"mcp_handshake","params":{"accessToken":"token-ada","client_id":"alice"}}
        A< {"id":1,"result":{"authenticated":true}}
        A> {"id":2,"method":"list_extensions","params":{}}
        A< {"id":2,"result":{"extensions":[{"id":"ext-chrome"}]}}
        A> {"id":3,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":3,"result":{"connection_id":"conn-1"}}
        A> {"id":4,"method":"createTab","params":{"url":"https://a.test"},"connectionId":"conn-1"}
        E< {"id":"conn-1:4","method":"createTab","params":{"url":"https://a.test"}}
        E> {"id":"conn-1:4","result":{"tab":{"id":7}}}
        A< {"id":4,"result":{"tab":{"id":7}}}
        E-
        A< {"method":"disconnected","params":{"connection_id":"conn-1"}}
        A-
        "#,
    );
}

#[test]
fn a_client_that_leaves_makes_room_for_others() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A-
        @ 31
        E< {"method":"disconnected","params":{"connection_id":"conn-1"}}
        "#,
    );
    conversation.continue_with(BOB);
    conversation.continue_with(
        r#"
        B> {"id":2,"method":"selectTab","params":{"tabId":11}}
        E< {"id":"conn-2:2","method":"selectTab"}
        E> {"id":"conn-2:2","result":{"tab":{"id":11}}}
        B< {"id":2,"result":{"tab":{"id":11}}}
        "#,
    );
}

#[test]
fn each_error_code_is_used_as_listed() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        A> {"id":1,"method":
        A< {"error":{"code":-32700}}
        A> {"id":2}
        A< {"error":{"code":-32600}}
        A> {"id":3,"method":"status"}
        A< {"id":3,"error":{"code":-32601}}
        A> {"id":4,"method":"connect","params":{}}
        A< {"id":4,"error":{"code":-32602}}
        A> {"id":5,"method":"connect","params":{"extension_id":7}}
        A< {"id":5,"error":{"code":-32602}}
        A> {"id":6,"method":"getTabs"}
        E< {"id":"conn-1:6"}
        E> {"id":"conn-1:6"}
        A< {"id":6,"error":{"code":-32603}}
        A> {"id":7,"method":"screenshot"}
        A< {"id":7,"error":{"code":-32003}}
        "#,
    );
}

#[test]
fn a_connection_status_tells_an_extension_who_uses_it() {
    let mut conversation = play("");
    conversation.continue_with(
        r#"
        E+ extension chrome
        E< {"method":"authenticated"}
        E< {"method":"connection_status","params":{"total_browsers":1,"connections_used":0,"total_mcp_clients":0,"active_connections":[]}}
        A+ client alice
        A< {"id":0}
        E< {"method":"connection_status","params":{"total_mcp_clients":1,"connections_to_this_browser":0}}
        A> {"id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":1}
        E< {"method":"connection_status","params":{"max_connections":64,"connections_used":1,"connections_to_this_browser":1,"active_connections":[{"mcp_client_id":"mcp-alice"}]}}
        "#,
    );
}
