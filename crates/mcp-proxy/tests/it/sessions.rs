//! Sessions in front of a stdio server: how they end, what makes room for a new one, and how many servers run.

use std::path::Path;

use serde_json::{Value, json};

use crate::programs::{INITIALIZE, ListeningProgram, error_answer, open, record_lines, request};

const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}"#;
const CANCEL: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#;
const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":7,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const JSON: &[(&str, &str)] = &[
    ("content-type", "application/json"),
    ("accept", "application/json, text/event-stream"),
];

/// A legacy server: it answers with its process id, knows no `server/discover`, and never answers a call. A call that was
/// cancelled is answered late. Only one may run at a time, in `$0`.
const SERVER: &str = r#"
exec 9>"$0"; flock -n 9 || exit 9
while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case $line in
    *server/discover*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"$$\"}}" ;;
    *cancelled*) echo '{"jsonrpc":"2.0","id":2,"result":"late"}' ;;
    *tools/call*) ;;
    *\"id\":*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"pid\":$$}}" ;;
  esac
done
# It takes its time to end.
sleep 0.2
"#;

fn proxy(folder: &Path, more: &[&str]) -> ListeningProgram {
    let (record, lock) = (folder.join("s.jsonl"), folder.join("lock"));
    let mut args = vec!["proxy", "--listen", "http", "--listen-port", "0"];
    args.extend(["--session-file", record.to_str().unwrap()]);
    args.extend(more);
    args.extend(["--", "sh", "-c", SERVER, lock.to_str().unwrap()]);
    ListeningProgram::start(&args)
}

/// The same without the lock: any number may run.
fn many(folder: &Path, more: &[&str]) -> ListeningProgram {
    let record = folder.join("s.jsonl");
    let mut args = vec!["proxy", "--listen", "http", "--listen-port", "0"];
    args.extend(["--session-file", record.to_str().unwrap()]);
    args.extend(more);
    let server = SERVER.replace("flock -n 9 || exit 9", ":");
    args.extend(["--", "sh", "-c", &server, "/dev/null"]);
    ListeningProgram::start(&args)
}

fn records(folder: &Path) -> Vec<Value> {
    record_lines(&std::fs::read_to_string(folder.join("s.jsonl")).unwrap())
}

fn with_session<'a>(id: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [JSON, &[("mcp-session-id", id)], more].concat()
}

fn delete(proxy: &ListeningProgram, id: &str) -> u16 {
    let headers = [("mcp-session-id", id)];
    request(&proxy.address, "DELETE", "/mcp", &headers, b"").status
}

fn pid(answer: &str) -> Value {
    let answer: Value = serde_json::from_str(answer).unwrap();
    answer["result"]["pid"].clone()
}

/// Python's SDK raises at close if a request that it gave up is answered with an error status.
#[test]
fn requests_that_are_open_at_delete_end_as_empty_streams() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = proxy(folder.path(), &[]);
    let id = proxy.session();
    let headers = with_session(&id, &[]);
    let batch = format!("[{}]", CALL.replace("\"id\":2", "\"id\":20"));
    let mut calls =
        [CALL, &batch].map(|body| open(&proxy.address, "POST", "/mcp", &headers, body.as_bytes()));
    // Both have arrived when a later request is answered.
    while records(folder.path())
        .iter()
        .filter(|line| line["raw"].to_string().contains("tools/call"))
        .count()
        < 2
    {
        proxy.post(&[("mcp-session-id", &id)], PING);
    }
    assert_eq!(delete(&proxy, &id), 200);
    for call in &mut calls {
        let (status, headers) = call.head();
        assert_eq!(status, 200);
        let kind = headers.iter().find(|(name, _)| name == "content-type");
        assert_eq!(kind.unwrap().1, "text/event-stream");
        assert_eq!(call.line(), "0", "there is nothing in it");
    }
    assert_eq!(proxy.post(&[("mcp-session-id", &id)], PING).status, 404);
}

#[test]
fn a_cancelled_request_ends_as_an_empty_stream_and_its_late_answer_reaches_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = proxy(folder.path(), &[]);
    let id = proxy.session();
    let headers = with_session(&id, &[]);
    let mut call = open(&proxy.address, "POST", "/mcp", &headers, CALL.as_bytes());
    proxy.post(&[("mcp-session-id", &id)], PING);
    let accept = [
        ("mcp-session-id", id.as_str()),
        ("accept", "text/event-stream"),
    ];
    let mut get = open(&proxy.address, "GET", "/mcp", &accept, b"");
    assert_eq!(get.head().0, 200);
    while !records(folder.path())
        .iter()
        .any(|line| line["raw"].to_string().contains("slow"))
    {
        proxy.post(&[("mcp-session-id", &id)], PING);
    }
    assert_eq!(proxy.post(&[("mcp-session-id", &id)], CANCEL).status, 202);
    let (status, headers) = call.head();
    assert_eq!(status, 200);
    let kind = headers.iter().find(|(name, _)| name == "content-type");
    assert_eq!(kind.unwrap().1, "text/event-stream");
    assert_eq!(call.line(), "0", "there is nothing in it");
    // The session lives; its stream has got nothing when it ends.
    let answer = proxy.post(&[("mcp-session-id", &id)], PING);
    assert_eq!(error_free(&answer.text()), json!(3));
    assert_eq!(delete(&proxy, &id), 200);
    assert_eq!(get.line(), "0");
    let (code, _) = proxy.end("-TERM");
    assert_eq!(code, Some(143));
    let lines = records(folder.path());
    let late = lines
        .iter()
        .find(|line| line["raw"].to_string().contains("late"))
        .unwrap();
    let lost = lines.iter().find(|line| line["kind"] == "undelivered");
    assert_eq!(lost.unwrap()["sequence"], late["sequence"]);
}

fn error_free(answer: &str) -> Value {
    let answer: Value = serde_json::from_str(answer).unwrap();
    assert!(answer.get("error").is_none(), "{answer}");
    answer["id"].clone()
}

/// Most clients never send DELETE.
#[test]
fn at_the_limit_the_session_that_was_idle_for_longest_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = many(folder.path(), &["--max-sessions", "2"]);
    let (first, second) = (proxy.session(), proxy.session());
    let use_it = |id: &str| proxy.post(&[("mcp-session-id", id)], PING).status;
    assert_eq!(use_it(&first), 200);
    let third = proxy.session();
    assert_eq!(use_it(&second), 404, "it was idle for longest");
    assert_eq!((use_it(&first), use_it(&third)), (200, 200));
    // One with a stream and one with a request do not make room.
    let accept = [
        ("mcp-session-id", first.as_str()),
        ("accept", "text/event-stream"),
    ];
    let mut get = open(&proxy.address, "GET", "/mcp", &accept, b"");
    assert_eq!(get.head().0, 200);
    let headers = with_session(&third, &[]);
    let _call = open(&proxy.address, "POST", "/mcp", &headers, CALL.as_bytes());
    while !records(folder.path())
        .iter()
        .any(|line| line["raw"].to_string().contains("slow"))
    {
        assert_eq!(use_it(&first), 200);
    }
    let refused = proxy.post(&[], INITIALIZE);
    assert_eq!(refused.status, 503);
    assert_eq!(error_answer(&refused.text()), (json!(1), -31007));
    assert_eq!(use_it(&first), 200);
    let (_, stderr) = proxy.end("-TERM");
    assert_eq!(stderr.matches("--max-sessions").count(), 1, "{stderr}");
    let closed = records(folder.path());
    let closed = closed.iter().filter(|line| line["kind"] == "close");
    let made_room = closed.filter(|line| line["why"].to_string().contains("--max-sessions"));
    assert_eq!(made_room.count(), 1);
}

#[test]
fn a_session_counts_until_its_server_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = proxy(folder.path(), &["--max-sessions", "1"]);
    for _ in 0..3 {
        // A second server would not get the lock, and `initialize` would fail.
        let id = proxy.session();
        assert_eq!(delete(&proxy, &id), 200);
    }
    for _ in 0..3 {
        proxy.session();
    }
}

#[test]
fn a_client_that_probes_for_the_modern_era_gets_the_server_that_it_has_probed() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = proxy(folder.path(), &[]);
    let modern = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "server/discover"),
    ];
    let answer: Value = serde_json::from_str(&proxy.post(&modern, DISCOVER).text()).unwrap();
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(7), &json!(-32601))
    );
    let opened = proxy.post(&[], INITIALIZE);
    let probed: u64 = answer["error"]["message"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(pid(&opened.text()), json!(probed));
    // It is an ordinary session from here on: ids pass as they are.
    let id = opened.header("mcp-session-id").unwrap().to_owned();
    let answer = proxy.post(&[("mcp-session-id", &id)], PING);
    assert_eq!(
        (error_free(&answer.text()), pid(&answer.text())),
        (json!(3), json!(probed))
    );
    assert_eq!(delete(&proxy, &id), 200);
    assert_eq!(proxy.post(&[("mcp-session-id", &id)], PING).status, 404);
}

#[test]
fn a_probed_server_that_logs_before_it_refuses_is_the_one_that_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let (record, lock) = (folder.path().join("s.jsonl"), folder.path().join("lock"));
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
    let refuses = "*server/discover*) echo";
    let server = SERVER.replace(refuses, &format!("*server/discover*) echo '{log}'; echo"));
    let mut args = vec!["proxy", "--listen", "http", "--listen-port", "0"];
    args.extend(["--session-file", record.to_str().unwrap()]);
    args.extend(["--", "sh", "-c", &server, lock.to_str().unwrap()]);
    let proxy = ListeningProgram::start(&args);
    let modern = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "server/discover"),
    ];
    let answer = proxy.post(&modern, DISCOVER);
    assert!(answer.text().contains("-32601"), "{}", answer.text());
    // A second server would not get the lock.
    let opened = proxy.post(&[], INITIALIZE);
    assert_eq!(opened.status, 200);
    assert!(pid(&opened.text()).is_u64());
}

#[test]
fn a_probed_server_is_for_clients_with_the_same_token_only() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = many(folder.path(), &[]);
    let modern = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "server/discover"),
        ("authorization", "Bearer one"),
    ];
    let probed: Value = serde_json::from_str(&proxy.post(&modern, DISCOVER).text()).unwrap();
    let probed: u64 = probed["error"]["message"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let other = proxy.post(&[("authorization", "Bearer two")], INITIALIZE);
    assert_ne!(pid(&other.text()), json!(probed));
    let same = proxy.post(&[("authorization", "Bearer one")], INITIALIZE);
    assert_eq!(pid(&same.text()), json!(probed));
    let next = proxy.post(&[("authorization", "Bearer one")], INITIALIZE);
    assert_ne!(pid(&next.text()), json!(probed), "it has been taken");
}

#[test]
fn without_sessions_every_request_gets_a_server_that_is_initialized() {
    let folder = tempfile::tempdir().unwrap();
    // One at a time: each server has ended before the next one starts.
    let proxy = proxy(folder.path(), &["--stateless", "--max-sessions", "1"]);
    let mut servers = Vec::new();
    for _ in 0..2 {
        let answer = proxy.post(&[], PING);
        assert_eq!((answer.status, error_free(&answer.text())), (200, json!(3)));
        assert_eq!(answer.header("mcp-session-id"), None);
        servers.push(pid(&answer.text()));
    }
    assert_ne!(servers[0], servers[1]);
    let opened = proxy.post(&[], INITIALIZE);
    assert_eq!(
        (opened.status, opened.header("mcp-session-id")),
        (200, None)
    );
    assert_eq!(proxy.post(&[], crate::programs::INITIALIZED).status, 202);
    let accept = [("accept", "text/event-stream")];
    assert_eq!(
        request(&proxy.address, "GET", "/mcp", &accept, b"").status,
        405
    );
    let lines = records(folder.path());
    let ours = lines
        .iter()
        .filter(|line| line["origin"] == "proxy" && line["method"] == "initialize");
    assert_eq!(ours.count(), 2, "only what the client did not send");
}

#[test]
fn without_sessions_a_server_that_does_not_start_is_an_error_for_the_request() {
    let args = ["--stateless", "--", "sh", "-c", "echo broken >&2; exit 3"];
    let proxy = ListeningProgram::proxy("http", &args);
    let answer = proxy.post(&[], PING);
    assert_eq!(answer.status, 200);
    assert_eq!(error_answer(&answer.text()), (json!(3), -31002));
}

#[test]
fn without_sessions_a_body_without_a_message_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = many(folder.path(), &["--stateless"]);
    for (body, code) in [
        ("", -32700),
        ("garbage", -32700),
        (r#"{"jsonrpc""#, -32700),
        ("[]", -32600),
        ("[1]", -32600),
        ("{}", -32600),
    ] {
        let answer = proxy.post(&[], body);
        assert_eq!(answer.status, 400, "{body}");
        assert_eq!(error_answer(&answer.text()), (Value::Null, code), "{body}");
    }
}

#[test]
fn a_request_without_a_session_is_refused_with_the_flag_that_would_carry_it() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = many(folder.path(), &[]);
    let answer = proxy.post(&[], PING);
    assert_eq!(answer.status, 400);
    assert_eq!(error_answer(&answer.text()), (json!(3), -31011));
    assert!(answer.text().contains("--stateless"));
}

/// SDK clients read a JSON-RPC error with status 200. With 502 Python's 1.x ends the whole session, and TypeScript's reports a
/// transport error without the code.
#[test]
fn a_server_that_ends_during_a_call_is_an_error_answer_with_status_200() {
    let script =
        r#"read -r x; echo '{"jsonrpc":"2.0","id":1,"result":{}}'; read -r x; read -r x; exit 3"#;
    let proxy = ListeningProgram::proxy("http", &["--", "sh", "-c", script]);
    let id = proxy.session();
    let answer = proxy.post(&[("mcp-session-id", &id)], CALL);
    assert_eq!(answer.status, 200);
    assert_eq!(error_answer(&answer.text()), (json!(2), -31002));
    let next = proxy.post(&[("mcp-session-id", &id)], PING);
    assert_eq!((next.status, error_answer(&next.text()).1), (404, -31006));
}

#[test]
fn clients_of_both_http_transports_share_a_port_and_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = many(folder.path(), &["--max-sessions", "2"]);
    let id = proxy.session();
    let mut stream = open(&proxy.address, "GET", "/sse", &[], b"");
    let endpoint = stream.until("data: ");
    let posted = request(
        &proxy.address,
        "POST",
        &endpoint,
        JSON,
        INITIALIZE.as_bytes(),
    );
    assert_eq!(posted.status, 202);
    assert_eq!(error_free(&stream.until("data: ")), json!(1));
    // The second stream takes the place of the session, which is idle.
    let mut second = open(&proxy.address, "GET", "/sse", &[], b"");
    second.until("data: ");
    assert_eq!(proxy.post(&[("mcp-session-id", &id)], PING).status, 404);
    assert_eq!(request(&proxy.address, "GET", "/sse", &[], b"").status, 503);
}

#[test]
fn health_is_told_in_front_of_every_kind_of_server() {
    let folder = tempfile::tempdir().unwrap();
    let bridge = many(folder.path(), &[]);
    let health = |proxy: &ListeningProgram| {
        let answer = request(&proxy.address, "GET", "/healthz", &[], b"");
        assert_eq!(answer.status, 200);
        serde_json::from_slice::<Value>(&answer.body).unwrap()
    };
    assert_eq!(health(&bridge)["sessions"], 0);
    bridge.session();
    let told = health(&bridge);
    assert_eq!(
        (&told["status"], &told["sessions"]),
        (&json!("ok"), &json!(1))
    );
    let demo = ListeningProgram::demo();
    let url = demo.url();
    for args in [
        &[
            "--transport",
            "streamable-http",
            "--target-url",
            url.as_str(),
        ][..],
        &[url.as_str()],
    ] {
        let passing = ListeningProgram::proxy("http", args);
        passing.session();
        assert_eq!(health(&passing)["messages"], 3);
    }
}
