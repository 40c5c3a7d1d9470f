//! What happens between two stdio peers.

use mcp_proxy_core::CarryEnd;

use crate::transcript::play;

on_both_runtimes!(messages_pass_as_they_are_whatever_they_are);
async fn messages_pass_as_they_are_whatever_they_are() {
    let end = play(
        r#"
        C> {"jsonrpc":"2.0","id":1,"method":"initialize"}
        S< {"jsonrpc":"2.0","id":1,"method":"initialize"}
        S> {"id":1, "result" : {"x":1.0} }
        C< {"id":1, "result" : {"x":1.0} }
        C> not json at all
        S< not json at all
        C> [{"id":2,"method":"a"},{"id":3,"method":"b"}]
        S< [{"id":2,"method":"a"},{"id":3,"method":"b"}]
        S> [{"id":3,"result":1},{"id":2,"error":{}}]
        C< [{"id":3,"result":1},{"id":2,"error":{}}]
        S> {"broken":
        C< {"broken":
        S> {"id":null,"error":{"code":-32700,"message":"x"}}
        C< {"id":null,"error":{"code":-32700,"message":"x"}}
        C.
        S|
        "#,
    )
    .await;
    assert!(matches!(end, CarryEnd::Client));
}

on_both_runtimes!(stray_lines_of_a_server_do_not_reach_the_client);
async fn stray_lines_of_a_server_do_not_reach_the_client() {
    play(
        r#"
        S> Listening on port 3000
        S>
        S> {"jsonrpc":"2.0","method":"notifications/message"}
        C< {"jsonrpc":"2.0","method":"notifications/message"}
        C.
        S|
        "#,
    )
    .await;
}

on_both_runtimes!(a_server_that_printed_no_message_and_lives_on_is_no_server);
async fn a_server_that_printed_no_message_and_lives_on_is_no_server() {
    play(
        r#"
        S> Usage: server [options]
        C> {"jsonrpc":"2.0","id":1,"method":"initialize"}
        S< {"jsonrpc":"2.0","id":1,"method":"initialize"}
        C< ~"code":-31001 ~ Usage: server [options]
        "#,
    )
    .await;
}

on_both_runtimes!(open_requests_learn_why_the_server_ended);
async fn open_requests_learn_why_the_server_ended() {
    let end = play(
        r#"
        C> {"jsonrpc":"2.0","id":"a","method":"tools/call"}
        S< {"jsonrpc":"2.0","id":"a","method":"tools/call"}
        C> {"jsonrpc":"2.0","id":7.0,"method":"tools/call"}
        S< {"jsonrpc":"2.0","id":7.0,"method":"tools/call"}
        S. server `x` exited with status 3
        C< ~"id":"a"
        C< ~"id":7.0
        "#,
    )
    .await;
    assert!(matches!(end, CarryEnd::Failed(failure) if failure.text.contains("status 3")));
}

on_both_runtimes!(the_next_request_learns_it_when_none_is_open);
async fn the_next_request_learns_it_when_none_is_open() {
    play(
        r#"
        S> hello, I am a shell script
        S. server `x` exited with status 0
        C> {"jsonrpc":"2.0","method":"notifications/roots"}
        C> {"jsonrpc":"2.0","id":1,"method":"initialize"}
        C< ~"code":-31002 ~ exited with status 0 ~ hello, I am
        "#,
    )
    .await;
}

on_both_runtimes!(a_server_that_only_prints_garbage_is_given_up);
async fn a_server_that_only_prints_garbage_is_given_up() {
    let garbage = "S> y\n".repeat(1_001);
    let transcript = format!(
        "C> {{\"id\":1,\"method\":\"initialize\"}}\nS< ~initialize\n{garbage}C< ~\"code\":-31001"
    );
    play(&transcript).await;
}

on_both_runtimes!(after_the_clients_end_open_requests_are_still_answered);
async fn after_the_clients_end_open_requests_are_still_answered() {
    let end = play(
        r#"
        C> {"jsonrpc":"2.0","id":1,"method":"slow"}
        S< {"jsonrpc":"2.0","id":1,"method":"slow"}
        C.
        S|
        S> {"jsonrpc":"2.0","id":1,"result":{}}
        C< {"jsonrpc":"2.0","id":1,"result":{}}
        S. done
        "#,
    )
    .await;
    assert!(matches!(end, CarryEnd::Client));
}
