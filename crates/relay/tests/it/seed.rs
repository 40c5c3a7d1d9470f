//! Every exchange that the protocol's specification shows, between sockets that have joined.

use crate::transcript::{CONNECTED, play};

#[test]
fn an_extension_learns_its_user_and_its_id() {
    play(
        r#"
        E+ extension d1cdb70b
        E< {"jsonrpc":"2.0","method":"authenticated","params":{"user_id":"ada","extension_id":"ext-d1cdb70b"}}
        "#,
    );
}

#[test]
fn a_client_is_authenticated_lists_and_connects() {
    play(
        r#"
        E+ extension chrome
        E< {"method":"authenticated"}
        A+ client
        A< {"jsonrpc":"2.0","id":0,"result":{"authenticated":true,"user_id":"ada","mcp_client_id":"mcp-1"}}
        A> {"jsonrpc":"2.0","id":1,"method":"list_extensions","params":{}}
        A< {"jsonrpc":"2.0","id":1,"result":{"extensions":[{"id":"ext-chrome","name":"Chrome 141","connected":true}]}}
        A> {"jsonrpc":"2.0","id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":1,"result":{"connection_id":"conn-2","extension_id":"ext-chrome","extension_name":"Chrome 141"}}
        E< {"method":"connection_status","params":{"connections_used":0}}
        "#,
    );
}

#[test]
fn ids_are_mapped_and_restored_and_the_connection_id_is_stripped() {
    let mut conversation = play(CONNECTED);
    conversation.continue_with(
        r#"
        A> {"jsonrpc":"2.0","id":100,"method":"createTab","params":{"url":"https://example.com","stealth":true},"connectionId":"conn-1"}
        E< {"jsonrpc":"2.0","id":"conn-1:100","method":"createTab","params":{"url":"https://example.com","stealth":true}}
        E> {"jsonrpc":"2.0","id":"conn-1:100","result":{"tabId":42,"url":"https://example.com"}}
        A< {"jsonrpc":"2.0","id":100,"result":{"tabId":42,"url":"https://example.com"}}
        "#,
    );
}

#[test]
fn two_clients_may_use_the_same_ids() {
    let mut conversation = play(CONNECTED);
    conversation.continue_with(
        r#"
        B+ client bob
        B< {"id":0,"result":{}}
        B> {"id":1,"method":"connect","params":{"extensionId":"ext-chrome"}}
        B< {"id":1,"result":{"connection_id":"conn-2"}}
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
fn errors_of_an_extension_are_forwarded() {
    let mut conversation = play(CONNECTED);
    conversation.continue_with(
        r#"
        A> {"id":"x","method":"createTab","params":{}}
        E< {"id":"conn-1:x"}
        E> {"id":"conn-1:x","error":{"code":-32000,"message":"Tab creation failed: Permission denied"}}
        A< {"id":"x","error":{"code":-32000,"message":"Tab creation failed: Permission denied"}}
        A> {"id":"y","method":"createTab","params":{}}
        E< {"id":"conn-1:y"}
        E> {"id":"conn-1:y","error":{"message":"no","stack":"at x.js"}}
        A< {"id":"y","error":{"code":-32000,"message":"no"}}
        A> {"id":"z","method":"createTab","params":{}}
        E< {"id":"conn-1:z"}
        E> {"id":"conn-1:z"}
        A< {"id":"z","error":{"code":-32603}}
        "#,
    );
}

#[test]
fn a_client_is_told_when_its_extension_leaves() {
    let mut conversation = play(CONNECTED);
    conversation.continue_with(
        r#"
        E-
        A< {"jsonrpc":"2.0","method":"disconnected","params":{"connection_id":"conn-1","reason":"Extension closed"}}
        A> {"id":2,"method":"list_extensions"}
        A< {"id":2,"result":{"extensions":[]}}
        A> {"id":3,"method":"list_extensions","params":{"include_offline":true}}
        A< {"id":3,"result":{"extensions":[{"id":"ext-chrome","connected":false}]}}
        A> {"id":4,"method":"getTabs"}
        A< {"id":4,"error":{"code":-32003,"data":{"reason":"not_connected"}}}
        A> {"id":5,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":5,"error":{"code":-32000,"message":"Extension not found or not accessible","data":{"reason":"extension_not_found"}}}
        "#,
    );
}

#[test]
fn a_client_has_one_connection_and_may_disconnect_at_any_time() {
    let mut conversation = play(CONNECTED);
    conversation.continue_with(
        r#"
        A> {"id":2,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":2,"error":{"code":-32001,"message":"MCP client already connected to an extension"}}
        A> {"id":3,"method":"disconnect","params":{}}
        A< {"id":3,"result":{"disconnected":true}}
        E< {"method":"disconnected","params":{"connection_id":"conn-1"}}
        A> {"id":4,"method":"disconnect"}
        A< {"id":4,"result":{"disconnected":true}}
        A> {"id":5,"method":"connect","params":{"extension_id":"ext-chrome"}}
        A< {"id":5,"result":{"connection_id":"conn-2"}}
        A> {"id":6,"method":"connect","params":{"extension_id":7}}
        A< {"id":6,"error":{"code":-32602}}
        A> {"id":7,"method":"connect"}
        A< {"id":7,"error":{"code":-32602}}
        "#,
    );
}

#[test]
fn status_comes_often_enough_to_keep_a_service_worker_awake() {
    let mut conversation = play(CONNECTED);
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
