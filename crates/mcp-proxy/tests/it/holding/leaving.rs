//! Clients that give up what is held: it is not sent when somebody lets it go later, for nobody waits for it.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::control::test_home::{self, TestHome, until};
use crate::programs::{INITIALIZE, INITIALIZED, ListeningProgram, open, record_lines};

const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const MODERN: [(&str, &str); 4] = [
    ("content-type", "application/json"),
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-method", "tools/call"),
    ("mcp-name", "echo"),
];

/// Waits until the proxy itself has dropped the message.
fn drops(house: &TestHome, sequence: u64) {
    let dropped =
        |line: &Value| line["t"] == "act" && line["kind"] == "drop" && line["by"] == "proxy";
    let mut acts = Vec::new();
    until("what was held is dropped", || {
        acts = record_lines(&house.record());
        acts.retain(dropped);
        !acts.is_empty()
    });
    assert_eq!(acts[0]["sequence"], sequence, "{acts:?}");
}

/// A FIN within 50 ms might be the half of a close: its client would still read.
fn after_a_half_close() {
    after(Duration::from_millis(60));
}

/// Something must not happen for this long.
fn after(time: Duration) {
    let start = Instant::now();
    until("the time has passed", || start.elapsed() > time);
}

#[test]
fn a_modern_client_that_closes_its_stream() {
    let server = ListeningProgram::demo();
    let url = server.url();
    let stdio = ["--", super::PROXY, "demo-server", "stdio"];
    let http = ["--transport", "streamable-http", "--target-url", &url];
    for target in [&stdio[..], &http] {
        let house = TestHome::new();
        let words = ["proxy", "--listen", "http", "--listen-port", "0"];
        let words = [&words[..], &["--break", "tools/call"], target].concat();
        let proxy = ListeningProgram::start_with(&words, &house.env());
        let asked = open(&proxy.address, "POST", "/mcp", &MODERN, CALL.as_bytes());
        house.held();
        after_a_half_close();
        drop(asked);
        drops(&house, 1);
    }
}

#[test]
fn part6_a_cancelled_post_gets_the_same_answer_on_both_http_paths() {
    let server = ListeningProgram::demo();
    let url = server.url();
    let stdio = ["--", super::PROXY, "demo-server", "stdio"];
    let http = ["--transport", "streamable-http", "--target-url", &url];
    for target in [&stdio[..], &http] {
        let house = TestHome::new();
        let words = ["proxy", "--listen", "http", "--listen-port", "0"];
        let words = [&words[..], &["--break", "tools/call"], target].concat();
        let proxy = ListeningProgram::start_with(&words, &house.env());
        let id = proxy.session();
        let session = [("mcp-session-id", id.as_str())];
        let answer = std::thread::scope(|scope| {
            let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}"#;
            let calling = scope.spawn(|| proxy.post(&session, call));
            house.held();
            let cancel =
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#;
            assert_eq!(proxy.post(&session, cancel).status, 202);
            calling.join().unwrap()
        });
        let content = answer.header("content-type");
        assert_eq!((answer.status, content), (200, Some("text/event-stream")));
        assert_eq!(answer.text(), "");
    }
}

#[test]
fn a_modern_client_that_does_not_wait_for_a_held_answer() {
    let house = TestHome::new();
    let words = ["proxy", "--listen", "http", "--listen-port", "0"];
    let stdio = ["--", super::PROXY, "demo-server", "stdio"];
    let words = [&words[..], &["--break", r#".kind=="response""#], &stdio].concat();
    let proxy = ListeningProgram::start_with(&words, &house.env());
    let asked = open(&proxy.address, "POST", "/mcp", &MODERN, CALL.as_bytes());
    house.held();
    after_a_half_close();
    drop(asked);
    drops(&house, 2);
    let verdicts = house.record().matches(r#""t":"act""#).count();
    assert_eq!(verdicts, 2, "hold and drop");
}

#[test]
fn a_request_that_a_rule_delays() {
    let house = TestHome::new();
    let rules = house.path("rules.toml");
    std::fs::write(
        &rules,
        "[[rule]]\nmethod = \"tools/call\"\ndelay = \"400ms\"\n",
    )
    .unwrap();
    let mut run = house.demo(&["--rules", rules.to_str().unwrap()]);
    run.round(INITIALIZE);
    run.say(INITIALIZED);
    run.say(CALL);
    run.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#);
    drops(&house, 4);
    let rows = house.ctl(&["get"])["rows"].clone();
    let answered = rows.as_array().unwrap().iter();
    let answered = answered.filter(|row| row["answers"] == 4).count();
    assert_eq!(answered, 0, "{rows}");
}

#[test]
fn a_stdio_client_that_has_ended_ends_what_is_held_and_the_proxy() {
    // A request, and the answer to one. Nothing but its client ends such a hold.
    for (kind, sequence) in [("request", 1), ("response", 2)] {
        let house = TestHome::new();
        let filter = format!(r#".kind == "{kind}" and .method == "ping""#);
        let mut run = house.demo(&["--break", &filter, "--hold-timeout", "never"]);
        run.say(test_home::PING);
        house.held();
        run.lose_client();
        until("the proxy has ended", || {
            run.child.try_wait().unwrap().is_some()
        });
        drops(&house, sequence);
    }
}

#[test]
fn a_stdio_client_that_only_has_nothing_more_to_say_still_gets_its_answer() {
    let house = TestHome::new();
    let filter = r#".kind == "request" and .method == "ping""#;
    let mut run = house.demo(&["--break", filter, "--hold-timeout", "never"]);
    run.say(test_home::PING);
    house.held();
    run.close_stdin();
    // Longer than it takes to find out that a client has ended.
    after(Duration::from_millis(1_200));
    house.ctl(&["continue"]);
    assert!(run.hear().contains(r#""result""#));
    assert_eq!(run.end(), Some(0));
}
