//! Results that are kept and given again.

use std::time::Duration;

use insta::assert_snapshot;
use mcp_proxy_hub::ServerSettings;
use mcp_proxy_hub::config::SharingScope;

use crate::transcript::{Transcript, server, settings};

const TOOLS: &str = r#"[{"name":"look","inputSchema":{},"annotations":{"readOnlyHint":true}},{"name":"change","inputSchema":{}}]"#;

fn caching() -> ServerSettings {
    let mut caching = server("a");
    caching.cache_ttl = Some(Duration::from_secs(60));
    caching
}

fn ready(settings_of_server: ServerSettings, clients: usize) -> Transcript {
    let mut hub = Transcript::new(settings(), vec![settings_of_server]);
    hub.start_server(1, TOOLS);
    for client in 1..=clients {
        hub.client();
        hub.initialize(client, "{}");
    }
    hub.take();
    hub
}

fn call(id: u32, tool: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"{more}}}}}"#
    )
}

fn result(id: u32, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

#[test]
fn an_equal_call_gets_the_result_that_was_kept() {
    let mut hub = ready(caching(), 2);
    hub.client_says(1, &call(1, "a_look", r#","arguments":{"x": 1}"#));
    hub.server_says(
        1,
        &result(3, r#"{"content":[{"type":"text","text":"one"}]}"#),
    );
    hub.client_says(
        2,
        &call(
            7,
            "a_look",
            r#","arguments":{ "x":1 },"_meta":{"progressToken":1}"#,
        ),
    );
    hub.client_says(
        2,
        &call(
            8,
            "proxy",
            r#","arguments":{"action":"call","type":"tool","path":"a_look","args":{"x":1}}"#,
        ),
    );
    hub.client_says(1, &call(2, "a_look", r#","arguments":{"x":1.0}"#));
    hub.client_says(
        1,
        &call(
            3,
            "a_look",
            r#","arguments":{"x":1},"_meta":{"mcp-proxy/no-cache":true}"#,
        ),
    );
    hub.server_says(
        1,
        &result(5, r#"{"content":[{"type":"text","text":"two"}]}"#),
    );
    hub.client_says(1, &call(4, "a_look", r#","arguments":{"x":1}"#));
    hub.wait(Duration::from_secs(60));
    hub.client_says(1, &call(5, "a_look", r#","arguments":{"x":1}"#));
    assert_snapshot!(hub.take());
}

#[test]
fn only_whole_results_of_tools_that_read_are_kept() {
    let mut hub = ready(caching(), 1);
    hub.client_says(1, &call(1, "a_change", ""));
    hub.server_says(1, &result(3, r#"{"content":[]}"#));
    hub.client_says(1, &call(2, "a_change", ""));
    let unkept = [
        r#"{"content":[],"isError":true}"#,
        r#"{"task":{"taskId":"t","status":"working"}}"#,
        r#"{"resultType":"input_required"}"#,
    ];
    for (number, answer) in (5..).zip(unkept) {
        hub.client_says(1, &call(number, "a_look", ""));
        hub.server_says(1, &result(number, answer));
    }
    hub.client_says(1, &call(8, "a_look", ""));
    assert_snapshot!(hub.take());
}

#[test]
fn results_are_dropped_with_the_tools_and_with_the_server() {
    let mut hub = ready(caching(), 1);
    hub.client_says(1, &call(1, "a_look", ""));
    hub.server_says(1, &result(3, r#"{"content":[]}"#));
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
    );
    hub.client_says(1, &call(2, "a_look", ""));
    hub.server_says(1, &result(5, r#"{"content":[]}"#));
    hub.server_ends(1, "gone");
    hub.wait(Duration::from_secs(1));
    hub.start_server(1, TOOLS);
    hub.client_says(1, &call(3, "a_look", ""));
    assert_snapshot!(hub.take());
}

#[test]
fn sessions_with_servers_of_their_own_share_no_results() {
    let mut own = caching();
    own.scope = SharingScope::Session;
    let mut hub = ready(own, 2);
    hub.client_says(1, &call(1, "a_look", ""));
    hub.start_server(1, TOOLS);
    hub.server_says(1, &result(3, r#"{"content":[]}"#));
    hub.client_says(1, &call(2, "a_look", ""));
    hub.client_says(2, &call(1, "a_look", ""));
    assert_snapshot!(hub.take());
}

#[test]
fn a_result_that_was_on_its_way_when_the_tools_changed_is_not_kept() {
    let mut hub = ready(caching(), 1);
    hub.client_says(1, &call(1, "a_look", ""));
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
    );
    hub.server_says(1, &result(3, r#"{"content":[]}"#));
    // The new list is not there yet.
    hub.client_says(1, &call(2, "a_look", ""));
    let changed = TOOLS.replace(r#""name":"change""#, r#""name":"alter""#);
    hub.server_says(1, &result(4, &format!(r#"{{"tools":{changed}}}"#)));
    hub.server_says(1, &result(5, r#"{"content":[]}"#));
    hub.client_says(1, &call(3, "a_look", ""));
    hub.server_says(1, &result(6, r#"{"content":[]}"#));
    hub.client_says(1, &call(4, "a_look", ""));
    assert_snapshot!(hub.take());
}
