//! Servers that are started again while their clients stay: the session is opened again, or the client is told.

use std::io::Write as _;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use serde_json::{Value, json};

use crate::passing::read_request;
use crate::programs::{
    INITIALIZE, INITIALIZED, ListeningProgram, StdioProgram, error_answer, open, record_lines,
};

/// A server that forgets its sessions when it is told to. A request's result names the start that it belongs to.
struct ForgetfulServer {
    address: String,
    state: Arc<ServerState>,
    /// Bodies that it has read.
    requests: mpsc::Receiver<Value>,
}

#[derive(Default)]
struct ServerState {
    starts: AtomicU64,
    /// From the second start on it speaks another revision.
    changes_revision: AtomicBool,
    /// How many more times it answers `initialize` with 503.
    unready: AtomicU64,
    /// Event streams that are open.
    streams: Mutex<Vec<TcpStream>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Http,
    Sse,
}

impl ForgetfulServer {
    fn start(kind: Kind) -> ForgetfulServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(ServerState::default());
        let (sender, requests) = mpsc::channel();
        let serving = Arc::clone(&state);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let connection = connection.unwrap();
                let request = read_request(&connection);
                if let Some((_, body)) = request.split_once("\r\n\r\n")
                    && let Ok(body) = serde_json::from_str(body)
                {
                    let _ = sender.send(body);
                }
                match kind {
                    Kind::Http => serving.answer_http(connection, &request),
                    Kind::Sse => serving.answer_sse(connection, &request),
                }
            }
        });
        ForgetfulServer {
            address,
            state,
            requests,
        }
    }

    /// Forgets all sessions and closes their streams.
    fn restart(&self) {
        self.state.starts.fetch_add(1, Ordering::SeqCst);
        for stream in self.state.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Waits until it has read a message with this method.
    fn wait_for(&self, method: &str) -> Value {
        let deadline = std::time::Duration::from_secs(30);
        loop {
            let request = self.requests.recv_timeout(deadline).unwrap();
            if request["method"] == method {
                return request;
            }
        }
    }
}

impl ServerState {
    fn start(&self) -> u64 {
        self.starts.load(Ordering::SeqCst)
    }

    fn answer_http(&self, mut connection: TcpStream, request: &str) {
        let session = format!("mcp-session-id: s{}\r\n", self.start());
        let is_known = request.contains(&session);
        let is_opening = request.contains(r#""initialize""#);
        let is_unready = || {
            let less = |left: u64| left.checked_sub(1);
            let (set, fetch) = (Ordering::SeqCst, Ordering::SeqCst);
            self.unready.fetch_update(set, fetch, less).is_ok()
        };
        let text = match request.starts_with("GET") {
            _ if is_opening && is_unready() => reply("503 Service Unavailable", "", ""),
            _ if !(is_known || is_opening) => reply("404 Not Found", "", ""),
            true => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: open\n\n";
                let _ = connection.write_all(head.as_bytes());
                self.streams.lock().unwrap().push(connection);
                return;
            }
            false => match self.result(request) {
                Some(answer) => reply("200 OK", &session, &answer.to_string()),
                None => reply("202 Accepted", "", ""),
            },
        };
        let _ = connection.write_all(text.as_bytes());
    }

    fn answer_sse(&self, mut connection: TcpStream, request: &str) {
        let endpoint = format!("/message?s={}", self.start());
        if request.starts_with("GET") {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            let text = format!("{head}event: endpoint\ndata: {endpoint}\n\n");
            let _ = connection.write_all(text.as_bytes());
            self.streams.lock().unwrap().push(connection);
            return;
        }
        let is_known = request.contains(&format!("{endpoint} HTTP"));
        let status = match is_known {
            true => "202 Accepted",
            false => "404 Not Found",
        };
        let _ = connection.write_all(reply(status, "", "").as_bytes());
        if let Some(answer) = self.result(request).filter(|_| is_known)
            && let Some(stream) = self.streams.lock().unwrap().last_mut()
        {
            let _ = stream.write_all(format!("event: message\ndata: {answer}\n\n").as_bytes());
        }
    }

    /// The answer to a message, if it gets one.
    fn result(&self, request: &str) -> Option<Value> {
        let (_, body) = request.split_once("\r\n\r\n")?;
        let message: Value = serde_json::from_str(body).ok()?;
        let id = message.get("id")?;
        let start = self.start();
        if message["method"] == "slow" {
            return None;
        }
        let changed = start > 0 && self.changes_revision.load(Ordering::SeqCst);
        let version = match changed {
            true => "2024-11-05",
            false => "2025-11-25",
        };
        Some(json!({"jsonrpc": "2.0", "id": id, "result": {
            "protocolVersion": version, "capabilities": {},
            "serverInfo": {"name": "forgetful", "version": "1"}, "start": start,
        }}))
    }
}

fn reply(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn stdio_client(server: &ForgetfulServer, transport: &str, more: &[&str]) -> StdioProgram {
    let url = format!("http://{}/x", server.address);
    let words = ["proxy", "--listen", "stdio", "--transport", transport];
    let words = [&words[..], &["--target-url", &url], more].concat();
    let mut client = StdioProgram::start(&words);
    client.say(INITIALIZE);
    assert!(client.hear().contains("forgetful"));
    client.say(INITIALIZED);
    server.wait_for("notifications/initialized");
    client
}

fn ask(id: u64, method: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}}).to_string()
}

/// The id of an answer, and the start of the server that gave it.
fn answered(line: &str) -> (Value, Value) {
    let answer: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
    (answer["id"].clone(), answer["result"]["start"].clone())
}

/// The methods of the messages that the proxy sent itself.
fn own_methods(record: &Path) -> Vec<Value> {
    let lines = record_lines(&std::fs::read_to_string(record).unwrap());
    let own = lines.into_iter().filter(|line| {
        line["t"] == "msg" && line["origin"] == "proxy" && line["direction"] == "client_to_server"
    });
    own.map(|line| line["method"].clone()).collect()
}

#[test]
fn a_stdio_client_survives_the_restart_of_its_http_server() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("r.jsonl");
    let server = ForgetfulServer::start(Kind::Http);
    let more = ["--session-file", record.to_str().unwrap()];
    let mut client = stdio_client(&server, "streamable-http", &more);
    client.say(&ask(2, "logging/setLevel"));
    assert_eq!(answered(&client.hear()), (json!(2), json!(0)));
    server.restart();
    client.say(&ask(3, "tools/list"));
    assert_eq!(answered(&client.hear()), (json!(3), json!(1)));
    let opened = server.wait_for("initialize");
    assert_eq!(opened["params"]["clientInfo"]["name"], "test");
    server.wait_for("notifications/initialized");
    server.wait_for("logging/setLevel");
    // Later messages need nothing more.
    client.say(&ask(4, "tools/list"));
    assert_eq!(answered(&client.hear()), (json!(4), json!(1)));
    assert_eq!(client.end(), Some(0));
    let own = [
        "initialize",
        "notifications/initialized",
        "logging/setLevel",
    ];
    assert_eq!(own_methods(&record), own);
    let text = std::fs::read_to_string(&record).unwrap();
    assert!(text.contains("opened it again"), "{text}");
}

#[test]
fn a_session_is_opened_again_when_the_server_is_ready() {
    let server = ForgetfulServer::start(Kind::Http);
    let mut client = stdio_client(&server, "streamable-http", &["--no-record"]);
    server.state.unready.store(2, Ordering::SeqCst);
    server.restart();
    client.say(&ask(2, "tools/list"));
    assert_eq!(answered(&client.hear()), (json!(2), json!(1)));
    assert_eq!(client.end(), Some(0));
}

#[test]
fn a_session_is_opened_once_for_all_requests_that_need_it() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("r.jsonl");
    let server = ForgetfulServer::start(Kind::Http);
    let more = ["--session-file", record.to_str().unwrap()];
    let mut client = stdio_client(&server, "streamable-http", &more);
    server.restart();
    for id in 2..12 {
        client.say(&ask(id, "tools/list"));
    }
    let mut ids: Vec<u64> = (2..12)
        .map(|_| {
            let (id, start) = answered(&client.hear());
            assert_eq!(start, 1);
            id.as_u64().unwrap()
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (2..12).collect::<Vec<u64>>());
    assert_eq!(client.end(), Some(0));
    let own = ["initialize", "notifications/initialized"];
    assert_eq!(own_methods(&record), own);
}

#[test]
fn a_session_is_opened_again_although_the_client_is_silent() {
    let server = ForgetfulServer::start(Kind::Http);
    let client = stdio_client(&server, "streamable-http", &["--no-record"]);
    // The stream has to be open before it can be lost.
    while server.state.streams.lock().unwrap().is_empty() {
        std::thread::yield_now();
    }
    server.restart();
    server.wait_for("initialize");
    server.wait_for("notifications/initialized");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn without_reconnecting_a_lost_session_ends_the_run() {
    for (kind, transport, code) in [
        (Kind::Http, "streamable-http", -31006),
        (Kind::Sse, "sse", -31002),
    ] {
        let server = ForgetfulServer::start(kind);
        let more = ["--no-record", "--no-reconnect"];
        let mut client = stdio_client(&server, transport, &more);
        server.restart();
        client.say(&ask(2, "tools/list"));
        assert_eq!(
            error_answer(&client.hear()),
            (json!(2), code),
            "{transport}"
        );
        assert_eq!(client.end(), Some(1), "{transport}");
    }
}

#[test]
fn another_revision_after_a_restart_ends_the_run() {
    for (kind, transport, code) in [
        (Kind::Http, "streamable-http", -31006),
        (Kind::Sse, "sse", -31002),
    ] {
        let server = ForgetfulServer::start(kind);
        server.state.changes_revision.store(true, Ordering::SeqCst);
        let mut client = stdio_client(&server, transport, &["--no-record"]);
        server.restart();
        client.say(&ask(2, "tools/list"));
        let answer = client.hear();
        assert_eq!(error_answer(&answer), (json!(2), code), "{transport}");
        // On SSE the request may be on its way when the end of the stream is seen. The run ends by itself a little later.
        if transport == "sse" && answer.contains("event stream") {
            assert_eq!(client.hear(), "");
        } else {
            assert!(answer.contains("2024-11-05"), "{answer}");
        }
        assert_eq!(client.end(), Some(1), "{transport}");
    }
}

#[test]
fn a_stdio_client_survives_the_restart_of_its_sse_server() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("r.jsonl");
    let server = ForgetfulServer::start(Kind::Sse);
    let more = ["--session-file", record.to_str().unwrap()];
    let mut client = stdio_client(&server, "sse", &more);
    client.say(&ask(2, "tools/list"));
    assert_eq!(answered(&client.hear()), (json!(2), json!(0)));
    client.say(&ask(3, "slow"));
    server.wait_for("slow");
    server.restart();
    // What the old session was at work on is not sent again.
    assert_eq!(error_answer(&client.hear()), (json!(3), -31002));
    client.say(&ask(4, "tools/list"));
    assert_eq!(answered(&client.hear()), (json!(4), json!(1)));
    assert_eq!(client.end(), Some(0));
    let own = ["initialize", "notifications/initialized"];
    assert_eq!(own_methods(&record), own);
}

#[test]
fn an_sse_client_survives_the_restart_of_its_http_server() {
    for port in ["sse", "http"] {
        sse_client_survives(port);
    }
}

fn sse_client_survives(port: &str) {
    let server = ForgetfulServer::start(Kind::Http);
    let url = format!("http://{}/x", server.address);
    let target = ["--transport", "streamable-http", "--target-url", &url];
    let proxy = ListeningProgram::proxy(port, &target);
    let mut stream = open(&proxy.address, "GET", "/sse", &[], b"");
    stream.head();
    let endpoint = stream.until("data:");
    let post = |body: &str| {
        let headers = [("content-type", "application/json")];
        crate::programs::request(&proxy.address, "POST", &endpoint, &headers, body.as_bytes())
    };
    assert_eq!(post(INITIALIZE).status, 202);
    assert!(stream.until("data:").contains("forgetful"));
    assert_eq!(post(INITIALIZED).status, 202);
    server.wait_for("notifications/initialized");
    server.restart();
    assert_eq!(post(&ask(2, "tools/list")).status, 202);
    assert_eq!(answered(&stream.until("data:")), (json!(2), json!(1)));
}
