//! `curl` lines: what they say, and that a real shell reads them as meant.

use super::super::shell::quote;
use super::*;
use mcp_proxy_session::{HttpHead, MessageId, ProxyMessage, RawBody};
use mcp_proxy_wire::terminal_text::sanitize_lines;
use mcp_proxy_wire::{Direction, Origin, Transport};
use proptest::prelude::*;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

const URL: &str = "http://127.0.0.1:8080/mcp";

fn message(body: &str) -> ProxyMessage {
    let parsed = Message::parse(body.to_owned());
    ProxyMessage {
        id: MessageId::from_bytes([0; 16]),
        sequence: 1,
        timestamp: UNIX_EPOCH,
        direction: Direction::ClientToServer,
        transport: Transport::Stdio,
        raw: RawBody::classify(body.to_owned().into()),
        jsonrpc_id: None,
        server_id: None,
        method: None,
        correlated_id: None,
        modified: false,
        original_raw: None,
        kind: parsed.kind(),
        name: None,
        connection: 1,
        exchange: 0,
        mono: Duration::ZERO,
        answers: None,
        latency: None,
        request_held: None,
        late: false,
        duplicate: false,
        origin: Origin::Client,
        parent: None,
        dropped: false,
        refused: false,
        answered: false,
        undecided: false,
        held: None,
        delayed: false,
        redirected: false,
        redacted: 0,
        len: body.len() as u64,
        parts: Vec::new(),
        http: None,
        sse: None,
        replay_of: None,
        verdicts: Vec::new(),
    }
}

fn over_http(body: &str, method: &str, headers: &[(&str, &str)]) -> ProxyMessage {
    let headers = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    ProxyMessage {
        transport: Transport::StreamableHttp,
        http: Some(HttpHead {
            method: Some(method.to_owned()),
            headers: headers.collect(),
            ..HttpHead::default()
        }),
        ..message(body)
    }
}

#[test]
fn a_message_of_a_pipe_becomes_a_post() {
    let legacy = message(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let expected = r#"curl --no-buffer 'http://127.0.0.1:8080/mcp' \
  --header 'accept: application/json, text/event-stream' \
  --header 'content-type: application/json' \
  --data-binary '{"jsonrpc":"2.0","id":1,"method":"ping"}'"#;
    assert_eq!(curl(&legacy, URL).unwrap(), expected);

    let modern = message(
        r#"{"id":1,"method":"tools/call","params":{"name":"it's","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
    );
    let command = curl(&modern, URL).unwrap();
    for line in [
        "--header 'mcp-protocol-version: 2026-07-28'",
        "--header 'mcp-method: tools/call'",
        r"--header 'mcp-name: it'\''s'",
    ] {
        assert!(command.contains(line), "{command}");
    }
}

#[test]
fn headers_come_along_but_for_those_of_the_connection() {
    let headers = [
        ("host", "old:1"),
        ("connection", "keep-alive, X-Hop"),
        ("x-hop", "1"),
        ("content-length", "2"),
        ("transfer-encoding", "chunked"),
        ("accept-encoding", "gzip, br"),
        ("authorization", "Bearer [masked]"),
        ("cookie", "[masked]"),
        ("cookie", "[masked]"),
        ("mcp-session-id", "s1"),
        ("x-empty", ""),
        ("bad name", "x"),
        ("content-type", "application/json"),
    ];
    let command = curl(&over_http("{}", "POST", &headers), URL).unwrap();
    insta::assert_snapshot!("curl_headers", command);

    let delete = over_http("", "DELETE", &[("accept", "*/*")]);
    let expected = "curl --no-buffer 'https://[::1]/mcp' \\\n  --globoff \\\n  --request 'DELETE' \\\n  --header 'accept: */*'";
    assert_eq!(curl(&delete, "https://[::1]/mcp").unwrap(), expected);
}

#[test]
fn what_cannot_be_sent_is_said() {
    let mut answer = message("{}");
    answer.direction = Direction::ServerToClient;
    let mut binary = message("");
    binary.raw = RawBody::classify(b"\xff\xfe"[..].into());
    let mut lost = message("");
    lost.raw = RawBody::NotStored { len: 7 };
    let refused = [
        curl(&answer, URL),
        curl(&message("{}"), "-o/etc/passwd"),
        curl(&message("a\0b"), URL),
        curl(&message(&"x".repeat(200_000)), URL),
        curl(&binary, URL),
        curl(&lost, URL),
    ];
    let refused = refused.map(Result::unwrap_err);
    insta::assert_snapshot!("curl_errors", refused.join("\n"));
}

#[test]
fn bodies_are_bodies_and_files_are_files() {
    assert!(
        curl(&message("@/etc/passwd"), URL)
            .unwrap()
            .ends_with("--data-raw '@/etc/passwd'")
    );
    let mut redacted = message("{}");
    redacted.redacted = 2;
    assert!(curl(&redacted, URL).unwrap().starts_with("# 2 "));
}

/// What a real shell makes of a word.
fn read_by_bash(word: &str) -> Vec<u8> {
    let script = format!("printf %s {word}");
    Command::new("bash")
        .args(["-c", &script])
        .output()
        .unwrap()
        .stdout
}

#[test]
fn a_shell_reads_the_very_bytes() {
    for text in [
        "",
        "plain",
        "it's",
        "a\nb\tc\\n",
        "$(id) `id` ${HOME} !! \"",
        "\u{1b}[201~\u{3}'!\\x41é漢\u{202e}f",
        "\u{9b}0",
    ] {
        let word = quote(text).unwrap();
        assert_eq!(sanitize_lines(&word), word);
        assert!(!word.contains('\n'), "{word}");
        assert_eq!(String::from_utf8(read_by_bash(&word)).unwrap(), text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_command_never_acts_on_a_terminal(body in "\\PC{0,8}|[\\x01-\\x7f'!\\\\]{0,24}|.{0,12}", value in ".{0,8}") {
        let mut message = over_http(&body, "POST", &[("x-a", value.as_str())]);
        for command in [curl(&message, URL), { message.http = None; curl(&message, URL) }].into_iter().flatten() {
            prop_assert_eq!(&sanitize_lines(&command), &command);
        }
    }
}
