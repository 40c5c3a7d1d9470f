//! The HTTP listener before a stdio server: sessions, streams, and who may speak.

use serde_json::{Value, json};

use crate::programs::{INITIALIZE, ListeningProgram, PROXY, error_answer, open, request};

fn demo_behind_http() -> ListeningProgram {
    ListeningProgram::proxy("http", &["--", PROXY, "demo-server", "stdio"])
}

const ECHO: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}"#;
const COUNT: &str = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"count_down","arguments":{"from":2},"_meta":{"progressToken":"t"}}}"#;

#[test]
fn a_session_lives_from_initialize_to_delete() {
    let proxy = demo_behind_http();
    let id = proxy.session();
    let answer = proxy.post(&[("mcp-session-id", &id)], ECHO);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert!(answer.text().contains("hi"));
    let delete = request(
        &proxy.address,
        "DELETE",
        "/mcp/",
        &[("mcp-session-id", &id)],
        b"",
    );
    assert_eq!(delete.status, 200);
    let answer = proxy.post(&[("mcp-session-id", &id)], ECHO);
    assert_eq!(answer.status, 404);
    assert!(answer.text().contains(r#""id":2"#), "{}", answer.text());
    assert_eq!(proxy.post(&[], ECHO).status, 400);
    assert_eq!(
        request(&proxy.address, "GET", "/other", &[], b"").status,
        404
    );
}

#[test]
fn progress_makes_a_stream_and_event_ids_resume_it() {
    let proxy = demo_behind_http();
    let id = proxy.session();
    let answer = proxy.post(&[("mcp-session-id", &id)], COUNT);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let text = answer.text();
    assert!(
        text.contains(r#""progressToken":"t""#) && text.contains(r#""id":3"#),
        "{text}"
    );
    let first = text
        .lines()
        .find_map(|line| line.strip_prefix("id: "))
        .unwrap();
    let headers = [
        ("mcp-session-id", id.as_str()),
        ("accept", "text/event-stream"),
        ("last-event-id", first),
    ];
    let again = request(&proxy.address, "GET", "/mcp", &headers, b"");
    assert!(again.text().contains(r#""id":3"#), "{}", again.text());
    assert!(
        !again.text().contains(&format!("id: {first}\n")),
        "{}",
        again.text()
    );
}

#[test]
fn a_second_get_replaces_the_first() {
    let proxy = demo_behind_http();
    let id = proxy.session();
    let headers = [
        ("mcp-session-id", id.as_str()),
        ("accept", "text/event-stream"),
    ];
    let mut first = open(&proxy.address, "GET", "/mcp", &headers, b"");
    assert_eq!(first.head().0, 200);
    let mut second = open(&proxy.address, "GET", "/mcp", &headers, b"");
    assert_eq!(second.head().0, 200);
    // The first ends with an empty chunk.
    assert_eq!(first.line(), "0");
}

#[test]
fn a_batch_is_answered_by_a_stream_until_all_are() {
    let proxy = ListeningProgram::proxy(
        "http",
        &[
            "--",
            "sh",
            "-c",
            r#"read a; echo '{"jsonrpc":"2.0","id":1,"result":{}}'; read b; echo '{"jsonrpc":"2.0","id":11,"result":{}}'; echo '{"jsonrpc":"2.0","id":10,"result":{}}'; sleep 100"#,
        ],
    );
    let answer = proxy.post(&[], INITIALIZE);
    let id = answer.header("mcp-session-id").unwrap().to_owned();
    let batch =
        r#"[{"jsonrpc":"2.0","id":10,"method":"ping"},{"jsonrpc":"2.0","id":11,"method":"ping"}]"#;
    let answer = proxy.post(&[("mcp-session-id", &id)], batch);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(
        answer.text().matches("data: ").count(),
        2,
        "{}",
        answer.text()
    );
}

#[test]
fn when_the_process_ends_open_requests_hear_it_and_the_session_is_gone() {
    let script =
        r#"read a; echo '{"jsonrpc":"2.0","id":1,"result":{}}'; read b; echo bye >&2; exit 44"#;
    let proxy = ListeningProgram::proxy("http", &["--", "sh", "-c", script]);
    let answer = proxy.post(&[], INITIALIZE);
    let id = answer.header("mcp-session-id").unwrap().to_owned();
    let answer = proxy.post(&[("mcp-session-id", &id)], ECHO);
    let text = answer.text();
    assert_eq!(error_answer(&text), (json!(2), -31002), "{text}");
    assert!(text.contains("44") && text.contains("bye"), "{text}");
    let again = proxy.post(&[("mcp-session-id", &id)], ECHO);
    assert_eq!(again.status, 404, "{}", again.text());
}

#[test]
fn line_breaks_between_tokens_become_spaces_and_broken_json_is_refused() {
    let proxy = ListeningProgram::proxy(
        "http",
        &[
            "--pass-noise",
            "--",
            "sed",
            "-u",
            r#"s/method/result/; s/^{ /{ "seen":1, /"#,
        ],
    );
    let pretty = "{\r\n \"jsonrpc\":\"2.0\",\n \"id\":1,\n \"method\":\"initialize\"\n}";
    let answer = proxy.post(&[], pretty);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(
        answer.text(),
        "{ \"seen\":1,   \"jsonrpc\":\"2.0\",  \"id\":1,  \"result\":\"initialize\" }"
    );
    let id = answer.header("mcp-session-id").unwrap().to_owned();
    let answer = proxy.post(&[("mcp-session-id", &id)], "{\"id\":1,\"a\":\"bro\nken");
    assert_eq!(answer.status, 400, "{answer:?}");
    assert_eq!(error_answer(&answer.text()).1, -31004);
    for headers in [&[("mcp-session-id", id.as_str())][..], &[]] {
        let answer = proxy.post(headers, "\r\n");
        assert_eq!(answer.status, 400, "{answer:?}");
        assert_eq!(error_answer(&answer.text()), (Value::Null, -32700));
    }
}

#[test]
fn strangers_are_turned_away() {
    let proxy = demo_behind_http();
    assert_eq!(
        proxy.post(&[("host", "evil.example")], INITIALIZE).status,
        403
    );
    assert_eq!(
        proxy
            .post(&[("origin", "https://evil.example")], INITIALIZE)
            .status,
        403
    );
    assert_eq!(
        proxy
            .post(&[("origin", "http://localhost:5173")], INITIALIZE)
            .status,
        200
    );
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "s3cret-token\n").unwrap();
    let proxy = ListeningProgram::proxy(
        "http",
        &[
            "--auth-token-file",
            token.to_str().unwrap(),
            "--",
            PROXY,
            "demo-server",
            "stdio",
        ],
    );
    let answer = proxy.post(&[], INITIALIZE);
    assert_eq!(
        (answer.status, answer.header("www-authenticate")),
        (401, Some("Bearer"))
    );
    assert_eq!(
        proxy
            .post(&[("authorization", "Bearer s3cret-token")], INITIALIZE)
            .status,
        200
    );
}

#[test]
fn modern_clients_share_a_process_and_keep_their_ids() {
    let proxy = demo_behind_http();
    let call = |id: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"m{}"}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#,
            id.trim_matches('"')
        );
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "echo"),
        ];
        proxy.post(&headers, &body)
    };
    for id in ["1", "\"1\"", "99999999999999999999999"] {
        let answer = call(id);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(
            answer.text().contains(&format!("\"id\":{id}")),
            "{}",
            answer.text()
        );
        assert!(answer.header("mcp-session-id").is_none());
    }
    let version = [("mcp-protocol-version", "2026-07-28")];
    assert_eq!(
        request(&proxy.address, "GET", "/mcp", &version, b"").status,
        405
    );
    assert_eq!(
        request(&proxy.address, "DELETE", "/mcp", &version, b"").status,
        405
    );
    let wrong = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ];
    let body = r#"{"jsonrpc":"2.0","id":5,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let answer = proxy.post(&wrong, body);
    assert_eq!(answer.status, 400);
    assert_eq!(error_answer(&answer.text()), (json!(5), -32020));
}

#[test]
fn a_signal_stops_the_servers_and_closes_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let proxy = ListeningProgram::start(&[
        "proxy",
        "--listen",
        "http",
        "--listen-port",
        "0",
        "--session-file",
        file.to_str().unwrap(),
        "--output-format",
        "json",
        "--",
        PROXY,
        "demo-server",
        "stdio",
    ]);
    proxy.session();
    let (code, stderr) = proxy.end("-TERM");
    assert_eq!(code, Some(143));
    assert!(stderr.contains("s.json\n"), "{stderr}");
    let session = mcp_proxy_session::SessionRecord::open(&file).unwrap();
    assert!(session.end().unwrap().why.contains("SIGTERM"));
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("s.json")).unwrap()).unwrap();
    assert_eq!(json["messages"].as_array().unwrap().len(), 3);
    assert_eq!(json["messages"][0]["transport"], "streamable_http");
    assert_eq!(json["messages"][1]["transport"], "stdio");
}

#[test]
fn the_export_at_the_end_is_private_and_overwrites_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let (record, taken) = (folder.path().join("s.jsonl"), folder.path().join("s.json"));
    std::fs::write(&taken, "mine").unwrap();
    let record = record.to_str().unwrap();
    let args = [
        "proxy",
        "--listen",
        "stdio",
        "--session-file",
        record,
        "--output-format",
        "json",
        "--",
        "cat",
    ];
    assert!(crate::programs::pipe(&args, b"").status.success());
    assert_eq!(std::fs::read_to_string(&taken).unwrap(), "mine");
    // The record takes the name that is free for both.
    assert!(!folder.path().join("s.jsonl").exists());
    assert!(folder.path().join("s.2.jsonl").exists());
    let export = std::fs::metadata(folder.path().join("s.2.json")).unwrap();
    assert_eq!(export.permissions().mode() & 0o777, 0o600);
}
