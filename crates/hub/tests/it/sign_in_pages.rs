//! Sign-ins in the middle of a call: the client gets the page, and the call continues.

use std::time::Duration;

use mcp_proxy_hub::{NewServer, SignInChange};
use serde_json::{Value, json};

use crate::dispatch::last;
use crate::sign_in::{assert_refused, refuse, refused_before};
use crate::transcript::{ECHO, Transcript, call, server, settings};

const PAGES: &str = r#"{"elicitation":{"url":{}}}"#;
const URL: &str = "https://as.example/authorize?state=s";

/// The server `a` needs a sign-in, and a legacy client can open pages.
fn legacy() -> Transcript {
    refused_before(PAGES)
}

/// The client has called, the server has refused, and the page is known.
fn asked(hub: &mut Transcript) -> Value {
    hub.client_says(1, &call(1, "a_echo"));
    refuse(hub);
    assert_eq!(hub.take().matches("! begin sign-in S1").count(), 1);
    hub.sign_in_begun(URL);
    let question = last(&hub.take(), "C1");
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["mode"], "url");
    assert_eq!(question["params"]["url"], URL);
    question
}

fn say_action(hub: &mut Transcript, question: &Value, action: &str) {
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": action}});
    hub.client_says(1, &answer.to_string());
}

#[test]
fn a_client_that_can_open_pages_gets_the_page_and_its_call_continues() {
    let mut hub = legacy();
    let question = asked(&mut hub);
    // A second call asks no second question.
    hub.client_says(1, &call(2, "a_echo"));
    refuse(&mut hub);
    let text = hub.take();
    assert!(
        !text.contains("elicitation/create") && !text.contains("begin"),
        "{text}"
    );
    say_action(&mut hub, &question, "accept");
    hub.wait(Duration::from_secs(200));
    assert!(!hub.take().contains("C1<"));
    hub.sign_in_changed(SignInChange::Account);
    hub.sign_in_ended(Ok(()));
    hub.start_server(1, ECHO);
    let text = hub.take();
    assert_eq!(
        text.matches(r#""method":"tools/call""#).count(),
        2,
        "{text}"
    );
    let complete = r#""method":"notifications/elicitation/complete""#;
    assert_eq!(text.matches(complete).count(), 1, "{text}");
    assert_eq!(text.matches("! dial S1").count(), 1, "{text}");
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":3,"result":{"content":[]}}"#);
    let answer = last(&hub.take(), "C1");
    assert_eq!(
        (&answer["id"], answer["result"].is_object()),
        (&json!(1), true)
    );
}

#[test]
fn a_login_in_a_terminal_continues_the_call_too() {
    let mut hub = legacy();
    asked(&mut hub);
    hub.sign_in_changed(SignInChange::Account);
    let text = hub.take();
    // The client's window is closed.
    assert!(
        text.contains("notifications/cancelled") && text.contains("! end sign-in"),
        "{text}"
    );
    hub.start_server(1, ECHO);
    assert!(hub.take().contains(r#""method":"tools/call""#));
}

/// The authorization server has ended the sign-in, which is why the page was opened.
#[test]
fn a_sign_in_that_ends_leaves_the_open_page_to_its_person() {
    let mut hub = legacy();
    let question = asked(&mut hub);
    say_action(&mut hub, &question, "accept");
    hub.take();
    hub.sign_in_changed(SignInChange::SignedOut);
    refuse(&mut hub);
    let text = hub.take();
    assert!(
        !text.contains("C1<") && !text.contains("sign-in S1"),
        "{text}"
    );
    assert!(!text.contains("! end sign-in"), "{text}");
    hub.sign_in_changed(SignInChange::Account);
    hub.sign_in_ended(Ok(()));
    hub.start_server(1, ECHO);
    assert!(hub.take().contains(r#""method":"tools/call""#));
}

#[test]
fn who_cancels_is_told_what_to_run() {
    for action in ["cancel", "decline"] {
        let mut hub = legacy();
        let question = asked(&mut hub);
        say_action(&mut hub, &question, action);
        let text = hub.take();
        assert_refused(&last(&text, "C1"));
        assert!(text.contains("! end sign-in"), "{text}");
    }
}

#[test]
fn a_sign_in_that_fails_or_takes_too_long_ends_the_call_with_what_to_run() {
    let mut hub = legacy();
    asked(&mut hub);
    hub.sign_in_ended(Err("the authorization server refused".to_owned()));
    assert_refused(&last(&hub.take(), "C1"));
    let mut hub = legacy();
    let question = asked(&mut hub);
    say_action(&mut hub, &question, "accept");
    hub.wait(Duration::from_secs(301));
    let text = hub.take();
    let answers = text.lines().filter_map(|line| line.strip_prefix("C1< "));
    let answers: Vec<Value> = answers
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_refused(answers.iter().find(|answer| answer["id"] == 1).unwrap());
}

#[test]
fn a_call_that_joins_late_waits_as_long_as_any_other() {
    let mut hub = legacy();
    asked(&mut hub);
    hub.wait(Duration::from_secs(299));
    hub.client_says(1, &call(2, "a_echo"));
    refuse(&mut hub);
    hub.take();
    hub.wait(Duration::from_secs(2));
    let text = hub.take();
    let told = last(&text, "C1");
    assert_refused(&told);
    assert_eq!(told["id"], 1);
    assert!(!text.contains("! end sign-in"), "{text}");
    hub.wait(Duration::from_secs(296));
    assert!(!hub.take().contains("C1<"));
    hub.wait(Duration::from_secs(2));
    let text = hub.take();
    assert!(text.contains("! end sign-in"), "{text}");
    assert!(text.contains(r#""id":2,"error":{"code":-31016"#), "{text}");
}

#[test]
fn an_opened_page_that_nobody_waits_for_is_given_up_in_time() {
    let mut hub = legacy();
    let question = asked(&mut hub);
    say_action(&mut hub, &question, "accept");
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    );
    hub.wait(Duration::from_secs(301));
    assert!(hub.take().contains("! end sign-in"));
}

#[test]
fn a_server_that_refuses_after_the_sign_in_is_not_asked_for_ever() {
    let mut hub = legacy();
    asked(&mut hub);
    hub.sign_in_changed(SignInChange::Account);
    hub.sign_in_ended(Ok(()));
    hub.take();
    refuse(&mut hub);
    let text = hub.take();
    assert_refused(&last(&text, "C1"));
    assert!(!text.contains("begin sign-in"), "{text}");
}

#[test]
fn a_client_that_cancels_its_call_or_leaves_ends_the_sign_in() {
    let mut hub = legacy();
    asked(&mut hub);
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    );
    assert!(hub.take().contains("! end sign-in"));
    let mut hub = legacy();
    asked(&mut hub);
    hub.client_leaves(1);
    assert!(hub.take().contains("! end sign-in"));
}

#[test]
fn a_client_that_gives_its_call_up_does_not_take_the_page_from_its_person() {
    let mut hub = legacy();
    let question = asked(&mut hub);
    say_action(&mut hub, &question, "accept");
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    );
    assert!(!hub.take().contains("! end sign-in"));
    hub.sign_in_changed(SignInChange::Account);
    hub.sign_in_ended(Ok(()));
    hub.start_server(1, ECHO);
    assert!(hub.status()[0].starts_with("a Ready"), "{:?}", hub.status());
}

#[test]
fn a_server_that_is_gone_after_a_new_configuration_keeps_nobody_waiting() {
    let mut hub = legacy();
    asked(&mut hub);
    hub.reconfigure(settings(), vec![NewServer::Changed(Box::new(server("b")))]);
    let text = hub.take();
    assert!(text.contains("! end sign-in"), "{text}");
    let answers = text.lines().filter_map(|line| line.strip_prefix("C1< "));
    let mut answers = answers.map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert!(
        answers.any(|answer| answer["error"]["code"] == -31016),
        "{text}"
    );
}

#[test]
fn form_elicitation_is_not_enough() {
    for capabilities in [
        "{}",
        r#"{"elicitation":{}}"#,
        r#"{"elicitation":{"form":{}}}"#,
    ] {
        let mut hub = refused_before(capabilities);
        hub.client_says(1, &call(1, "a_echo"));
        refuse(&mut hub);
        assert_refused(&last(&hub.take(), "C1"));
    }
}

const MODERN_META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}}},"io.modelcontextprotocol/clientInfo":{"name":"m","version":"1"}}"#;

/// A modern client's call, through the tool of this name, and what the client says to questions.
fn modern_call(id: u32, tool: &str, more: &str) -> String {
    let arguments = match tool {
        "proxy" => r#"{"action":"call","type":"tool","path":"a_echo"}"#,
        "proxy-dispatch" => {
            r#"{"action":"call","connection":"a-alias","tool":"echo","arguments":{}}"#
        }
        _ => "{}",
    };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}{more},{MODERN_META}}}}}"#
    )
}

/// The newest link of the server is refused in the modern era, and in the legacy one if it was tried.
fn modern_asked(tool: &str) -> (Transcript, String) {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    refuse(&mut hub);
    hub.client();
    hub.client_says(1, &modern_call(1, tool, ""));
    refuse(&mut hub);
    hub.sign_in_begun(URL);
    let answer = last(&hub.take(), "C1");
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{tool}: {answer}");
    let (key, question) = result["inputRequests"]
        .as_object()
        .unwrap()
        .iter()
        .next()
        .unwrap();
    assert_eq!(question["params"]["url"], URL);
    assert!(question["params"]["elicitationId"].is_null());
    (hub, key.clone())
}

#[test]
fn a_modern_client_gets_the_page_and_calls_again() {
    for tool in ["a_echo", "proxy", "proxy-dispatch"] {
        let (mut hub, key) = modern_asked(tool);
        let more = format!(r#","inputResponses":{{"{key}":{{"action":"accept"}}}}"#);
        hub.client_says(1, &modern_call(2, tool, &more));
        assert!(!hub.take().contains("C1<"));
        hub.sign_in_changed(SignInChange::Account);
        hub.sign_in_ended(Ok(()));
        hub.server_opens(1);
        hub.take();
        hub.server_says(1, r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}}"#);
        // What `a_echo` means would be listed on another connection, which never opens.
        hub.wait(Duration::from_secs(20));
        let text = hub.take();
        let calls = text
            .lines()
            .filter(|line| line.contains(r#""method":"tools/call""#));
        assert_eq!(calls.count(), 1, "{tool}: {text}");
        assert!(!text.contains("inputResponses"), "{text}");
    }
}

#[test]
fn a_modern_client_that_declines_is_told_what_to_run() {
    let (mut hub, key) = modern_asked("a_echo");
    let more = format!(r#","inputResponses":{{"{key}":{{"action":"cancel"}}}}"#);
    hub.client_says(1, &modern_call(2, "a_echo", &more));
    assert_refused(&last(&hub.take(), "C1"));
}
