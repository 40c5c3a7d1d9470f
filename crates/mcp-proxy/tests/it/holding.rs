//! What a client sees when its messages are held and nobody decides: the policy's effect, on every transport.

use crate::run::{Listening, PROXY, pipe, request};

const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}"#;
const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/secret","params":{"echo":1}}"#;
const DEMO: [&str; 4] = ["--", PROXY, "demo-server", "stdio"];

/// Holds what has the word for a moment and then does this with it.
fn holding<'a>(word: &'a str, policy: &'a str) -> Vec<&'a str> {
    vec![
        "--break",
        word,
        "--hold-timeout",
        "50ms",
        "--on-hold-timeout",
        policy,
    ]
}

fn with<'a>(mut flags: Vec<&'a str>, more: &[&'a str]) -> Vec<&'a str> {
    flags.extend_from_slice(more);
    flags
}

fn post(proxy: &Listening, session: &str, body: &str) -> (u16, String) {
    let answer = proxy.post(&[("mcp-session-id", session)], body);
    (answer.status, answer.text())
}

/// The three policies behind an HTTP listener, whatever stands behind it.
fn policies(target: &[&str]) {
    let proxy = Listening::proxy("http", &with(holding("echo", "forward"), target));
    let session = proxy.session();
    let (status, text) = post(&proxy, &session, CALL);
    assert!(status == 200 && text.contains("hi"), "{status} {text}");

    let proxy = Listening::proxy("http", &with(holding("echo", "drop"), target));
    let session = proxy.session();
    assert_eq!(post(&proxy, &session, CALL), (502, String::new()));
    assert_eq!(post(&proxy, &session, NOTE), (202, String::new()));
    let list = r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#;
    assert_eq!(post(&proxy, &session, list).0, 200, "the session goes on");

    let proxy = Listening::proxy("http", &with(holding("echo", "error"), target));
    let session = proxy.session();
    let (status, text) = post(&proxy, &session, CALL);
    assert_eq!(status, 200);
    assert!(
        text.contains(r#""id":2"#) && text.contains("-31012"),
        "{text}"
    );
}

#[test]
fn over_http_before_a_process() {
    policies(&DEMO);
}

#[test]
fn over_http_before_http() {
    let server = Listening::demo();
    let url = server.url();
    policies(&["--transport", "streamable-http", "--target-url", &url]);
}

#[test]
fn an_answer_that_is_dropped_ends_its_exchange() {
    // The word stands in the server's answer only.
    let held = "isError";
    let server = Listening::demo();
    let url = server.url();
    for target in [
        &DEMO[..],
        &["--transport", "streamable-http", "--target-url", &url],
    ] {
        let proxy = Listening::proxy("http", &with(holding(held, "drop"), target));
        let session = proxy.session();
        let (status, text) = post(&proxy, &session, CALL);
        // Where the stream was open already it ends without the answer.
        assert!(status == 502 || !text.contains("hi"), "{status} {text}");
    }
}

#[test]
fn over_stdio_a_held_request_is_answered_or_goes_on() {
    let input = format!("{CALL}\n");
    let error = pipe(&with(holding("echo", "error"), &DEMO), input.as_bytes());
    let text = String::from_utf8_lossy(&error.stdout);
    assert!(text.contains("-31012"), "{text}");
    let flags = ["--intercept", "--hold-timeout", "20ms"];
    let on = pipe(&with(flags.to_vec(), &["--", "cat"]), input.as_bytes());
    assert_eq!(String::from_utf8_lossy(&on.stdout), input, "{on:?}");
}

#[test]
fn large_messages_can_be_held_too() {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"{}"}}}}}}"#,
        "x".repeat(300_000)
    );
    let input = format!("{body}\n");
    let flags = with(holding("echo", "forward"), &["--", "cat"]);
    let on = pipe(&flags, input.as_bytes());
    assert!(on.stdout == input.as_bytes(), "{} bytes", on.stdout.len());
    let server = Listening::demo();
    let url = server.url();
    let target = ["--transport", "streamable-http", "--target-url", &url];
    let proxy = Listening::proxy("http", &with(holding("echo", "forward"), &target));
    let session = proxy.session();
    let answer = request(
        &proxy.address,
        "POST",
        "/mcp",
        &[
            ("mcp-session-id", &session),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ],
        body.as_bytes(),
    );
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains("xxxx"));
}
