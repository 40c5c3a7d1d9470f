//! `ctl replay`: one message sent to the server again, on a session of its own.

mod arguments;

use serde_json::{Value, json};

use super::test_home::{self, PING, TestHome, TestProxy};
use crate::programs::{INITIALIZE, INITIALIZED, ListeningProgram, record_lines};

pub const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"},"_meta":{"progressToken":"p"}}}"#;

/// A client that has called: the call is message 4.
pub fn called(house: &TestHome, flags: &[&str]) -> TestProxy {
    let mut run = house.demo(flags);
    call(&mut run);
    run
}

fn call(run: &mut TestProxy) {
    run.round(INITIALIZE);
    run.say(INITIALIZED);
    assert!(run.round(CALL).contains("hi"));
}

/// The rows of a replay's request and of its answer, which must belong together.
#[track_caller]
pub fn linked(house: &TestHome, replayed: &Value) -> (Value, Value) {
    let row = |number: &Value| {
        let (from, to) = (format!("from={number}"), format!("to={number}"));
        house.ctl(&["get", &from, &to, "raw=true"])["rows"][0].clone()
    };
    let (request, answer) = (row(&replayed["request"]), row(&replayed["answer"]));
    assert_eq!(answer["correlated_id"], request["id"], "{answer}");
    assert_eq!(answer["answers"], replayed["request"]);
    assert_eq!(request["origin"], "replay", "{request}");
    assert_eq!(request["conn"], replayed["conn"]);
    assert_eq!(answer["raw"], replayed["raw"]);
    (request, answer)
}

#[test]
fn a_call_is_sent_again_on_a_session_of_its_own() {
    let house = TestHome::new();
    let mut run = called(&house, &[]);
    // Nobody holds a replay.
    house.ctl(&["breakpoints.add", "filter=tools/call"]);
    let replayed = house.ctl(&["replay", r#"{"sequence":4}"#]);
    assert_eq!(replayed["raw"]["result"]["content"][0]["text"], "hi");
    assert!(replayed["latency_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(replayed["conn"], "c2");
    let (request, _) = linked(&house, &replayed);
    // Ids and progress tokens are ours.
    let id = request["jsonrpc_id"].clone();
    assert_ne!(id, 2);
    assert_eq!(request["raw"]["params"]["_meta"]["progressToken"], id);
    // The handshake was that of the client, and it was recorded.
    let rows = house.ctl(&["get", "from=6", "raw=true"])["rows"].clone();
    assert_eq!(rows[0]["method"], "initialize");
    assert_eq!(rows[0]["raw"]["params"]["clientInfo"]["name"], "test");
    assert_eq!(rows[2]["method"], "notifications/initialized");
    // The client heard nothing of it.
    assert!(run.round(PING).contains(r#""id":7"#));
    test_home::until("its session has ended", || {
        let closed = |line: &Value| line["kind"] == "close" && line["conn"] == "c2";
        record_lines(&house.record()).iter().any(closed)
    });
    assert_eq!(run.end(), Some(0));
    // The record names the message, and who wanted it again.
    let notes = record_lines(&house.record());
    let notes = notes.iter().filter(|line| line["t"] == "note");
    let notes: Vec<_> = notes.filter_map(|note| note["text"].as_str()).collect();
    assert!(notes[0].contains("user (ctl") && notes[0].ends_with("#4"));
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn an_edited_message_is_sent_and_a_notification_is_not_answered() {
    let house = TestHome::new();
    let mut run = called(&house, &[]);
    let edit = CALL.replace("hi", "changed");
    let replayed = house.ctl(&["replay", "sequence=4", &format!("raw={edit}")]);
    assert_eq!(replayed["raw"]["result"]["content"][0]["text"], "changed");
    // As a text, over several lines.
    let text = json!({"sequence": 4, "raw": edit.replace(r#","method""#, ",\n\"method\"")});
    let replayed = house.ctl(&["replay", &text.to_string()]);
    assert_eq!(replayed["raw"]["result"]["content"][0]["text"], "changed");
    linked(&house, &replayed);
    let replayed = house.ctl(&["replay", "sequence=3"]);
    assert_eq!(
        (&replayed["answer"], &replayed["raw"]),
        (&Value::Null, &Value::Null)
    );
    // What is no JSON is sent when that is insisted on.
    let refused = house.run(&["ctl", "replay", "sequence=4", "raw=no json"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("raw:") && said.contains("as_is=true"));
    let refused = house.refused(&["replay", "sequence=4", r#"raw="no json""#]);
    assert_eq!(refused["code"], -32602);
    let replayed = house.ctl(&["replay", "sequence=4", "raw=no json", "as_is=true"]);
    assert_eq!(replayed["answer"], Value::Null);
    // The handshake itself can be edited.
    let edit = INITIALIZE.replace("2025-11-25", "2024-11-05");
    let replayed = house.ctl(&["replay", "sequence=1", &format!("raw={edit}")]);
    assert_eq!(replayed["raw"]["result"]["protocolVersion"], "2024-11-05");
    assert!(run.round(PING).contains(r#""id":7"#));
}

#[test]
fn over_http_it_is_a_session_of_its_own_too() {
    let house = TestHome::new();
    let demo = ListeningProgram::demo();
    let url = demo.url();
    let flags = ["--listen-port", "0", "--transport", "streamable-http"];
    let words = [
        &["proxy", "--listen", "http"],
        &flags[..],
        &["--target-url", &url],
    ]
    .concat();
    let proxy = ListeningProgram::start_with(&words, &house.env());
    let session = proxy.session();
    let answer = proxy.post(&[("mcp-session-id", &session)], CALL);
    assert!(answer.text().contains("hi"), "{answer:?}");
    let rows = house.ctl(&["get"])["rows"].clone();
    let rows = rows.as_array().unwrap();
    let call = rows.iter().find(|row| row["method"] == "tools/call");
    let sequence = format!("sequence={}", call.unwrap()["sequence"]);
    let replayed = house.ctl(&["replay", &sequence]);
    assert_eq!(replayed["raw"]["result"]["content"][0]["text"], "hi");
    linked(&house, &replayed);
    // The server is gone: that is an error, and says so.
    demo.end("-TERM");
    let refused = house.refused(&["replay", &sequence]);
    assert_eq!(refused["code"], -31104, "{refused}");
}

#[test]
fn a_message_of_the_era_without_a_handshake_needs_none() {
    let house = TestHome::new();
    let server = ["--", test_home::PROXY, "demo-server", "stdio"];
    let words = [
        &["proxy", "--listen", "http", "--listen-port", "0"],
        &server[..],
    ]
    .concat();
    let proxy = ListeningProgram::start_with(&words, &house.env());
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let call = CALL.replace(r#""_meta":{"progressToken":"p"}"#, meta);
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
    ];
    let answer = proxy.post(&headers, &call);
    assert!(answer.text().contains("hi"), "{answer:?}");
    let replayed = house.ctl(&["replay", "sequence=1"]);
    assert_eq!(replayed["raw"]["result"]["content"][0]["text"], "hi");
    assert_eq!(replayed["request"], 3, "nothing was said before it");
    linked(&house, &replayed);
    // Its session is one that clients share.
    let replayed = house.ctl(&["replay", "sequence=1", "session=live"]);
    assert_eq!(replayed["raw"]["result"]["content"][0]["text"], "hi");
    assert_eq!(replayed["conn"], "c1");
    linked(&house, &replayed);
    let answer = proxy.post(&headers, &call);
    assert!(answer.text().contains(r#""id":2"#), "{answer:?}");
}

#[test]
fn without_a_record_the_temporary_one_is_enough() {
    let house = TestHome::new();
    let mut run = house.demo_without_record(&[]);
    call(&mut run);
    let replayed = house.ctl(&["replay", "sequence=4"]);
    assert_eq!(replayed["raw"]["result"]["content"][0]["text"], "hi");
    linked(&house, &replayed);
}

#[test]
fn what_cannot_be_replayed_is_said() {
    let house = TestHome::new();
    let _run = called(&house, &["--redact-key", "message"]);
    // The reason, and what the text names.
    let refused = |words: &[&str], code: i64, reason: Option<&str>, named: &str| {
        let error = house.refused(&[&["replay"], words].concat());
        assert_eq!(error["code"], code, "{error}");
        assert_eq!(error["data"]["reason"].as_str(), reason, "{error}");
        assert!(
            error["message"].as_str().unwrap().contains(named),
            "{error}"
        );
    };
    refused(&["sequence=99"], -32602, Some("unknown"), "#99");
    refused(&["sequence=5"], -32602, Some("from_server"), "#5");
    refused(&["sequence=4", "raw=[1]"], -32602, None, "as_is");
    refused(&["sequence=1", "session=dead"], -32602, None, "`dead`");
    let words = ["sequence=1", "session=live", "as_is=true"];
    refused(&words, -32602, Some("fresh_only"), "as_is");
    refused(&["sequence=1", "timeout_ms=0"], -32602, None, "timeout_ms");
}

#[test]
fn a_replay_that_the_server_does_not_answer_in_time_is_over() {
    let house = TestHome::new();
    let silent = ["--", "sleep", "1000"];
    let mut run = house.start_before(&[], &silent, TestProxy::wait_for_id);
    run.say(INITIALIZE);
    test_home::until("the message is recorded", || {
        house.record().contains("\"initialize\"")
    });
    let error = house.refused(&["replay", "sequence=1", "timeout_ms=1"]);
    assert_eq!(error["code"], -31104, "{error}");
    assert_eq!(error["data"]["reason"], "timeout", "{error}");
    assert!(error["message"].as_str().unwrap().contains("1ms"));
}

#[test]
fn values_that_the_record_hides_are_sent_again_as_long_as_they_are_known() {
    let house = TestHome::new();
    let mut run = called(&house, &["--redact-key", "message"]);
    let text = |replayed: &Value| replayed["raw"]["result"]["content"][0]["text"].clone();
    for session in ["session=fresh", "session=live"] {
        let replayed = house.ctl(&["replay", "sequence=4", session]);
        assert_eq!(text(&replayed), "hi");
        let (request, _) = linked(&house, &replayed);
        let shown = &request["raw"]["params"]["arguments"]["message"];
        assert!(shown.as_str().unwrap().starts_with("[redacted:"), "{shown}");
    }
    // An edit may leave the mark where it is, put another value in its place, and not move it.
    let rows = house.ctl(&["get", "from=4", "to=4", "raw=true"]);
    let shown = rows["rows"][0]["raw"].to_string();
    let edit = shown.replace(r#""id":2"#, r#""id":22"#);
    assert_eq!(
        text(&house.ctl(&["replay", "sequence=4", &format!("raw={edit}")])),
        "hi"
    );
    let edit = CALL.replace("hi", "ho");
    assert_eq!(
        text(&house.ctl(&["replay", "sequence=4", &format!("raw={edit}")])),
        "ho"
    );
    let edit = shown.replace(r#""message":"#, r#""text":"#);
    let error = house.refused(&["replay", "sequence=4", &format!("raw={edit}")]);
    assert_eq!(error["data"]["reason"], "redacted", "{error}");
    // A thousand hidden messages later it is not known any more, and the error names the value.
    for _ in 0..1_000 {
        run.say(r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"message":"s"}}"#);
    }
    run.round(PING);
    let error = house.refused(&["replay", "sequence=4"]);
    assert_eq!(error["code"], -31103, "{error}");
    assert_eq!(error["data"]["reason"], "redacted");
    assert_eq!(
        error["data"]["missing"][0]["path"],
        "params.arguments.message"
    );
    let edit = CALL.replace("hi", "again");
    assert_eq!(
        text(&house.ctl(&["replay", "sequence=4", &format!("raw={edit}")])),
        "again"
    );
}

#[test]
fn a_replay_names_its_original_in_the_record_and_in_every_export() {
    let house = TestHome::new();
    let mut run = called(&house, &[]);
    house.ctl(&["note", "text=here it goes wrong", "sequence=4"]);
    let edit = CALL.replace("hi", "changed");
    let edited = house.ctl(&["replay", "sequence=4", &format!("raw={edit}")]);
    let live = house.ctl(&["replay", "sequence=4", "session=live"]);
    let row = |number: &Value| {
        let (from, to) = (format!("from={number}"), format!("to={number}"));
        house.ctl(&["get", &from, &to])["rows"][0].clone()
    };
    let (edited, live) = (edited["request"].clone(), live["request"].clone());
    assert_eq!(
        (&row(&edited)["replay_of"], &row(&edited)["edited"]),
        (&json!(4), &json!(true))
    );
    assert_eq!(
        (&row(&live)["replay_of"], &row(&live)["edited"]),
        (&json!(4), &Value::Null)
    );
    assert_eq!(run.end(), Some(0));
    let export = |format: &str| test_home::ok(house.run(&["export", "--output-format", format]));
    let document: Value = serde_json::from_str(&export("json")).unwrap();
    let metadata = &document["metadata"];
    assert_eq!(metadata["notes"][0]["text"], "here it goes wrong");
    assert_eq!(metadata["notes"][0]["sequence"], 4);
    assert_eq!(metadata["proxy"][edited.to_string()]["replay_of"], 4);
    assert_eq!(metadata["proxy"][edited.to_string()]["edited"], true);
    let har: Value = serde_json::from_str(&export("har")).unwrap();
    assert_eq!(har["log"]["_notes"], metadata["notes"]);
    assert!(
        har["log"]["comment"]
            .as_str()
            .unwrap()
            .contains("here it goes wrong")
    );
    let entries = har["log"]["entries"].as_array().unwrap().iter();
    let replays: Vec<&Value> = entries
        .filter(|entry| entry["request"]["_replayOf"] == 4)
        .collect();
    assert_eq!(replays.len(), 2);
    assert_eq!(replays[0]["request"]["_edited"], true);
    for format in ["jsonl", "markdown"] {
        assert!(export(format).contains("here it goes wrong"), "{format}");
    }
    assert!(export("markdown").contains("edited replay of #4"));
}
