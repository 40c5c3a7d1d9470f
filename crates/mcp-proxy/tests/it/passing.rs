//! HTTP on both sides: what the server says is what the client gets, and what the record holds.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::json;

use crate::programs::{INITIALIZE, ListeningProgram, error_answer, pipe, request};

/// A server that answers each request with the next of `answers` and returns the requests it saw.
fn canned(answers: Vec<String>) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = std::thread::spawn(move || {
        let mut seen = Vec::new();
        for answer in answers {
            let (stream, _) = listener.accept().unwrap();
            seen.push(read_request(&stream));
            (&stream).write_all(answer.as_bytes()).unwrap();
        }
        seen
    });
    (address, serving)
}

/// The head and the body of a request.
pub fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        // A client may close a connection that it has not used.
        if reader.read_line(&mut line).unwrap() == 0 {
            return String::new();
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head += &line;
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    head + &String::from_utf8_lossy(&body)
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn before(address: &str, more: &[&str]) -> ListeningProgram {
    let url = format!("http://{address}/deep/mcp?key=1");
    let mut args = vec![
        "--transport",
        "streamable-http",
        "--target-url",
        url.as_str(),
    ];
    args.extend(more);
    ListeningProgram::proxy("http", &args)
}

#[test]
fn headers_and_odd_answers_pass_and_only_the_hop_is_rewritten() {
    let body = "{ \"jsonrpc\" : \"2.0\",\n \"id\":1, \"result\":{\"n\":1.0}}";
    let (address, serving) = canned(vec![answer(
        "299 Odd",
        "x-custom: a\r\nx-custom: b\r\n",
        body,
    )]);
    let proxy = before(&address, &["--header", "X-Api-Key: mine"]);
    let got = proxy.post(
        &[
            ("x-trace", "7"),
            ("x-api-key", "theirs"),
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("accept-encoding", "gzip"),
        ],
        INITIALIZE,
    );
    assert_eq!(got.status, 299);
    assert_eq!(got.text(), body);
    assert_eq!(
        got.headers
            .iter()
            .filter(|(name, _)| name == "x-custom")
            .count(),
        2
    );
    let seen = serving.join().unwrap().remove(0);
    let lower = seen.to_lowercase();
    assert!(seen.starts_with("POST /deep/mcp?key=1 HTTP/1.1"), "{seen}");
    assert!(lower.contains(&format!("host: {address}")), "{seen}");
    assert!(
        lower.contains("x-trace: 7") && lower.contains("x-api-key: mine"),
        "{seen}"
    );
    assert!(lower.contains("accept-encoding: identity"), "{seen}");
    assert!(
        !lower.contains("theirs") && !lower.contains("x-hop"),
        "{seen}"
    );
    assert!(seen.ends_with(INITIALIZE), "{seen}");
}

#[test]
fn event_streams_pass_byte_for_byte() {
    let stream = ": hello\n\nid: 1\nretry: 10\ndata:\n\nevent: message\r\ndata: {\"id\":1,\ndata: \"result\":{}}\r\n\r\n";
    let (address, _) = canned(vec![answer(
        "200 OK",
        "content-type: text/event-stream\r\n",
        stream,
    )]);
    let got = before(&address, &[]).post(&[], INITIALIZE);
    assert_eq!(got.text(), stream);
}

#[test]
fn a_changed_event_is_whole_also_where_the_server_said_how_long_it_is() {
    let (address, _) = canned(vec![answer(
        "200 OK",
        "content-type: text/event-stream\r\n",
        "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n",
    )]);
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.toml");
    let longer = "l".repeat(300);
    let rule =
        format!("[[rule]]\ndirection = \"server_to_client\"\nchange = '.more = \"{longer}\"'\n");
    std::fs::write(&rules, rule).unwrap();
    let proxy = before(&address, &["--rules", rules.to_str().unwrap()]);
    let got = proxy.post(&[], INITIALIZE);
    assert!(got.text().contains(&longer), "{}", got.text());
}

#[test]
fn large_bodies_cross_both_ways_as_they_are() {
    let big = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"{}\"}}",
        "z".repeat(3 << 20)
    );
    let (address, serving) = canned(vec![answer(
        "200 OK",
        "content-type: application/json\r\n",
        &big,
    )]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let url = format!("http://{address}/mcp");
    let proxy = ListeningProgram::start(&[
        "proxy",
        "--transport",
        "streamable-http",
        "--listen-port",
        "0",
        "--session-file",
        file.to_str().unwrap(),
        "--target-url",
        &url,
    ]);
    let ask = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"big\",\"params\":\"{}\"}}",
        "q".repeat(2 << 20)
    );
    let got = proxy.post(&[], &ask);
    assert!(got.text() == big);
    assert!(serving.join().unwrap().remove(0).ends_with(&ask));
    proxy.end("-TERM");
    let session = mcp_proxy_session::SessionRecord::open(&file).unwrap();
    let messages: Vec<_> = session.messages(0).map(Result::unwrap).collect();
    assert_eq!(messages.len(), 2);
    assert!(messages[0].raw.to_bytes() == ask.as_bytes());
    assert!(messages[1].raw.to_bytes() == big.as_bytes());
    assert_eq!(messages[1].correlated_id, Some(messages[0].id));
}

#[test]
fn redirects_stay_on_the_origin() {
    let moved = |to: &str| answer("307 Temporary Redirect", &format!("location: {to}\r\n"), "");
    let (address, serving) = canned(vec![
        moved("/mcp/"),
        answer(
            "200 OK",
            "content-type: application/json\r\n",
            "{\"id\":1,\"result\":{}}",
        ),
    ]);
    assert_eq!(before(&address, &[]).post(&[], INITIALIZE).status, 200);
    assert!(serving.join().unwrap()[1].starts_with("POST /mcp/ HTTP/1.1"));
    let (address, _) = canned(vec![moved("http://elsewhere.example/mcp")]);
    let got = before(&address, &[]).post(&[], INITIALIZE);
    assert_eq!(got.status, 502);
    assert_eq!(error_answer(&got.text()), (json!(1), -31001));
}

/// The record of one POST that is full of secrets.
fn record_of_secrets(flags: &[&str]) -> String {
    let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}";
    let (address, _) = canned(vec![answer(
        "200 OK",
        "content-type: application/json\r\nset-cookie: sid=hush-cookie\r\n",
        body,
    )]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let url = format!("http://user:hush-password@{address}/mcp");
    let mut args = vec![
        "proxy",
        "--transport",
        "streamable-http",
        "--listen-port",
        "0",
        "--header",
        "X-Key: hush-header",
        "--session-file",
        file.to_str().unwrap(),
        "--target-url",
        &url,
    ];
    args.extend(flags);
    let proxy = ListeningProgram::start(&args);
    proxy.post(
        &[
            ("authorization", "Bearer hush-bearer"),
            ("cookie", "a=hush-crumb"),
        ],
        INITIALIZE,
    );
    proxy.end("-INT");
    std::fs::read_to_string(&file).unwrap()
}

#[test]
fn secrets_of_headers_do_not_reach_the_record() {
    let text = record_of_secrets(&[]);
    assert!(!text.contains("hush"), "{text}");
    assert!(text.contains("masked"), "{text}");
}

#[test]
fn secrets_of_headers_are_kept_on_request() {
    let text = record_of_secrets(&["--keep-secrets"]);
    for secret in ["cookie", "password", "header", "bearer", "crumb"] {
        assert!(text.contains(&format!("hush-{secret}")), "{secret}: {text}");
    }
    assert!(!text.contains("[masked]"), "{text}");
}

#[test]
fn a_url_of_unknown_kind_is_found_out_by_the_first_message() {
    let demo = ListeningProgram::demo();
    let proxy = ListeningProgram::proxy("http", &[&demo.url()]);
    assert_eq!(proxy.post(&[], INITIALIZE).status, 200);
    // An SSE server refuses the POST, then names its endpoint.
    let sse = ListeningProgram::proxy(
        "sse",
        &["--", crate::programs::PROXY, "demo-server", "stdio"],
    );
    let proxy = ListeningProgram::proxy("http", &[&sse.url()]);
    let session = proxy.session();
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    assert!(
        proxy
            .post(&[("mcp-session-id", &session)], list)
            .text()
            .contains("count_down")
    );
    let input = format!("{INITIALIZE}\n{}\n{list}\n", crate::programs::INITIALIZED);
    for url in [demo.url(), sse.url()] {
        let output = pipe(
            &["proxy", "--listen", "stdio", "--no-record", &url],
            input.as_bytes(),
        );
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("count_down"), "{url}: {text}");
        assert!(output.status.success());
    }
}

#[test]
fn a_record_names_the_transport_that_a_url_turned_out_to_have() {
    let sse = ListeningProgram::proxy(
        "sse",
        &["--", crate::programs::PROXY, "demo-server", "stdio"],
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let file = file.to_str().unwrap();
    let flags = ["proxy", "--listen", "stdio", "--session-file", file];
    let output = pipe(
        &[&flags[..], &["--output-format", "json", &sse.url()]].concat(),
        format!("{INITIALIZE}\n").as_bytes(),
    );
    assert!(output.status.success());
    let document = std::fs::read_to_string(folder.path().join("s.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["transport"], "sse");
    assert_eq!(document["messages"][1]["transport"], "sse");
    let shown = pipe(&["inspect", file], b"").stdout;
    let shown = String::from_utf8(shown).unwrap();
    assert!(
        shown.lines().next().unwrap().contains("stdio ► sse "),
        "{shown}"
    );
}

#[test]
fn a_failure_without_json_rpc_becomes_an_error_with_status_and_first_line() {
    let (address, _) = canned(vec![answer(
        "500 Oops",
        "content-type: text/plain\r\n",
        "\n  database is down\nmore\n",
    )]);
    let url = format!("http://{address}/mcp");
    let args = [
        "proxy",
        "--listen",
        "stdio",
        "--no-record",
        "--transport",
        "streamable-http",
        "--target-url",
        &url,
    ];
    let output = pipe(&args, format!("{INITIALIZE}\n").as_bytes());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(error_answer(&text), (json!(1), -31003), "{text}");
    assert!(text.contains("500") && text.contains("database is down"));
    assert!(!text.contains("more"), "{text}");
    let (address, _) = canned(vec![answer(
        "400 Bad",
        "content-type: application/json\r\n",
        "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32000,\"message\":\"Bad Request: Server not initialized\"},\"id\":null}",
    )]);
    let url = format!("http://{address}/mcp");
    let args = [
        "proxy",
        "--listen",
        "stdio",
        "--no-record",
        "--transport",
        "streamable-http",
        "--target-url",
        &url,
    ];
    let output = pipe(&args, format!("{INITIALIZE}\n").as_bytes());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(error_answer(&text), (json!(1), -32000), "{text}");
    assert!(text.contains("Server not initialized"), "{text}");
}

#[test]
fn sse_passes_with_the_endpoint_on_our_origin_and_refuses_others() {
    let server = ListeningProgram::proxy(
        "sse",
        &["--", crate::programs::PROXY, "demo-server", "stdio"],
    );
    let proxy = ListeningProgram::proxy(
        "sse",
        &["--transport", "sse", "--target-url", &server.url()],
    );
    let mut stream = crate::programs::open(
        &proxy.address,
        "GET",
        "/sse",
        &[("accept", "text/event-stream")],
        b"",
    );
    assert_eq!(stream.head().0, 200);
    let endpoint = stream.until("data:");
    assert!(endpoint.starts_with("/message?sessionId="), "{endpoint}");
    let headers = [("content-type", "application/json")];
    assert_eq!(
        request(
            &proxy.address,
            "POST",
            &endpoint,
            &headers,
            INITIALIZE.as_bytes()
        )
        .status,
        202
    );
    assert!(stream.until("data:").contains("serverInfo"));
    assert_eq!(
        request(
            &proxy.address,
            "POST",
            "/message?sessionId=other",
            &headers,
            INITIALIZE.as_bytes()
        )
        .status,
        404
    );
    let (address, _) = canned(vec![answer(
        "200 OK",
        "content-type: text/event-stream\r\n",
        "event: endpoint\ndata: http://evil.example/m\n\n",
    )]);
    let url = format!("http://{address}/sse");
    let output = pipe(
        &[
            "proxy",
            "--listen",
            "stdio",
            "--no-record",
            "--transport",
            "sse",
            "--target-url",
            &url,
        ],
        format!("{INITIALIZE}\n").as_bytes(),
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(error_answer(&text), (json!(1), -31003), "{text}");
    assert!(text.contains("evil.example"), "{text}");
}
