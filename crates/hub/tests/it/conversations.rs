//! What a hub does, message by message. The transcripts are in the snapshots.

use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use mcp_proxy_hub::config::{EraOffer, RestartPolicy, SharingScope, StartMode};
use mcp_proxy_hub::{HubSettings, ServerNaming, ServerSettings};

use crate::transcript::{ECHO, Transcript, call, server, settings, settings_with_proxy_tool};

const MODERN_META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"m","version":"1"}}"#;

fn two_clients() -> Transcript {
    let mut hub = Transcript::ready(ECHO);
    hub.client();
    hub.initialize(2, r#"{"sampling":{}}"#);
    hub.take();
    hub
}

#[test]
fn a_server_opens_and_is_listed() {
    let mut hub = Transcript::new(settings_with_proxy_tool(), vec![server("a")]);
    hub.start_server(1, ECHO);
    hub.client();
    hub.initialize(1, "{}");
    assert_snapshot!(hub.take());
    assert_eq!(hub.status(), ["a Ready [1, 0, 0, 0] stale=false"]);
}

#[test]
fn a_call_keeps_its_bytes_and_its_id() {
    let mut hub = Transcript::ready(ECHO);
    hub.client_says(1, r#"{"id":"x-1", "jsonrpc":"2.0","method":"tools/call","params":{ "name":"a_echo","arguments":{"n":1.50}}}"#);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"1.50"}], "n": 1e2 }}"#);
    assert_snapshot!(hub.take());
}

#[test]
fn the_proxy_tool_calls_and_annotates() {
    let mut hub = Transcript::ready(ECHO);
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"proxy","arguments":{"action":"call","type":"tool","path":"a_echo","args":{"x":1}},"_meta":{"progressToken":"t"}}}"#);
    hub.server_says(1, r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1}}"#);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"ok"}],"structuredContent":{"ok":true}}}"#);
    assert_snapshot!(hub.take());
}

#[test]
fn one_failure_does_not_stop_a_batch() {
    let mut hub = Transcript::ready(ECHO);
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"proxy","arguments":{"action":"batch","operations":[{"action":"call","type":"tool","path":"a_echo"},{"action":"call","type":"tool","path":"a_gone"},{"action":"call","type":"tool","path":"a_echo"}]}}}"#);
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"second"}]}}"#,
    );
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"broken"}}"#,
    );
    assert_snapshot!(hub.take());
}

#[test]
fn nobody_waits_for_a_slow_server_that_is_known() {
    let known = ServerSettings {
        last_listing: Some(Arc::default()),
        ..server("slow")
    };
    let mut hub = Transcript::new(settings(), vec![server("a"), known]);
    hub.start_server(1, ECHO);
    hub.client();
    hub.take();
    hub.initialize(1, "{}");
    hub.wait(Duration::from_millis(900));
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    hub.start_server(2, ECHO);
    assert_snapshot!(hub.take());
}

#[test]
fn a_call_to_a_server_that_is_down_says_why() {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    hub.client();
    hub.initialize(1, "{}");
    hub.server_ends(1, "command not found");
    hub.client_says(1, &call(1, "a_anything"));
    hub.server_ends(1, "command not found");
    assert_snapshot!(hub.take());
}

#[test]
fn a_crash_fails_its_calls_and_the_next_call_starts_it_again() {
    let mut hub = Transcript::ready(ECHO);
    hub.client_says(1, &call(1, "a_echo"));
    hub.server_ends(1, "killed by signal 9");
    hub.client_says(1, &call(2, "a_echo"));
    hub.start_server(1, ECHO);
    assert_snapshot!(hub.take());
}

#[test]
fn a_call_that_is_safe_to_repeat_is_repeated() {
    let mut hub = Transcript::ready(
        r#"[{"name":"look","inputSchema":{},"annotations":{"readOnlyHint":true}}]"#,
    );
    hub.client_says(1, &call(1, "a_look"));
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-31002,"message":"the server has gone"}}"#,
    );
    hub.start_server(1, ECHO);
    assert_snapshot!(hub.take());
}

#[test]
fn a_call_that_was_never_written_is_repeated_once() {
    let mut hub = Transcript::ready(ECHO);
    hub.client_says(1, &call(1, "a_echo"));
    hub.client_says(1, &call(2, "a_echo"));
    // The write of the second call failed.
    hub.server_has_read_up_to(1, 3);
    let lost = r#""error":{"code":-31002,"message":"the server takes no more input"}}"#;
    hub.server_says(1, &format!(r#"{{"jsonrpc":"2.0","id":3,{lost}"#));
    hub.server_has_read_up_to(1, 3);
    hub.server_says(1, &format!(r#"{{"jsonrpc":"2.0","id":4,{lost}"#));
    hub.start_server(1, ECHO);
    hub.server_has_read_up_to(1, 2);
    hub.server_ends(1, "gone again");
    assert_snapshot!(hub.take());
}

#[test]
fn what_was_in_the_queue_of_a_dead_server_is_repeated() {
    let mut hub = Transcript::ready(ECHO);
    hub.client_says(1, &call(1, "a_echo"));
    hub.client_says(1, &call(2, "a_echo"));
    hub.server_has_read_up_to(1, 3);
    hub.server_ends(1, "killed by signal 9");
    hub.start_server(1, ECHO);
    assert_snapshot!(hub.take());
}

#[test]
fn a_cancel_reaches_the_one_server_that_has_the_call() {
    let mut hub = two_clients();
    hub.client_says(1, &call(7, "a_echo"));
    hub.client_says(2, &call(7, "a_echo"));
    hub.client_says(2, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"enough"}}"#);
    hub.client_leaves(1);
    assert_snapshot!(hub.take());
}

#[test]
fn a_question_reaches_the_client_whose_call_caused_it() {
    let mut hub = two_clients();
    hub.client_says(2, &call(1, "a_echo"));
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}"#,
    );
    hub.client_says(
        2,
        r#"{"jsonrpc":"2.0","id":"s1-1","result":{"role":"assistant"}}"#,
    );
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
    assert_snapshot!(hub.take());
}

#[test]
fn a_question_is_not_guessed_at_and_new_sessions_get_servers_of_their_own() {
    let mut hub = two_clients();
    hub.client_says(1, &call(1, "a_echo"));
    hub.client_says(2, &call(1, "a_echo"));
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}"#,
    );
    hub.client();
    hub.initialize(3, r#"{"sampling":{}}"#);
    hub.client_says(3, &call(1, "a_echo"));
    hub.client_says(1, &call(2, "a_echo"));
    assert_snapshot!(hub.take());
}

#[test]
fn a_question_that_the_client_cannot_answer_is_refused() {
    let mut hub = Transcript::ready(ECHO);
    hub.client_says(1, &call(1, "a_echo"));
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}"#,
    );
    assert_snapshot!(hub.take());
}

#[test]
fn a_changed_list_is_read_again_and_told() {
    let mut hub = Transcript::ready(ECHO);
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
    );
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"one","inputSchema":{}}],"nextCursor":"more"}}"#);
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"two","inputSchema":{}}]}}"#,
    );
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    assert_snapshot!(hub.take());
}

#[test]
fn a_list_that_is_announced_and_the_same_is_told_to_those_who_list_it() {
    for (settings, is_told) in [(settings(), true), (settings_with_proxy_tool(), false)] {
        let mut hub = Transcript::new(settings, vec![server("a")]);
        hub.start_server(1, ECHO);
        hub.client();
        hub.initialize(1, "{}");
        hub.take();
        let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        hub.server_says(1, changed);
        let listed = format!(r#"{{"jsonrpc":"2.0","id":3,"result":{{"tools":{ECHO}}}}}"#);
        hub.server_says(1, &listed);
        assert_eq!(hub.take().contains(&format!("C1< {changed}")), is_told);
    }
}

#[test]
fn subscriptions_are_counted() {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    hub.server_opens(1);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true},"logging":{}},"serverInfo":{"name":"s","version":"1"}}}"#);
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":2,"result":{"resources":[{"uri":"note://1","name":"n"}]}}"#,
    );
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no templates"}}"#,
    );
    for client in 1..=2 {
        hub.client();
        hub.initialize(client, "{}");
    }
    hub.take();
    let subscribe =
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"note://a/1"}}"#;
    hub.client_says(1, subscribe);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
    hub.client_says(2, subscribe);
    hub.server_says(1, r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"note://1"}}"#);
    hub.client_says(
        2,
        r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"warning"}}"#,
    );
    hub.server_says(1, r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#);
    hub.server_ends(1, "gone");
    hub.wait(Duration::from_secs(1));
    hub.server_opens(1);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true},"logging":{}},"serverInfo":{"name":"s","version":"1"}}}"#);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":5,"result":{}}"#);
    hub.client_leaves(1);
    hub.client_leaves(2);
    assert_snapshot!(hub.take());
}

#[test]
fn a_modern_client_uses_a_legacy_server() {
    let settings = HubSettings {
        era: EraOffer::Modern,
        ..settings()
    };
    let mut hub = Transcript::new(settings, vec![server("a")]);
    hub.start_server(1, ECHO);
    hub.client();
    hub.take();
    hub.client_says(
        1,
        &format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{{MODERN_META}}}}}"#
        ),
    );
    hub.client_says(1, &format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"a_echo",{MODERN_META}}}}}"#));
    // The server does not know the modern era, so the call goes by the link that is open.
    hub.server_opens(1);
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"unknown method"}}"#,
    );
    assert_snapshot!(hub.take());
}

#[test]
fn a_legacy_client_uses_a_modern_server() {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    hub.client();
    hub.server_opens(1);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"modern only","data":{"supported":["2026-07-28"]}}}"#);
    hub.server_opens(1);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}}"#);
    hub.server_says(
        1,
        &format!(
            r#"{{"jsonrpc":"2.0","id":3,"result":{{"tools":{ECHO},"resultType":"complete"}}}}"#
        ),
    );
    hub.initialize(1, "{}");
    hub.client_says(1, &call(1, "a_echo"));
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":4,"result":{"resultType":"input_required","requestState":"x"}}"#,
    );
    assert_snapshot!(hub.take());
}

/// A modern server names our listen request in what it tells us.
#[test]
fn a_modern_server_says_that_its_list_changed() {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    hub.server_opens(1);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"modern only","data":{"supported":["2026-07-28"]}}}"#);
    hub.server_opens(1);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"resultType":"complete"}}"#);
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[],"resultType":"complete"}}"#,
    );
    hub.client();
    hub.initialize(1, "{}");
    hub.take();
    hub.server_says(1, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}"#);
    hub.server_says(
        1,
        &format!(
            r#"{{"jsonrpc":"2.0","id":4,"result":{{"tools":{ECHO},"resultType":"complete"}}}}"#
        ),
    );
    assert_snapshot!(hub.take());
}

#[test]
fn bad_requests_get_clear_errors() {
    let mut hub = Transcript::ready(ECHO);
    hub.client_says(1, "not json");
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
    );
    hub.client_says(1, &call(2, "a_ecko"));
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":"junk"}}"#,
    );
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":4,"method":"no/such"}"#);
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","id":5,"method":"logging/setLevel","params":{"level":"loud"}}"#,
    );
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":6,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01"}}}"#);
    assert_snapshot!(hub.take());
}

#[test]
fn a_call_that_takes_too_long_is_given_up() {
    let mut hub = Transcript::ready(ECHO);
    hub.client_says(1, &call(1, "a_echo"));
    hub.wait(Duration::from_secs(61));
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":3,"result":{"content":[]}}"#);
    assert_snapshot!(hub.take());
}

#[test]
fn a_lazy_server_starts_with_its_first_call() {
    let mut lazy = server("a");
    lazy.start = StartMode::Lazy;
    lazy.scope = SharingScope::Session;
    let mut hub = Transcript::new(settings(), vec![lazy]);
    hub.client();
    hub.initialize(1, "{}");
    hub.client_says(1, &call(1, "a_echo"));
    hub.start_server(1, ECHO);
    hub.client_leaves(1);
    assert_snapshot!(hub.take());
}

#[test]
fn a_server_that_never_answers_is_given_up_and_tried_again() {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    hub.server_opens(1);
    hub.wait(Duration::from_secs(10));
    hub.wait(Duration::from_secs(1));
    assert_snapshot!(hub.take());
}

#[test]
fn fixed_arguments_are_added_to_calls() {
    let mut settings_of_server = server("a");
    let mut naming = ServerNaming::clone(&settings_of_server.naming);
    let fixed = [("key".to_owned(), "\"k\"".to_owned())]
        .into_iter()
        .collect();
    naming.fixed_arguments.insert("echo".to_owned(), fixed);
    settings_of_server.naming = Arc::new(naming);
    let mut hub = Transcript::new(settings(), vec![settings_of_server]);
    hub.start_server(1, ECHO);
    hub.client();
    hub.initialize(1, "{}");
    hub.take();
    hub.client_says(1, &call(1, "a_echo"));
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"proxy","arguments":{"action":"call","type":"tool","path":"a_echo"}}}"#);
    assert_snapshot!(hub.take());
}

#[test]
fn only_known_questions_reach_a_client() {
    let mut hub = Transcript::ready(ECHO);
    hub.client_says(1, &call(1, "a_echo"));
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{}}"#,
    );
    assert_snapshot!(hub.take());
}

#[test]
fn the_end_of_a_replaced_link_does_not_fail_the_repeated_call() {
    let tools = r#"[{"name":"look","inputSchema":{},"annotations":{"readOnlyHint":true}}]"#;
    let mut hub = Transcript::ready(tools);
    hub.client_says(1, &call(1, "a_look"));
    hub.server_crashes_with_calls_open(1, "gone");
    hub.start_server(1, tools);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":3,"result":{"content":[]}}"#);
    assert_snapshot!(hub.take());
}

#[test]
fn what_clients_read_has_no_paths() {
    let mut hub = Transcript::ready(ECHO);
    hub.client_says(1, &call(1, "a_echo"));
    hub.server_ends(
        1,
        "cannot run \"/opt/secret/place/tool\": see /var/log/x.log",
    );
    assert_snapshot!(hub.take());
}

#[test]
fn an_idle_server_is_stopped_and_the_next_call_starts_it() {
    let mut idle = server("a");
    idle.idle_stop = Some(Duration::from_secs(30));
    let mut hub = Transcript::new(settings(), vec![idle]);
    hub.start_server(1, ECHO);
    hub.client();
    hub.initialize(1, "{}");
    hub.take();
    hub.wait(Duration::from_secs(20));
    hub.client_says(1, &call(1, "a_echo"));
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":3,"result":{"content":[]}}"#);
    hub.wait(Duration::from_secs(20));
    hub.wait(Duration::from_secs(10));
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    hub.client_says(1, &call(3, "a_echo"));
    assert_snapshot!(hub.take());
}

#[test]
fn a_server_is_restarted_only_as_often_as_allowed() {
    let mut fragile = server("a");
    fragile.restart_limit = Some(1);
    let mut hub = Transcript::new(settings(), vec![fragile]);
    hub.server_ends(1, "exit 1");
    hub.wait(Duration::from_secs(1));
    hub.server_ends(1, "exit 1");
    hub.wait(Duration::from_secs(100));
    assert_snapshot!(hub.take());
}

#[test]
fn a_server_that_is_restarted_on_failure_may_exit() {
    let mut server = server("a");
    server.restart = RestartPolicy::OnFailure;
    let mut hub = Transcript::new(settings(), vec![server]);
    hub.server_ends(1, "exit 1");
    hub.wait(Duration::from_secs(1));
    hub.server_exits(1);
    hub.wait(Duration::from_secs(100));
    assert_snapshot!(hub.take());
}

#[test]
fn a_call_that_was_refused_with_its_session_is_sent_again() {
    let mut hub = Transcript::ready(ECHO);
    hub.client_says(1, &call(1, "a_echo"));
    hub.server_has_read_up_to(1, 3);
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-31006,"message":"no such session"}}"#,
    );
    assert_snapshot!(hub.take());
}

#[test]
fn a_task_is_asked_for_at_the_server_that_has_it() {
    let mut hub = Transcript::ready(ECHO);
    hub.client_says(1, &call(1, "a_echo"));
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":3,"result":{"task":{"taskId":"t-1","status":"working"}}}"#,
    );
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"t-1"}}"#,
    );
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"other"}}"#,
    );
    assert_snapshot!(hub.take());
}

#[test]
fn a_server_that_knows_a_clients_roots_is_not_shared() {
    let mut hub = Transcript::ready(ECHO);
    hub.client_leaves(1);
    for client in 2..=3 {
        hub.client();
        hub.initialize(client, r#"{"roots":{}}"#);
    }
    hub.take();
    hub.client_says(2, &call(1, "a_echo"));
    hub.client_says(3, &call(1, "a_echo"));
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":4,"result":{"content":[]}}"#);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#);
    hub.client_says(
        2,
        r#"{"jsonrpc":"2.0","id":"s1-1","result":{"roots":[{"uri":"file:///two"}]}}"#,
    );
    // The other client gets another server.
    hub.client_says(3, &call(2, "a_echo"));
    hub.client_leaves(2);
    assert_snapshot!(hub.take());
}

#[test]
fn a_large_answer_is_as_complete_as_a_small_one() {
    let mut hub = Transcript::ready(ECHO);
    let text = "x".repeat(300_000);
    let answer = |id: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    hub.client_says(1, &call(1, "a_echo"));
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"proxy","arguments":{"action":"call","type":"tool","path":"a_echo"}}}"#);
    hub.server_says(1, &answer(3));
    hub.server_says(1, &answer(4));
    assert_snapshot!(hub.take().replace(&text, "(text)"));
}

#[test]
fn a_server_that_hangs_is_told_about_with_its_stderr() {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    hub.client();
    hub.initialize(1, "{}");
    hub.server_opens(1);
    hub.prints("waiting for the database");
    hub.client_says(1, &call(1, "a_echo"));
    hub.wait(Duration::from_secs(11));
    assert_snapshot!(hub.take());
}

#[test]
fn an_answer_that_cannot_be_read_fails_its_call_at_once() {
    let mut hub = Transcript::ready(ECHO);
    hub.client_says(1, &call(1, "a_echo"));
    // A line for people is not an answer.
    hub.server_says(1, r#"{"id":3,"level":"info"}"#);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":3}"#);
    hub.client_says(1, &call(2, "a_echo"));
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":4,"result":{"broken"#);
    assert_snapshot!(hub.take());
}
