//! Both kinds of HTTP clients on one port, whatever the server speaks.

use serde_json::{Value, json};

use crate::programs::{INITIALIZE, ListeningProgram, OpenResponse, PROXY, open, request};

const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
const HEADERS: &[(&str, &str)] = &[
    ("content-type", "application/json"),
    ("accept", "application/json, text/event-stream"),
];
const STREAM: &[(&str, &str)] = &[("accept", "text/event-stream")];

/// An HTTP+SSE client on its stream.
struct SseClient {
    address: String,
    endpoint: String,
    stream: OpenResponse,
}

impl SseClient {
    fn connect(address: &str, path: &str) -> SseClient {
        let mut stream = open(address, "GET", path, STREAM, b"");
        let endpoint = stream.until("data: ");
        SseClient {
            address: address.to_owned(),
            endpoint,
            stream,
        }
    }

    fn ask(&mut self, message: &str) -> Value {
        let posted = request(
            &self.address,
            "POST",
            &self.endpoint,
            HEADERS,
            message.as_bytes(),
        );
        assert_eq!(posted.status, 202);
        serde_json::from_str(&self.stream.until("data: ")).unwrap()
    }

    fn check(mut self) {
        assert_eq!(
            self.ask(INITIALIZE)["result"]["serverInfo"]["name"],
            "mcp-proxy-demo"
        );
        assert!(has_tools(&self.ask(LIST)));
    }
}

fn has_tools(answer: &Value) -> bool {
    let tools = answer["result"]["tools"].as_array().unwrap();
    answer["id"] == 2 && tools.iter().any(|tool| tool["name"] == "count_down")
}

fn check_streamable(address: &str) {
    let post = |headers: &[(&str, &str)], body: &str| {
        let headers = [HEADERS, headers].concat();
        request(address, "POST", "/mcp", &headers, body.as_bytes())
    };
    let opened = post(&[], INITIALIZE);
    assert_eq!(opened.status, 200, "{opened:?}");
    let id = opened.header("mcp-session-id").unwrap().to_owned();
    let session = [("mcp-session-id", id.as_str())];
    assert_eq!(post(&session, crate::programs::INITIALIZED).status, 202);
    let listed = post(&session, LIST).text();
    let last = listed.lines().rfind(|line| line.contains('{')).unwrap();
    let json = last.strip_prefix("data:").unwrap_or(last);
    assert!(has_tools(&serde_json::from_str(json).unwrap()), "{listed}");
}

/// A server that speaks only HTTP+SSE, at `/sse`.
fn sse_server() -> (ListeningProgram, String) {
    let server = ListeningProgram::proxy("sse", &["--", PROXY, "demo-server", "stdio"]);
    let url = format!("http://{}/sse", server.address);
    (server, url)
}

#[test]
fn an_http_sse_client_uses_a_server_that_speaks_streamable_http() {
    let server = ListeningProgram::demo();
    let url = server.url();
    let named = ["--transport", "streamable-http", "--target-url", &url];
    for (listen, target) in [
        ("http", &named[..]),
        ("sse", &named[..]),
        ("http", &[url.as_str()][..]),
        ("sse", &[url.as_str()][..]),
    ] {
        let proxy = ListeningProgram::proxy(listen, target);
        SseClient::connect(&proxy.address, "/sse").check();
        check_streamable(&proxy.address);
        SseClient::connect(&proxy.address, "/sse").check();
    }
}

#[test]
fn a_streamable_http_client_uses_a_server_that_speaks_http_sse() {
    let (_server, url) = sse_server();
    let named = ["--transport", "sse", "--target-url", &url];
    for (listen, target) in [
        ("http", &named[..]),
        ("sse", &named[..]),
        ("http", &[url.as_str()][..]),
        ("sse", &[url.as_str()][..]),
    ] {
        let proxy = ListeningProgram::proxy(listen, target);
        check_streamable(&proxy.address);
        SseClient::connect(&proxy.address, "/sse").check();
    }
}

#[test]
fn an_http_sse_client_may_come_first_where_the_kind_was_not_given() {
    let (_server, url) = sse_server();
    let proxy = ListeningProgram::proxy("http", &[&url]);
    SseClient::connect(&proxy.address, "/sse").check();
    check_streamable(&proxy.address);
}

#[test]
fn both_kinds_of_clients_are_recorded_with_their_transports() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = sse_server();
    let server = ListeningProgram::demo();
    for (transport, url) in [("sse", url), ("streamable-http", server.url())] {
        let record = folder.path().join(format!("{transport}.jsonl"));
        let words = ["proxy", "--listen", "http", "--listen-port", "0"];
        let target = ["--transport", transport, "--target-url", &url];
        let file = ["--session-file", record.to_str().unwrap()];
        let proxy = ListeningProgram::start(&[&words[..], &target, &file].concat());
        SseClient::connect(&proxy.address, "/sse").check();
        check_streamable(&proxy.address);
        proxy.end("-TERM");
        let lines = crate::evidence::lines(&record, "io");
        let opened = lines.iter().filter(|line| line["kind"] == "open");
        let mut pairs: Vec<_> = opened
            .map(|line| {
                let side = |side: &str| line[side]["transport"].clone();
                (side("client"), side("server"))
            })
            .collect();
        pairs.sort_by_key(|(client, server)| client != server);
        pairs.dedup();
        let own = json!(transport.replace('-', "_"));
        assert_eq!(pairs[0], (own.clone(), own.clone()), "{pairs:?}");
        assert!(
            pairs[1..]
                .iter()
                .all(|(client, server)| *client != own && *server == own)
        );
    }
}

/// A request without a session costs a hub nothing: it has no process of its own.
#[test]
fn a_hub_answers_requests_without_a_session() {
    let words = ["serve", "--listen", "http", "--listen-port", "0"];
    let server = format!("demo={PROXY} demo-server stdio");
    let more = ["--no-record", "--expose", "all", "--server", &server];
    let hub = ListeningProgram::start(&[&words[..], &more].concat());
    let answer = hub.post(&[], LIST);
    assert_eq!(
        (answer.status, answer.header("mcp-session-id")),
        (200, None)
    );
    let answer: Value = serde_json::from_str(&answer.text()).unwrap();
    let tools = answer["result"]["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "demo_count_down"));
    assert_eq!(hub.post(&[], crate::programs::INITIALIZED).status, 202);
    assert_eq!(hub.post(&[], "").status, 400);
}
