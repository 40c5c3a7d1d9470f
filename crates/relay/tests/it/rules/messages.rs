//! Points 6, 7, 8, 9, 15, 16, 17, 20, 22 and 23: what messages look like.

use crate::scenes::{connected, two_clients, with_tab};
use crate::transcript::play;

#[test]
fn rule_06_both_spellings_are_understood() {
    play(
        r#"
        E+ /extension
        E< {"method":"authenticate"}
        E> {"id":"proxy:1","result":{"name":"Chrome 141","accessToken":"token-ada","client_id":"chrome"}}
        E< {"method":"authenticated","params":{"extension_id":"ext-chrome"}}
        F+ /extension
        F< {"method":"authenticate"}
        F> {"id":"proxy:1","result":{"name":"Firefox","access_token":"token-ada","clientId":"firefox"}}
        F< {"method":"authenticated","params":{"extension_id":"ext-firefox"}}
        A+ /mcp
        A> {"id":1,"method":"mcp_handshake","params":{"accessToken":"token-ada","client_id":"alice"}}
        A< {"id":1,"result":{"mcp_client_id":"mcp-alice"}}
        A> {"id":2,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":2,"result":{"connection_id":"conn-1"}}
        A> {"id":3,"method":"getTabs","connectionId":"conn-1"}
        E< {"id":"conn-1:3"}
        B+ /mcp
        B> {"id":1,"method":"mcp_handshake","params":{"access_token":"token-ada","clientId":"bob"}}
        B< {"id":1,"result":{"mcp_client_id":"mcp-bob"}}
        B> {"id":2,"method":"connect","params":{"extensionId":"ext-firefox"}}
        B< {"id":2,"result":{"connection_id":"conn-2"}}
        B> {"id":3,"method":"getTabs","connection_id":"conn-2"}
        F< {"id":"conn-2:3"}
        "#,
    );
}

#[test]
fn rule_07_an_extension_is_passive_but_for_one_notification() {
    let mut conversation = two_clients();
    conversation.continue_with(
        r#"
        E> {"id":"ext:1","method":"anything"}
        E< {"id":"ext:1","error":{"code":-32601,"data":{"reason":"extension_request"}}}
        E> {"method":"build_info","params":{"buildTimestamp":1}}
        E> {"type":"handshake","browser":"chrome"}
        E> {"id":null,"error":{"code":-32700}}
        E> nonsense
        E> {"id":"conn-1:77","result":{}}
        E> {"id":5,"result":{}}
        E> {"method":"notifications/tab_info_update","params":{"currentTab":{"id":11}}}
        A<= {"jsonrpc":"2.0","method":"notifications/tab_info_update","params":{"currentTab":{"id":11}}}
        E> {"method":"notifications/tab_info_update","params":{"currentTab":null}}
        A< {"method":"notifications/tab_info_update","params":{"currentTab":null}}
        B< {"method":"notifications/tab_info_update","params":{"currentTab":null}}
        "#,
    );
    let counters = conversation.relay.counters();
    assert_eq!((counters.ignored, counters.late_answers), (4, 3));
}

#[test]
fn rule_08_failed_authentication_is_an_error_for_a_client_and_a_close_for_both() {
    play(
        r#"
        A+ /mcp
        A> {"id":7,"method":"mcp_handshake","params":{"accessToken":"forged"}}
        A< {"id":7,"error":{"code":-32000,"message":"Authentication failed: Invalid token"}}
        A<! 4401
        E+ /extension
        E< {"id":"proxy:1","method":"authenticate"}
        E> {"id":"proxy:1","result":{"name":"Chrome 141","accessToken":"forged"}}
        E<! 4401
        F+ /extension
        F< {"id":"proxy:1","method":"authenticate"}
        F> {"id":"proxy:1","result":{"name":"Chrome 141"}}
        F<! 4401
        "#,
    );
}

#[test]
fn rule_09_unknown_methods_are_forwarded_and_only_the_relays_own_names_are_refused() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"neverHeardOf","params":{"x":1}}
        E< {"id":"conn-1:3","method":"neverHeardOf","params":{"x":1}}
        E> {"id":"conn-1:3","error":{"message":"Unknown command","stack":"at x.js"}}
        A<= {"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"Unknown command"}}
        A> {"id":4,"method":"authenticate","params":{}}
        A< {"id":4,"error":{"code":-32601}}
        A> {"id":5,"method":"serverShuttingDown"}
        A< {"id":5,"error":{"code":-32601}}
        A> {"id":6,"method":"connection_status"}
        A< {"id":6,"error":{"code":-32601}}
        "#,
    );
}

#[test]
fn rule_15_results_pass_unchanged_and_both_forms_name_the_tab() {
    for result in [
        r#"{"tabId":42,"url":"https://example.com","x":1.0}"#,
        r#"{"success":true,"activated":true,"tab":{"id":42,"title":"t"},"x":1.0}"#,
    ] {
        let mut conversation = connected();
        conversation.continue_with(&format!(
            r#"
            A> {{"id":2,"method":"createTab","params":{{}}}}
            E< {{"id":"conn-1:2"}}
            E> {{"id":"conn-1:2","result":{result}}}
            A<= {{"jsonrpc":"2.0","id":2,"result":{result}}}
            A> {{"id":3,"method":"screenshot","params":{{"tabId":42}}}}
            E< {{"id":"conn-1:3","params":{{"tabId":42}}}}
            "#
        ));
    }
}

#[test]
fn rule_16_navigation_is_forwarded_under_the_name_that_the_client_uses() {
    let mut conversation = with_tab();
    for (id, method) in (3..).zip(["navigate", "browser_navigate", "goBack", "goForward"]) {
        conversation.continue_with(&format!(
            r#"
            A> {{"id":{id},"method":"{method}","params":{{"url":"https://b.test"}}}}
            E<= {{"jsonrpc":"2.0","id":"conn-1:{id}","method":"{method}","params":{{"url":"https://b.test"}}}}
            E> {{"id":"conn-1:{id}","result":{{}}}}
            A< {{"id":{id},"result":{{}}}}
            "#
        ));
    }
}

#[test]
fn rule_17_jsonrpc_may_be_missing_and_is_always_written() {
    play(
        r#"
        E+ /extension
        E<= {"jsonrpc":"2.0","id":"proxy:1","method":"authenticate","params":{}}
        E> {"id":"proxy:1","result":{"accessToken":"token-ada","client_id":"chrome"}}
        E<= {"jsonrpc":"2.0","method":"authenticated","params":{"user_id":"ada","extension_id":"ext-chrome"}}
        A+ /mcp
        A> {"id":1,"method":"mcp_handshake","params":{"accessToken":"token-ada"}}
        A<= {"jsonrpc":"2.0","id":1,"result":{"authenticated":true,"user_id":"ada","mcp_client_id":"mcp-1"}}
        A> {"id":2,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A<= {"jsonrpc":"2.0","id":2,"result":{"connection_id":"conn-2","extension_id":"ext-chrome","extension_name":"Browser"}}
        A> {"id":3,"method":"getTabs","extra":true}
        E<= {"jsonrpc":"2.0","id":"conn-2:3","method":"getTabs"}
        E> {"id":"conn-2:3","result":{},"extra":true}
        A<= {"jsonrpc":"2.0","id":3,"result":{}}
        "#,
    );
}

#[test]
fn rule_20_a_status_has_a_timestamp_with_an_offset_without_a_colon() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        @ 20
        E<= {"jsonrpc":"2.0","method":"status","params":{"connected":true,"peer_count":1,"timestamp":"2025-10-20T19:44:13.163+0000"}}
        A<= {"jsonrpc":"2.0","method":"status","params":{"connected":true,"peer_count":1,"timestamp":"2025-10-20T19:44:13.163+0000"}}
        "#,
    );
}

#[test]
fn rule_22_faults_that_share_a_code_have_a_reason() {
    play(
        r#"
        A+ /mcp
        A> {"id":1,"method":"mcp_handshake","params":{"accessToken":"token-ada"}}
        A< {"id":1,"result":{"authenticated":true}}
        A> {"id":2,"method":"connect","params":{"extension_id":"ext-none"}}
        A<= {"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"Extension not found or not accessible","data":{"reason":"extension_not_found"}}}
        B+ /mcp
        B> {"id":1,"method":"mcp_handshake","params":{"accessToken":"forged"}}
        B<= {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Authentication failed: Invalid token","data":{"reason":"auth_failed"}}}
        B<! 4401
        "#,
    );
}

#[test]
fn rule_23_a_handshake_without_an_id_is_acknowledged_by_a_notification() {
    play(
        r#"
        A+ /mcp
        A> {"method":"mcp_handshake","params":{"accessToken":"token-ada","client_id":"old"}}
        A<= {"jsonrpc":"2.0","method":"handshake_ack","params":{"authenticated":true,"user_id":"ada","mcp_client_id":"mcp-old"}}
        A> {"id":1,"method":"list_extensions"}
        A< {"id":1,"result":{"extensions":[]}}
        "#,
    );
}
