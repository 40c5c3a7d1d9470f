//! The first list that a client gets: it waits for servers that nobody has listed yet, and says what is missing. Calls to a
//! server that is starting wait too, but not for ever.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_hub::config::StartMode;
use mcp_proxy_hub::{OwnToolUse, ServerListing, ServerSettings, ToolExposure};
use serde_json::{Value, json};

use crate::dispatch::{call_tool, dispatch, last};
use crate::transcript::{ECHO, Transcript, call, server, settings};

const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;

pub(crate) fn slow(name: &str) -> ServerSettings {
    ServerSettings {
        start_timeout: Duration::from_secs(60),
        list_timeout: Duration::from_secs(60),
        ..server(name)
    }
}

/// A hub with a server that works, another that takes its time, and a client.
pub(crate) fn cold_start(slow: ServerSettings) -> Transcript {
    let mut hub = Transcript::new(settings(), vec![server("a"), slow]);
    hub.start_server(1, ECHO);
    hub.client();
    hub.initialize(1, "{}");
    hub.wait(Duration::from_millis(900));
    assert!(hub.take().contains(r#"C1< {"jsonrpc":"2.0","id":"init""#));
    hub
}

/// Whether the client got an answer since the last look.
pub(crate) fn is_answered(hub: &mut Transcript) -> bool {
    let said = hub.take();
    let mut lines = said.lines();
    lines.any(|line| line.starts_with("C1< ") && line.contains(r#""id":"#))
}

pub(crate) fn proxy(id: u32, arguments: &Value) -> String {
    call_tool(id, "proxy", arguments)
}

fn count_of_tools(answer: &Value) -> usize {
    answer["result"]["tools"].as_array().unwrap().len()
}

#[test]
fn d39_parked_requests_are_answered_when_the_hub_stops() {
    let mut hub = cold_start(slow("slow"));
    hub.client_says(1, LIST);
    hub.take();
    hub.stops_at_once();
    let refused = last(&hub.take(), "C1");
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(2), &json!(-31001))
    );
}

#[test]
fn d39_work_for_a_request_is_given_up_when_the_hub_stops() {
    let mut hub = cold_start(slow("slow"));
    hub.client_says(1, &dispatch(2, &json!({"action": "list", "refresh": true})));
    hub.take();
    hub.stops_at_once();
    let said = hub.take();
    let refused = last(&said, "C1");
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(2), &json!(-31001))
    );
    // Nothing comes of the lists any more.
    hub.start_server(2, ECHO);
    assert!(!is_answered(&mut hub));
}

#[test]
fn g6_the_first_list_waits_for_a_server_that_was_never_listed() {
    let mut hub = cold_start(slow("slow"));
    hub.client_says(1, LIST);
    hub.wait(Duration::from_secs(5));
    assert!(!is_answered(&mut hub));
    hub.start_server(2, ECHO);
    assert_eq!(count_of_tools(&last(&hub.take(), "C1")), 2);
}

#[test]
fn c1_the_wait_ends_ten_seconds_after_the_start_for_every_client() {
    let mut hub = cold_start(slow("slow"));
    hub.client_says(1, LIST);
    hub.wait(Duration::from_millis(9_000));
    assert!(!is_answered(&mut hub));
    hub.wait(Duration::from_millis(100));
    assert_eq!(count_of_tools(&last(&hub.take(), "C1")), 1);
    hub.client();
    hub.initialize(2, "{}");
    hub.client_says(2, LIST);
    assert_eq!(count_of_tools(&last(&hub.take(), "C2")), 1);
}

#[test]
fn c1_a_known_server_is_not_waited_for_as_long() {
    let known = ServerSettings {
        last_listing: Some(Arc::new(ServerListing {
            tools: vec![r#"{"name":"old"}"#.into()],
            ..ServerListing::default()
        })),
        ..slow("slow")
    };
    let mut hub = cold_start(known);
    hub.client_says(1, LIST);
    assert_eq!(count_of_tools(&last(&hub.take(), "C1")), 2);
}

#[test]
fn c1_a_list_without_the_tools_of_servers_does_not_wait_for_them() {
    let mut settings = settings();
    settings.profiles[0].filter.tools = ToolExposure::None;
    settings.profiles[0].dispatch_tool = OwnToolUse::Absent;
    let mut hub = Transcript::new(settings, vec![slow("slow")]);
    hub.client();
    hub.wait(Duration::from_millis(900));
    hub.client_says(1, LIST);
    assert!(is_answered(&mut hub));
}

#[test]
fn c1_a_request_that_waits_can_be_cancelled() {
    let mut hub = cold_start(slow("slow"));
    hub.client_says(1, LIST);
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#,
    );
    hub.start_server(2, ECHO);
    assert!(!is_answered(&mut hub));
}

#[test]
fn g6_list_and_info_of_the_proxy_tool_wait_for_the_server_that_they_name() {
    let wanted = [
        json!({"action": "list", "type": "tool"}),
        json!({"action": "list", "type": "tool", "filter_server": "slow"}),
        json!({"action": "info", "type": "tool", "path": "slow_echo"}),
    ];
    for arguments in wanted {
        let mut hub = cold_start(slow("slow"));
        hub.client_says(1, &proxy(1, &arguments));
        assert!(!is_answered(&mut hub), "{arguments}");
        hub.start_server(2, ECHO);
        let answer = last(&hub.take(), "C1")["result"].clone();
        assert_eq!(answer["isError"], false, "{answer}");
        let shown = answer["content"][0]["resource"]["text"].as_str().unwrap();
        assert!(shown.contains("slow_echo"), "{answer}");
        assert_eq!(answer["content"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn g6_a_lazy_server_is_started_by_a_list_that_names_it() {
    let lazy = ServerSettings {
        start: StartMode::Lazy,
        ..server("b")
    };
    let mut hub = cold_start(lazy);
    let list = json!({"action": "list", "type": "tool", "filter_server": "b"});
    hub.client_says(1, &proxy(1, &list));
    hub.server_ends(2, "no such program");
    let answer = last(&hub.take(), "C1")["result"].clone();
    let text = answer["content"][1]["text"].as_str().unwrap();
    assert!(text.contains("b (no such program)"), "{text}");
}

#[test]
fn g6_a_list_that_has_waited_says_what_is_missing() {
    let mut hub = cold_start(slow("slow"));
    hub.client_says(1, &proxy(1, &json!({"action": "list", "type": "tool"})));
    hub.wait(Duration::from_secs(10));
    let answer = last(&hub.take(), "C1")["result"].clone();
    let text = answer["content"][1]["text"].as_str().unwrap();
    assert!(text.contains("slow (it is starting)"), "{text}");
}

#[test]
fn d6_a_wrong_name_that_is_like_another_is_answered_at_once() {
    let mut hub = cold_start(slow("slow"));
    for wrong in [
        dispatch(1, &json!({"action": "call", "tool": "ech"})),
        dispatch(2, &json!({"action": "call", "tool": "a_ecko"})),
        proxy(
            3,
            &json!({"action": "call", "type": "tool", "path": "a_ecko"}),
        ),
        proxy(4, &json!({"action": "info", "type": "tool", "path": "ech"})),
    ] {
        hub.client_says(1, &wrong);
        let answer = last(&hub.take(), "C1")["result"].clone();
        assert_eq!(answer["isError"], true, "{wrong}");
        assert!(answer.to_string().contains("echo"), "{answer}");
    }
}

#[test]
fn d6_a_name_like_no_other_waits_for_servers_that_are_starting() {
    for asked in [
        dispatch(1, &json!({"action": "call", "tool": "zebra"})),
        proxy(
            1,
            &json!({"action": "call", "type": "tool", "path": "zebra"}),
        ),
    ] {
        let mut hub = cold_start(slow("slow"));
        hub.client_says(1, &asked);
        assert!(!is_answered(&mut hub));
        hub.start_server(2, r#"[{"name":"zebra","inputSchema":{}}]"#);
        assert_eq!(last(&hub.take(), "S2")["params"]["name"], "zebra");
    }
}

#[test]
fn d6_a_call_does_not_wait_for_other_servers() {
    let mut hub = cold_start(slow("slow"));
    hub.client_says(
        1,
        &dispatch(1, &json!({"action": "call", "tool": "a_echo"})),
    );
    assert_eq!(last(&hub.take(), "S1")["params"]["name"], "echo");
}

#[test]
fn d6_a_call_waits_fifteen_seconds_for_a_server_that_is_starting() {
    let mut hub = Transcript::new(settings(), vec![slow("a")]);
    hub.client();
    hub.initialize(1, "{}");
    hub.wait(Duration::from_secs(1));
    hub.take();
    hub.prints("downloading");
    hub.prints("60 % of 1 GB");
    hub.client_says(1, &call(1, "a_echo"));
    hub.wait(Duration::from_millis(14_900));
    assert!(!is_answered(&mut hub));
    hub.wait(Duration::from_millis(100));
    let answer = last(&hub.take(), "C1");
    assert_eq!(answer["error"]["code"], -31001, "{answer}");
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(text.contains("starting") && text.contains("60 % of 1 GB"));
    assert!(!text.contains("downloading"), "only the last line");
    // The server keeps starting, and serves the next call.
    hub.start_server(1, ECHO);
    hub.client_says(1, &call(2, "a_echo"));
    assert_eq!(last(&hub.take(), "S1")["params"]["name"], "echo");
}

#[test]
fn c1_a_call_waits_for_a_list_that_is_not_in_the_catalog_yet() {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    hub.client();
    hub.slow_builds();
    hub.start_server(1, ECHO);
    hub.initialize(1, "{}");
    let echo = json!({"action": "call", "tool": "echo", "arguments": {}});
    hub.client_says(1, &dispatch(2, &echo));
    hub.builds_finish();
    let said = hub.take();
    assert!(!said.contains("not-found"), "{said}");
    assert!(said.contains(r#"S1< {"jsonrpc":"2.0","id":3,"#), "{said}");
}
