//! What clients get to see of servers, apart from lists and results.

use insta::assert_snapshot;
use mcp_proxy_hub::ServerListing;
use serde_json::Value;

use crate::transcript::{ECHO, Transcript, server, settings};

fn opening(instructions: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}},"instructions":"{instructions}"}}}}"#
    )
}

#[test]
fn a_client_hears_nothing_before_the_answer_to_its_opening() {
    let mut hub = Transcript::new(settings(), vec![server("a"), server("slow")]);
    hub.client();
    hub.initialize(1, "{}");
    hub.start_server(1, ECHO);
    hub.take();
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hello"}}"#;
    hub.server_says(1, log);
    hub.start_server(2, ECHO);
    hub.server_says(1, log);
    assert_snapshot!(hub.take());
}

#[test]
fn long_instructions_leave_room_for_those_of_others() {
    let mut hub = Transcript::new(settings(), vec![server("a"), server("b")]);
    for (number, instructions) in [(1, "long ".repeat(4000)), (2, "short".to_owned())] {
        hub.server_opens(number);
        hub.server_says(number, &opening(&instructions));
        let tools = r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#;
        hub.server_says(number, tools);
    }
    hub.take();
    hub.client();
    hub.initialize(1, "{}");
    let answer = hub.take();
    let answer = answer
        .lines()
        .find_map(|line| line.strip_prefix("C1< "))
        .unwrap();
    let answer: Value = serde_json::from_str(answer).unwrap();
    let instructions = answer["result"]["instructions"].as_str().unwrap();
    assert!((1900..=2048).contains(&instructions.len()));
    assert!(instructions.contains("\n## a") && instructions.ends_with("short"));
}

#[test]
fn an_error_about_a_resource_names_it_as_the_client_does() {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    hub.server_opens(1);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{}},"serverInfo":{"name":"s","version":"1"}}}"#);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":2,"result":{"resources":[]}}"#);
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":3,"result":{"resourceTemplates":[]}}"#,
    );
    hub.client();
    hub.initialize(1, "{}");
    hub.take();
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"note://a/7"}}"#,
    );
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32002,"message":"not found","data":{"uri":"note://7"}}}"#);
    assert_snapshot!(hub.take());
}

#[test]
fn a_server_without_resources_is_not_asked_for_one() {
    let mut hub = Transcript::ready(ECHO);
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"note://7"}}"#,
    );
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"note://a/7"}}"#,
    );
    assert_snapshot!(hub.take());
}

#[test]
fn a_list_of_the_proxy_tool_tells_what_is_stale() {
    let mut stale = server("a");
    stale.last_listing = Some(std::sync::Arc::new(ServerListing {
        tools: vec![r#"{"name":"echo"}"#.into()],
        ..ServerListing::default()
    }));
    let mut hub = Transcript::new(settings(), vec![stale]);
    hub.server_ends(1, "command not found");
    hub.client();
    hub.initialize(1, "{}");
    hub.take();
    let list = |arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"proxy","arguments":{arguments}}}}}"#
        )
    };
    hub.client_says(1, &list(r#"{"action":"list","type":"tool"}"#));
    // No arguments at all are the same as `null`.
    hub.client_says(1, &list("null"));
    assert_snapshot!(hub.take());
}

#[test]
fn calls_of_unknown_names_are_refused_and_audited() {
    let mut hub = Transcript::ready(ECHO);
    let proxy = r#"{"action":"call","type":"tool","path":"gone"}"#;
    let dispatch = r#"{"action":"call","tool":"gone"}"#;
    for (method, params, audited) in [
        (
            "tools/call",
            r#"{"name":"gone"}"#.to_owned(),
            "tools/call gone",
        ),
        (
            "prompts/get",
            r#"{"name":"gone"}"#.to_owned(),
            "prompts/get gone",
        ),
        (
            "resources/read",
            r#"{"uri":"x://gone"}"#.to_owned(),
            "resources/read x://gone",
        ),
        (
            "tools/call",
            format!(r#"{{"name":"proxy","arguments":{proxy}}}"#),
            "tools/call gone",
        ),
        (
            "tools/call",
            format!(r#"{{"name":"proxy-dispatch","arguments":{dispatch}}}"#),
            "tools/call gone",
        ),
    ] {
        hub.client_says(
            1,
            &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#),
        );
        let text = hub.take();
        let line = format!("! audit: - {audited} Refused");
        assert_eq!(text.matches(&line).count(), 1, "{text}");
    }
}

#[test]
fn the_status_of_a_server_says_what_is_wrong_with_its_lists() {
    let hub = Transcript::ready(r#"[{"name":"echo"},{"name":"echo"},{"description":"?"}]"#);
    assert_eq!(hub.warnings().len(), 2, "{:?}", hub.warnings());
    assert!(Transcript::ready(ECHO).warnings().is_empty());
}
