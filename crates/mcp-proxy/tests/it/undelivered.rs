//! A message that the other side did not take says so in the record, and what came instead of an answer stands there too.

use std::path::Path;

use serde_json::Value;

use crate::bridging::{EVENTS, http, odd};
use crate::evidence::{lines, nobody, undelivered};
use crate::programs::{INITIALIZE, ListeningProgram, StdioProgram, request};

pub const ENDPOINT: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: endpoint\ndata: /m\n\n";

/// The proxy between stdio and a server at this URL, with `options` about the server.
fn bridge(record: &Path, url: &str, options: &[&str]) -> StdioProgram {
    let record = record.to_str().unwrap();
    let mut args = vec!["proxy", "--listen", "stdio", "--session-file", record];
    args.extend(["--target-url", url]);
    args.extend(options);
    StdioProgram::start(&args)
}

fn hang_up(_: &str) -> String {
    String::new()
}

fn busy(_: &str) -> String {
    http("503 Busy", "text/plain", "busy\nline two")
}

#[test]
fn a_request_that_a_dialled_server_did_not_take_is_undelivered() {
    for (transport, url) in [
        ("streamable-http", format!("http://{}/mcp", nobody())),
        (
            "streamable-http",
            format!("http://{}/mcp", odd(busy, EVENTS)),
        ),
        ("sse", format!("http://{}/sse", odd(hang_up, ENDPOINT))),
        ("sse", format!("http://{}/sse", odd(busy, ENDPOINT))),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("r.jsonl");
        let mut talk = bridge(&record, &url, &["--transport", transport]);
        talk.say(INITIALIZE);
        let answer: Value = serde_json::from_str(&talk.hear()).unwrap();
        assert_eq!(answer["id"], 1, "{transport} {url}");
        assert!(answer["error"]["code"].is_i64(), "{answer}");
        talk.end();
        assert_eq!(undelivered(&record), [1], "{transport} {url}");
    }
}

#[test]
fn a_large_request_that_a_server_did_not_answer_is_undelivered_between_two_http_sides() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("r.jsonl");
    let url = format!("http://{}/mcp", odd(hang_up, EVENTS));
    let proxy = ListeningProgram::start(&[
        "proxy",
        "--listen",
        "http",
        "--listen-port",
        "0",
        "--session-file",
        record.to_str().unwrap(),
        "--transport",
        "streamable-http",
        "--target-url",
        &url,
    ]);
    let large = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":"{}"}}"#,
        "x".repeat(100_000)
    );
    let headers = [("content-type", "application/json")];
    let answer = request(&proxy.address, "POST", "/mcp", &headers, large.as_bytes());
    assert_eq!(answer.status, 502);
    proxy.end("-TERM");
    assert_eq!(undelivered(&record), [1]);
}

#[test]
fn a_request_that_a_server_took_is_not_undelivered() {
    fn page(_: &str) -> String {
        http("200 OK", "text/html", "<html>")
    }
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("r.jsonl");
    let url = format!("http://{}/mcp", odd(page, EVENTS));
    let mut talk = bridge(&record, &url, &["--transport", "streamable-http"]);
    talk.say(INITIALIZE);
    let answer: Value = serde_json::from_str(&talk.hear()).unwrap();
    assert_eq!(answer["error"]["code"], -31003);
    talk.end();
    assert!(undelivered(&record).is_empty());
}

#[test]
fn the_message_by_which_a_server_is_tried_can_be_undelivered() {
    for text in [
        INITIALIZE,
        r#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
    ] {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("r.jsonl");
        let url = format!("http://{}/mcp", odd(busy, EVENTS));
        let mut talk = bridge(&record, &url, &[]);
        talk.say(text);
        talk.end();
        assert_eq!(undelivered(&record), [1], "{text}");
    }
}

#[test]
fn what_an_sse_server_answers_to_a_post_is_recorded_as_it_came() {
    const WITHOUT_ID: &str =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"},"x":1.0}"#;
    fn answer(request: &str) -> String {
        match request.contains("initialize") {
            true => http("400 Bad Request", "application/json", WITHOUT_ID),
            false => busy(request),
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("r.jsonl");
    let url = format!("http://{}/sse", odd(answer, ENDPOINT));
    let mut talk = bridge(&record, &url, &["--transport", "sse"]);
    talk.say(INITIALIZE);
    let told: Value = serde_json::from_str(&talk.hear()).unwrap();
    assert_eq!(
        (&told["id"], &told["error"]["code"]),
        (&1.into(), &(-32600).into())
    );
    assert_eq!(told["x"].to_string(), "1.0", "all else stays");
    talk.say(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#);
    let told: Value = serde_json::from_str(&talk.hear()).unwrap();
    assert_eq!(
        (&told["id"], &told["error"]["code"]),
        (&2.into(), &(-31003).into())
    );
    talk.end();
    let text = std::fs::read_to_string(&record).unwrap();
    assert!(
        text.contains(WITHOUT_ID) && text.contains(r"busy\nline two"),
        "{text}"
    );
    let messages = lines(&record, "msg");
    let from_server = messages
        .iter()
        .filter(|line| line["direction"] == "server_to_client");
    let origins: Vec<&Value> = from_server.map(|line| &line["origin"]).collect();
    let proxy = Value::from("proxy");
    assert_eq!(origins, [&Value::Null, &proxy, &Value::Null, &proxy]);
    assert_eq!(undelivered(&record), [4], "the first was answered");
}
