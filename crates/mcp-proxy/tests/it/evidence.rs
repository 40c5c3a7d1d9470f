//! The record is evidence: what a server sent stands there as it was received, whoever changes it afterwards, and what
//! reached nobody says so, on every transport.

use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;

use crate::bridging::{EVENTS, http, odd};
use crate::control::live::SseClient;
use crate::programs::{INITIALIZE, ListeningProgram, StdioProgram, request};
use crate::undelivered::ENDPOINT;

/// The lines of a record of this type (`msg`, `io`, `act`).
pub fn lines(record: &Path, kind: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(record).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.filter(|line: &Value| line["t"] == kind).collect()
}

/// The numbers that the record calls undelivered.
pub fn undelivered(record: &Path) -> Vec<u64> {
    let lines = lines(record, "io");
    let lost = lines.iter().filter(|line| line["kind"] == "undelivered");
    lost.map(|line| line["sequence"].as_u64().unwrap())
        .collect()
}

/// An address where nobody listens.
pub fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[test]
fn w6_an_error_without_the_id_of_a_request_answers_it_and_is_recorded_as_the_server_sent_it() {
    const ERRORS: [&str; 3] = [
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"},"x":1.0}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"},"x":1.0}"#,
        r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"no"},"x":1.0}"#,
    ];
    fn refuse(request: &str) -> String {
        let names = ["first", "second", "third"];
        let which = names
            .iter()
            .position(|name| request.contains(name))
            .unwrap();
        http("400 Bad Request", "application/json", ERRORS[which])
    }
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("r.jsonl");
    let url = format!("http://{}/mcp", odd(refuse, EVENTS));
    let mut talk = StdioProgram::start(&[
        "proxy",
        "--listen",
        "stdio",
        "--session-file",
        record.to_str().unwrap(),
        "--transport",
        "streamable-http",
        "--target-url",
        &url,
    ]);
    for (id, method) in [(1, "first"), (2, "second"), (3, "third")] {
        talk.say(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#
        ));
        let answer: Value = serde_json::from_str(&talk.hear()).unwrap();
        assert_eq!(answer["id"], id);
        assert_eq!(answer["error"]["code"], -32600);
        assert_eq!(answer["x"].to_string(), "1.0", "all else stays");
    }
    talk.end();
    let text = std::fs::read_to_string(&record).unwrap();
    for error in ERRORS {
        assert!(text.contains(error), "{error} is not in the record");
    }
    let messages = lines(&record, "msg");
    let sent: Vec<(&Value, &Value)> = messages
        .iter()
        .filter(|line| line["direction"] == "server_to_client")
        .map(|line| (&line["origin"], &line["answers"]))
        .collect();
    let proxy = Value::from("proxy");
    let requests = [1, 4, 7].map(Value::from);
    let expected = requests
        .iter()
        .flat_map(|request| [(&Value::Null, &Value::Null), (&proxy, request)]);
    assert_eq!(sent, expected.collect::<Vec<_>>());
}

#[test]
fn an_answer_to_an_sse_post_is_the_servers() {
    fn refuse(request: &str) -> String {
        let id = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#;
        match request.contains("initialize") {
            true => http("400 Bad Request", "application/json", id),
            false => http("202 Accepted", "text/plain", "Accepted"),
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("r.jsonl");
    let url = format!("http://{}/sse", odd(refuse, ENDPOINT));
    let mut talk = StdioProgram::start(&[
        "proxy",
        "--listen",
        "stdio",
        "--session-file",
        record.to_str().unwrap(),
        "--transport",
        "sse",
        "--target-url",
        &url,
    ]);
    talk.say(INITIALIZE);
    let answer: Value = serde_json::from_str(&talk.hear()).unwrap();
    assert_eq!(answer["error"]["code"], -32602);
    talk.end();
    let messages = lines(&record, "msg");
    let answer = messages
        .iter()
        .find(|line| line["kind"] == "error")
        .unwrap();
    assert_eq!(answer["origin"], Value::Null, "{answer}");
    assert_eq!(answer["answers"], 1);
}

#[test]
fn what_cannot_be_sent_is_undelivered_between_two_http_sides() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("r.jsonl");
    let url = format!("http://{}/mcp", nobody());
    let words = ["proxy", "--listen", "http", "--listen-port", "0"];
    let file = ["--session-file", record.to_str().unwrap()];
    let target = ["--transport", "streamable-http", "--target-url", &url];
    let proxy = ListeningProgram::start(&[&words[..], &file, &target].concat());
    let headers = [("content-type", "application/json")];
    let asked = INITIALIZE.as_bytes();
    let answer = request(&proxy.address, "POST", "/mcp", &headers, asked);
    assert_eq!(answer.status, 502);
    proxy.end("-TERM");
    assert_eq!(undelivered(&record), [1]);
}

#[test]
fn a_rule_changes_or_drops_what_a_server_answers_to_an_sse_post() {
    fn refuse(request: &str) -> String {
        let error = |id| {
            let error = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"no"}}}}"#
            );
            http("400 Bad Request", "application/json", &error)
        };
        match request.contains("ping") {
            true => error(9),
            false => error(1),
        }
    }
    for (action, expected) in [
        (
            r#"change = '.message = "changed"'"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"changed"}}"#,
        ),
        (
            "drop = true",
            r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"no"}}"#,
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("r.jsonl");
        let rules = folder.path().join("rules.toml");
        let rule = format!(
            "[[rule]]\ndirection = \"server_to_client\"\nmethod = \"initialize\"\n{action}\n"
        );
        std::fs::write(&rules, rule).unwrap();
        let url = format!("http://{}/sse", odd(refuse, ENDPOINT));
        let words = ["proxy", "--listen", "sse", "--listen-port", "0"];
        let files = [
            "--session-file",
            record.to_str().unwrap(),
            "--rules",
            rules.to_str().unwrap(),
        ];
        let target = ["--transport", "sse", "--target-url", &url];
        let proxy = ListeningProgram::start(&[&words[..], &files, &target].concat());
        let mut client = SseClient::connect(&proxy);
        client.say(INITIALIZE);
        client.say(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#);
        assert_eq!(client.hear(), expected);
        proxy.end("-TERM");
        assert_eq!(lines(&record, "act").len(), 1, "{action}");
    }
}

#[test]
fn a_record_that_is_forced_onto_the_disk_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("r.jsonl");
    let mut talk = StdioProgram::start(&[
        "proxy",
        "--listen",
        "stdio",
        "--durability",
        "fsync",
        "--session-file",
        record.to_str().unwrap(),
        "--",
        "cat",
    ]);
    let large = format!(
        r#"{{"jsonrpc":"2.0","id":0,"result":"{}"}}"#,
        "x".repeat(100_000)
    );
    for id in 1..=20 {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        talk.say(&line);
        assert_eq!(talk.hear().trim_end(), line);
    }
    talk.say(&large);
    assert_eq!(talk.hear().trim_end(), large);
    talk.end();
    assert_eq!(lines(&record, "msg").len(), 42);
}
