//! Between kinds, with peers that answer or ask oddly: whoever waits is told, and the record keeps what came.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::passing::read_request;
use crate::programs::{INITIALIZE, INITIALIZED, ListeningProgram, StdioProgram, error_answer};

/// A server that answers POSTs by `answer` (from head and body) and GETs with `stream`, which it leaves open.
pub fn odd(answer: fn(&str) -> String, stream: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut streams: Vec<TcpStream> = Vec::new();
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let request = read_request(&connection);
            let is_get = request.starts_with("GET");
            let text = match is_get {
                true => stream.to_owned(),
                false => answer(&request),
            };
            // A proxy that has ended no longer takes its answers.
            let _ = connection.write_all(text.as_bytes());
            if is_get {
                streams.push(connection);
            }
        }
    });
    address
}

pub const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: open\n\n";

pub fn http(status: &str, kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nmcp-session-id: s\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn by_method(request: &str) -> String {
    let json = "application/json";
    if request.contains(r#""initialize""#) {
        let result = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"odd","version":"1"}}}"#;
        http("200 OK", json, result)
    } else if request.contains("as_page") {
        http("200 OK", "text/html", "<html>\n<body>")
    } else if request.contains("as_nothing") {
        http("200 OK", json, "")
    } else if request.contains("as_bytes") {
        http("200 OK", json, "\u{1f}\u{8}\u{0}")
    } else if request.contains("as_another") {
        http("200 OK", json, r#"{"jsonrpc":"2.0","id":99,"result":{}}"#)
    } else if request.contains("as_notification") {
        http(
            "200 OK",
            json,
            r#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
        )
    } else if request.contains("as_failure") {
        http("500 Oops", "text/plain", "line one\nline two")
    } else {
        http("202 Accepted", json, "")
    }
}

fn before(address: &str, more: &[&str]) -> StdioProgram {
    let url = format!("http://{address}/mcp");
    let mut args = vec!["proxy", "--listen", "stdio"];
    args.extend(["--transport", "streamable-http", "--target-url", &url]);
    args.extend(more);
    StdioProgram::start(&args)
}

#[test]
fn an_answer_that_is_none_leaves_no_request_open() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("r.jsonl");
    let address = odd(by_method, EVENTS);
    let mut talk = before(&address, &["--session-file", record.to_str().unwrap()]);
    talk.say(INITIALIZE);
    assert!(talk.hear().contains("serverInfo"));
    talk.say(INITIALIZED);
    // What is quoted is the status and what the server wrote, if it can be shown.
    for (method, quoted) in [
        ("as_page", "200 <html>"),
        ("as_nothing", "200"),
        ("as_bytes", "200"),
        ("as_another", "200"),
        ("as_notification", "200"),
        ("as_failure", "500 line one"),
    ] {
        talk.say(&format!(
            r#"{{"jsonrpc":"2.0","id":"{method}","method":"{method}"}}"#
        ));
        // What came passes too, before the error.
        let answer = loop {
            let heard = talk.hear();
            if serde_json::from_str::<Value>(&heard).unwrap()["id"] == method {
                break heard;
            }
        };
        assert_eq!(error_answer(&answer), (json!(method), -31003), "{answer}");
        let (status, line) = quoted.split_once(' ').unwrap_or((quoted, ""));
        assert!(answer.contains(status) && answer.contains(line), "{answer}");
        assert!(!answer.contains("line two") && !answer.contains("<body>"));
    }
    talk.say(r#"{"jsonrpc":"2.0","method":"notifications/as_failure"}"#);
    talk.say(r#"{"jsonrpc":"2.0","id":9,"method":"as_page"}"#);
    assert_eq!(error_answer(&talk.hear()), (json!(9), -31003));
    assert_eq!(talk.end(), Some(0));
    let kept = std::fs::read_to_string(&record).unwrap();
    for piece in ["line two", "<body>", "500", r#""kind":"undelivered""#] {
        assert!(kept.contains(piece), "{piece} is not in the record");
    }
}

#[test]
fn a_header_of_ours_wins_over_credentials_in_the_url() {
    fn echo(request: &str) -> String {
        let line = request
            .lines()
            .find(|line| line.to_lowercase().starts_with("authorization"));
        http("500 Seen", "text/plain", line.unwrap_or("none"))
    }
    let address = odd(echo, EVENTS);
    let mut talk = before(
        &format!("me:pw@{address}"),
        &["--no-record", "--header", "Authorization: Bearer ours"],
    );
    talk.say(INITIALIZE);
    let answer = talk.hear();
    assert!(answer.contains("Bearer ours"), "{answer}");
    talk.end();
}

#[test]
fn an_endpoint_elsewhere_is_named_also_when_the_kind_was_not_given() {
    fn refuse(_: &str) -> String {
        http("404 Not Found", "text/plain", "nope")
    }
    let elsewhere = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: endpoint\ndata: http://example.test/m\n\n";
    let url = format!("http://{}/mcp", odd(refuse, elsewhere));
    let mut talk = StdioProgram::start(&["proxy", "--listen", "stdio", "--no-record", &url]);
    talk.say(INITIALIZE);
    let answer = talk.hear();
    assert_eq!(error_answer(&answer), (json!(1), -31003), "{answer}");
    for told in ["404", "nope", "example.test"] {
        assert!(answer.contains(told), "{answer}");
    }
    talk.end();
}

#[test]
fn a_request_nested_too_deep_for_us_gets_its_own_answer() {
    let script = r#"while read -r x; do echo '{"jsonrpc":"2.0","id":1,"result":{}}'; done"#;
    let proxy = ListeningProgram::proxy("http", &["--", "sh", "-c", script]);
    let session = proxy.session();
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{}{}}}"#,
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    let answer = proxy.post(&[("mcp-session-id", &session)], &deep);
    assert_eq!(answer.status, 200);
    assert!(
        answer.text().contains(r#""id":1,"result""#),
        "{}",
        answer.text()
    );

    fn refuse(request: &str) -> String {
        match request.contains("[[[") {
            true => http("400 Bad Request", "text/plain", "too deep"),
            false => by_method(request),
        }
    }
    let address = odd(refuse, EVENTS);
    let mut talk = before(&address, &["--no-record"]);
    talk.say(INITIALIZE);
    assert!(talk.hear().contains("serverInfo"));
    talk.say(&deep);
    let answer = talk.hear();
    assert_eq!(error_answer(&answer), (json!(1), -31003), "{answer}");
    assert!(answer.contains("400") && answer.contains("too deep"));
    talk.end();
}

#[test]
fn a_get_stream_that_breaks_is_taken_up_behind_its_last_event() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, heads) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut gets = 0;
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let request = read_request(&connection);
            if !request.starts_with("GET") {
                let _ = connection.write_all(by_method(&request).as_bytes());
                continue;
            }
            gets += 1;
            let event = format!(
                "id: e{gets}\nretry: 10\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/n{gets}\"}}\n\n"
            );
            let _ = connection.write_all(format!("{EVENTS}{event}").as_bytes());
            let _ = tell.send(request);
        }
    });
    let mut talk = before(&address, &["--no-record"]);
    talk.say(INITIALIZE);
    assert!(talk.hear().contains("serverInfo"));
    talk.say(INITIALIZED);
    assert!(talk.hear().contains("notifications/n1"));
    assert!(talk.hear().contains("notifications/n2"));
    let heads: Vec<String> = heads
        .iter()
        .take(2)
        .map(|head| head.to_lowercase())
        .collect();
    assert!(!heads[0].contains("last-event-id"), "{}", heads[0]);
    assert!(heads[1].contains("last-event-id: e1"), "{}", heads[1]);
    assert!(heads[1].contains("mcp-session-id: s"), "{}", heads[1]);
    talk.end();
}

#[test]
fn a_session_that_the_server_has_lost_ends_the_link_and_is_not_opened_again() {
    fn lost(request: &str) -> String {
        match request.contains("tools/list") {
            true => http("404 Not Found", "text/plain", "no such session"),
            false => by_method(request),
        }
    }
    let address = odd(lost, EVENTS);
    let mut talk = before(&address, &["--no-record"]);
    talk.say(INITIALIZE);
    assert!(talk.hear().contains("serverInfo"));
    talk.say(r#"{"jsonrpc":"2.0","id":"x","method":"tools/list"}"#);
    let answer = talk.hear();
    assert_eq!(error_answer(&answer), (json!("x"), -31006), "{answer}");
    assert_eq!(talk.end(), Some(1));
}

#[test]
fn modern_clients_share_a_process_only_with_their_own_token() {
    let script = r#"while read -r x; do id=$(printf %s "$x" | sed 's/.*"id":\([0-9]*\).*/\1/'); echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"process\":\"$$\"}}"; done"#;
    let proxy = ListeningProgram::proxy("http", &["--", "sh", "-c", script]);
    let ask = |token: &str| {
        let request = r#"{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
        let headers = [
            ("authorization", token),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/list"),
        ];
        let answer = proxy.post(&headers, request);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.text().split("process").nth(1).unwrap().to_owned()
    };
    let (one, again, other) = (ask("Bearer a"), ask("Bearer a"), ask("Bearer b"));
    assert_eq!(one, again);
    assert_ne!(one, other);
}
