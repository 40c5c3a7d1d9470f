//! What a client hears while its request is held, between two sides of one kind: progress, and then what is decided.

use serde_json::{Value, json};

use super::{DEMO, holding, with};
use crate::control::live::SseClient;
use crate::control::live::headers::{ScriptedResponse, http, id_of, scripted};
use crate::programs::{HttpAnswer, INITIALIZE, INITIALIZED, ListeningProgram, error_answer};

const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"},"_meta":{"progressToken":"p"}}}"#;
const TOLD: &str = r#""progressToken":"p","progress":0."#;

/// Holds what has the word long enough to tell the client so.
fn telling<'a>(word: &'a str, policy: &'a str) -> Vec<&'a str> {
    let mut flags = with(holding(word, policy), &["--hold-progress"]);
    flags[3] = "400ms";
    flags
}

fn before(url: &str) -> [&str; 4] {
    ["--transport", "streamable-http", "--target-url", url]
}

/// The messages of an event stream.
fn events(answer: &HttpAnswer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let text = answer.text();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| !data.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn from_http_to_http_progress_comes_before_what_the_server_streams() {
    let server = ListeningProgram::demo();
    let url = server.url();
    let proxy = ListeningProgram::proxy("http", &with(telling("echo", "forward"), &before(&url)));
    let session = proxy.session();
    let answer = proxy.post(&[("mcp-session-id", &session)], CALL);
    let heard = events(&answer);
    assert!(heard[0].contains(TOLD), "{heard:?}");
    let last = heard.last().unwrap();
    assert!(
        last.contains(r#""id":2"#) && last.contains("hi"),
        "{heard:?}"
    );
}

#[test]
fn from_http_to_http_an_answer_that_is_json_or_a_failure_becomes_an_event() {
    let plain: ScriptedResponse = |request| {
        let answer = json!({"jsonrpc": "2.0", "id": id_of(request), "result": {"n": 1}});
        http(
            "200 OK",
            "content-type: application/json\r\n",
            &format!("{answer:#}"),
        )
    };
    let gone: ScriptedResponse = |_| http("401 Unauthorized", "", "who are you");
    let (url, serving) = scripted(vec![plain, gone, plain]);
    let proxy = ListeningProgram::proxy("http", &with(telling("echo", "forward"), &before(&url)));
    let heard = proxy.post(&[], CALL).text();
    assert!(heard.contains(TOLD), "{heard}");
    // The lines of a body are lines of the event.
    assert!(heard.contains("data:     \"n\": 1\n"), "{heard}");
    let heard = events(&proxy.post(&[], CALL));
    let last = heard.last().unwrap();
    assert_eq!(error_answer(last), (json!(2), -31003), "{heard:?}");
    assert!(last.contains("401") && last.contains("who are you"));
    // A client that takes no events gets its answer as it is.
    let json_only = [
        ("accept", "application/json"),
        ("content-type", "application/json"),
    ];
    let answer =
        crate::programs::request(&proxy.address, "POST", "/mcp", &json_only, CALL.as_bytes());
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let answer: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer["result"]["n"], 1, "{answer}");
    serving.join().unwrap();
}

#[test]
fn from_http_to_http_a_stream_that_has_begun_ends_with_the_decision() {
    let server = ListeningProgram::demo();
    let url = server.url();
    for (policy, expected) in [("drop", None), ("error", Some(-31012))] {
        let proxy = ListeningProgram::proxy("http", &with(telling("echo", policy), &before(&url)));
        let session = proxy.session();
        let heard = events(&proxy.post(&[("mcp-session-id", &session)], CALL));
        let answers: Vec<_> = heard.iter().filter(|it| !it.contains(TOLD)).collect();
        assert!(answers.len() < heard.len(), "{heard:?}");
        match expected {
            None => assert!(answers.is_empty(), "{heard:?}"),
            Some(code) => assert_eq!(error_answer(answers[0]), (json!(2), code)),
        }
    }
}

#[test]
fn from_sse_to_sse_a_held_request_is_told_answered_or_goes_on() {
    let server = ListeningProgram::proxy("sse", &DEMO);
    let url = server.url();
    let target = ["--transport", "sse", "--target-url", &url];
    for (policy, expected) in [("forward", "hi"), ("error", "-31012")] {
        let proxy = ListeningProgram::proxy("sse", &with(telling("echo", policy), &target));
        let mut client = SseClient::connect(&proxy);
        client.round(INITIALIZE);
        client.say(INITIALIZED);
        let heard = client.round(CALL);
        assert!(heard.contains(TOLD), "{heard}");
        let answer = client.hear_without("progressToken");
        assert!(answer.contains(r#""id":2"#), "{answer}");
        assert!(answer.contains(expected), "{answer}");
    }
    // What is dropped is answered by nothing, and the session goes on.
    let proxy = ListeningProgram::proxy("sse", &with(holding("echo", "drop"), &target));
    let mut client = SseClient::connect(&proxy);
    client.round(INITIALIZE);
    client.say(INITIALIZED);
    client.say(CALL);
    let ping = r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#;
    assert!(client.round(ping).contains(r#""id":9"#));
}

#[test]
fn from_sse_to_sse_what_a_rule_answers_comes_on_the_stream() {
    let server = ListeningProgram::proxy("sse", &DEMO);
    let url = server.url();
    let target = ["--transport", "sse", "--target-url", &url];
    let rules = tempfile::tempdir().unwrap();
    let file = rules.path().join("rules.toml");
    let answers = "[[rule]]\nmethod = \"prompts/list\"\nanswer = { prompts = [] }\n";
    std::fs::write(&file, answers).unwrap();
    let flags = ["--rules", file.to_str().unwrap()];
    let proxy = ListeningProgram::proxy("sse", &[&flags[..], &target].concat());
    let mut client = SseClient::connect(&proxy);
    client.round(INITIALIZE);
    client.say(INITIALIZED);
    let list = r#"{"jsonrpc":"2.0","id":3,"method":"prompts/list"}"#;
    assert!(client.round(list).contains(r#"{"prompts":[]}"#));
}
