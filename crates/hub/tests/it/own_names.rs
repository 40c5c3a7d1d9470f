//! Calls by the names that servers give their tools and prompts, while the lists that tell these names are still to come.

use std::time::Duration;

use mcp_proxy_hub::config::StartMode;
use mcp_proxy_hub::{OwnToolUse, ServerSettings};
use serde_json::json;

use crate::dispatch::{call_tool, dispatch, last};
use crate::first_lists::{cold_start, is_answered, proxy, slow};
use crate::transcript::{ECHO, Transcript, call, server, settings};

const OPENING: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#;

/// Whether a server was asked for a tool or prompt since the last look.
fn is_called(hub: &mut Transcript, server: usize) -> bool {
    let said = hub.take();
    let mut lines = said.lines();
    lines.any(|line| line.starts_with(&format!("S{server}< ")) && line.contains(r#""name":"git_"#))
}

/// Calls of the tool `git_log` of the server `git`, by the name that this server gives it.
fn calls_by_own_name() -> Vec<String> {
    vec![
        call(1, "git_log"),
        proxy(
            1,
            &json!({"action": "call", "type": "tool", "path": "git_log"}),
        ),
        dispatch(1, &json!({"action": "call", "tool": "git_log"})),
        dispatch(
            1,
            &json!({"action": "call", "tool": "git_log", "connection": "git"}),
        ),
    ]
}

/// A tool whose own name begins with the name of its server.
const GIT_LOG: &str = r#"[{"name":"git_log","inputSchema":{}}]"#;

#[test]
fn d7_a_call_by_a_servers_own_name_waits_for_its_list() {
    for asked in calls_by_own_name() {
        let mut hub = cold_start(slow("git"));
        hub.client_says(1, &asked);
        hub.server_opens(2);
        hub.server_says(2, OPENING);
        assert!(!is_called(&mut hub, 2), "{asked}");
        hub.server_says(
            2,
            &format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"tools":{GIT_LOG}}}}}"#),
        );
        assert_eq!(last(&hub.take(), "S2")["params"]["name"], "git_log");
    }
}

#[test]
fn d7_a_call_by_the_own_name_of_a_lazy_server_starts_it_and_waits_for_its_list() {
    for asked in calls_by_own_name() {
        let lazy = ServerSettings {
            start: StartMode::Lazy,
            ..server("git")
        };
        let mut hub = cold_start(lazy);
        hub.client_says(1, &asked);
        hub.start_server(2, GIT_LOG);
        assert_eq!(last(&hub.take(), "S2")["params"]["name"], "git_log");
    }
}

#[test]
fn d7_a_prompt_by_its_own_name_waits_for_the_list() {
    let mut hub = cold_start(slow("git"));
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"git_ask"}}"#,
    );
    hub.server_opens(2);
    hub.server_says(2, r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"prompts":{}},"serverInfo":{"name":"s","version":"1"}}}"#);
    assert!(!is_called(&mut hub, 2));
    hub.server_says(
        2,
        r#"{"jsonrpc":"2.0","id":2,"result":{"prompts":[{"name":"git_ask"}]}}"#,
    );
    assert_eq!(last(&hub.take(), "S2")["params"]["name"], "git_ask");
}

#[test]
fn d7_a_call_by_a_bare_name_waits_for_servers_that_are_starting() {
    let mut hub = cold_start(slow("slow"));
    hub.client_says(1, &call(1, "zebra"));
    assert!(!is_answered(&mut hub));
    hub.start_server(2, r#"[{"name":"zebra","inputSchema":{}}]"#);
    assert_eq!(last(&hub.take(), "S2")["params"]["name"], "zebra");
}

#[test]
fn d7_a_bare_name_like_another_waits_for_a_list_that_is_being_read() {
    for asked in [
        call(1, "ech"),
        proxy(1, &json!({"action": "call", "type": "tool", "path": "ech"})),
        dispatch(1, &json!({"action": "call", "tool": "ech"})),
    ] {
        let mut hub = cold_start(slow("slow"));
        hub.server_opens(2);
        hub.server_says(2, OPENING);
        hub.client_says(1, &asked);
        assert!(!is_answered(&mut hub), "{asked}");
        hub.server_says(
            2,
            r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"ech","inputSchema":{}}]}}"#,
        );
        assert_eq!(last(&hub.take(), "S2")["params"]["name"], "ech", "{asked}");
    }
}

#[test]
fn d7_a_list_that_does_not_come_is_not_waited_for_longer_than_fifteen_seconds() {
    for asked in calls_by_own_name() {
        let mut hub = cold_start(slow("git"));
        hub.client_says(1, &asked);
        hub.server_opens(2);
        hub.server_says(2, OPENING);
        hub.wait(Duration::from_secs(15));
        // The name as it is taken while nothing is known.
        assert_eq!(last(&hub.take(), "S2")["params"]["name"], "log", "{asked}");
    }
}

#[test]
fn d7_a_server_that_does_not_start_is_not_waited_for_longer_than_fifteen_seconds() {
    for asked in calls_by_own_name() {
        let mut hub = cold_start(slow("git"));
        hub.client_says(1, &asked);
        hub.wait(Duration::from_secs(15));
        assert!(is_answered(&mut hub), "{asked}");
    }
}

#[test]
fn d7_a_call_that_waits_fails_with_the_start_of_its_server() {
    for asked in calls_by_own_name() {
        let mut hub = cold_start(slow("git"));
        hub.client_says(1, &asked);
        hub.wait(Duration::from_secs(1));
        hub.server_ends(2, "no such program");
        let said = hub.take();
        assert!(!said.contains("! dial S3"), "{said}");
        let answer = last(&said, "C1");
        assert!(answer.to_string().contains("no such program"), "{answer}");
    }
}

#[test]
fn d7_a_call_is_sent_as_it_is_if_the_list_cannot_be_read() {
    for asked in calls_by_own_name() {
        let mut hub = cold_start(slow("git"));
        hub.client_says(1, &asked);
        hub.server_opens(2);
        hub.server_says(2, OPENING);
        hub.server_says(
            2,
            r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"db locked"}}"#,
        );
        assert_eq!(last(&hub.take(), "S2")["params"]["name"], "log", "{asked}");
    }
}

#[test]
fn d7_a_name_that_is_not_in_the_list_is_refused() {
    for asked in calls_by_own_name() {
        let mut hub = cold_start(slow("git"));
        hub.client_says(1, &asked);
        hub.start_server(2, r#"[{"name":"git_status","inputSchema":{}}]"#);
        assert!(is_answered(&mut hub), "{asked}");
    }
}

#[test]
fn d7_proxy_read_waits_for_the_list_that_says_what_only_reads() {
    let mut settings = settings();
    settings.profiles[0].read_tool = OwnToolUse::Offered;
    let mut hub = Transcript::new(settings, vec![server("a"), slow("git")]);
    hub.start_server(1, ECHO);
    hub.client();
    hub.initialize(1, "{}");
    hub.wait(Duration::from_secs(1));
    hub.take();
    let call = json!({"action": "call", "type": "tool", "path": "git_log"});
    hub.client_says(1, &call_tool(1, "proxy-read", &call));
    assert!(!is_answered(&mut hub));
    hub.start_server(
        2,
        r#"[{"name":"git_log","inputSchema":{},"annotations":{"readOnlyHint":true}}]"#,
    );
    assert_eq!(last(&hub.take(), "S2")["params"]["name"], "git_log");
}
