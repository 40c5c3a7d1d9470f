//! What a server gives, asks and leaves unanswered while a record is played to it.

use serde_json::{Value, json};

use super::verdicts;
use crate::programs::{StdioProgram, pipe};

/// The server gives its clients a state of its own process, and takes back no other.
#[test]
fn what_a_server_gives_to_be_handed_back_is_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let file = file.to_str().unwrap();
    let server = r#"while read -r line; do id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p'); case "$line" in
        *"\"requestState\":\"$$\""*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"resultType\":\"complete\",\"content\":[]}}";;
        *requestState*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32602,\"message\":\"not my state\"}}";;
        *) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{\"confirm\":{\"method\":\"elicitation/create\",\"params\":{\"message\":\"Please confirm\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}}},\"requestState\":\"$$\"}}";;
        esac; done"#;
    let server = ["--", "sh", "-c", server];
    let flags = ["--session-file", file, "--quiet"];
    let mut talk = StdioProgram::start(&[&flags[..], &server].concat());
    let mut ask = |id: u32, more: Value| {
        let mut params = more;
        params["name"] = json!("confirm");
        params["arguments"] = json!({});
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        });
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        talk.say(&call.to_string());
        serde_json::from_str::<Value>(&talk.hear()).unwrap()["result"].take()
    };
    let first = ask(1, json!({}));
    let asked = first["inputRequests"].as_object().unwrap().keys().next();
    let answer = json!({"action": "accept", "content": {"confirmed": true, "ok": true}});
    let responses = json!({ asked.unwrap(): answer });
    let state = &first["requestState"];
    let second = ask(
        2,
        json!({"inputResponses": responses, "requestState": state}),
    );
    assert!(second["content"].is_array(), "{second}");
    assert_eq!(talk.end(), Some(0));
    for many in ["1", "4"] {
        let words = ["replay", file, "--no-record", "--json", "--concurrency"];
        let played = pipe(&[&words[..], &[many], &server].concat(), b"");
        assert_eq!(verdicts(&played), ["same"; 2]);
    }
}

#[test]
fn what_the_server_asks_is_answered_at_once_and_a_cancelled_request_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let file = file.to_str().unwrap();
    let server = r#"while read -r line; do id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p'); case "$line" in
        *\"ask\"*) echo '{"jsonrpc":"2.0","id":"q","method":"roots/list"}'; read -r reply; echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{}}";;
        *\"never\"*|*cancelled*) ;;
        *) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{}}";;
        esac; done"#;
    let target = ["--", "sh", "-c", server];
    let mut talk =
        StdioProgram::start(&[&["--session-file", file, "--quiet"][..], &target].concat());
    talk.say(r#"{"jsonrpc":"2.0","id":1,"method":"ask"}"#);
    assert!(talk.hear().contains("roots/list"));
    talk.say(r#"{"jsonrpc":"2.0","id":"q","result":{"roots":[]}}"#);
    assert!(talk.hear().contains(r#""id":1"#));
    talk.say(r#"{"jsonrpc":"2.0","id":2,"method":"never"}"#);
    talk.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#);
    talk.say(r#"{"jsonrpc":"2.0","id":3,"method":"last"}"#);
    assert!(talk.hear().contains(r#""id":3"#));
    assert_eq!(talk.end(), Some(0));
    // Were one of the two waited for, this would not end.
    let words = ["replay", file, "--no-record", "--json"];
    let patient = ["--answer-timeout", "1h"];
    let played = pipe(&[&words[..], &patient, &target].concat(), b"");
    assert_eq!(verdicts(&played), ["same"; 3]);
}

#[test]
fn what_only_the_proxy_answers_is_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let file = file.to_str().unwrap();
    let target = ["--", "sh", "-c", "read -r line; exit 3"];
    let mut talk =
        StdioProgram::start(&[&["--session-file", file, "--quiet"][..], &target].concat());
    talk.say(r#"{"jsonrpc":"2.0","id":1,"method":"die"}"#);
    assert!(talk.hear().contains("-31002"));
    talk.end();
    let words = ["replay", file, "--no-record", "--json"];
    let played = pipe(&[&words[..], &target].concat(), b"");
    assert_eq!(verdicts(&played), ["same"]);
}
