//! Batches of the `proxy` tool: what their parts are sent with, and how far they are.

use insta::assert_snapshot;

use crate::transcript::{ECHO, Transcript, server, settings};

const TWO_CALLS: &str = r#"{"action":"batch","operations":[{"action":"call","type":"tool","path":"a_echo"},{"action":"call","type":"tool","path":"a_echo"}]}"#;

fn proxy_call(arguments: &str, others: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"proxy","arguments":{arguments}{others}}}}}"#
    )
}

fn progress(token: u32, progress: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},{progress}}}}}"#
    )
}

#[test]
fn a_batch_of_a_modern_client_is_sent_with_its_meta() {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    hub.server_opens(1);
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#,
    );
    hub.server_opens(1);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}}"#);
    hub.server_says(
        1,
        &format!(
            r#"{{"jsonrpc":"2.0","id":3,"result":{{"tools":{ECHO},"resultType":"complete"}}}}"#
        ),
    );
    hub.client();
    hub.take();
    hub.client_says(1, &proxy_call(TWO_CALLS, r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"m","version":"1"},"com.example/trace":"t"}"#));
    assert_snapshot!(hub.take());
}

#[test]
fn the_progress_of_a_batch_is_that_of_its_operations_and_never_goes_back() {
    let mut hub = Transcript::ready(ECHO);
    hub.client_says(
        1,
        &proxy_call(TWO_CALLS, r#","_meta":{"progressToken":"t"}"#),
    );
    hub.server_says(
        1,
        &progress(3, r#""progress":1,"total":4,"message":"begun""#),
    );
    hub.server_says(1, &progress(4, r#""progress":1"#));
    // These say no more than is known.
    hub.server_says(1, &progress(3, r#""progress":1,"total":4"#));
    hub.server_says(1, &progress(4, r#""progress":0"#));
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":4,"result":{"content":[]}}"#);
    hub.server_says(1, &progress(3, r#""progress":3,"total":4"#));
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":3,"result":{"content":[]}}"#);
    assert_snapshot!(hub.take());
}

#[test]
fn a_task_is_asked_for_through_the_proxy_tool() {
    let mut hub = Transcript::ready(ECHO);
    let one = r#"{"action":"call","type":"tool","path":"a_echo"}"#;
    hub.client_says(1, &proxy_call(one, r#","task":{"ttl":60000}"#));
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":3,"result":{"task":{"taskId":"t-1","status":"working"}}}"#,
    );
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"t-1"}}"#,
    );
    assert_snapshot!(hub.take());
}
