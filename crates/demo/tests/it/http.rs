//! The server over HTTP: the path, who may ask, both eras on one URL, hanging up, shutting down.

use std::net::SocketAddr;

use mcp_proxy_demo::{DemoContent, serve_http};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

struct TestServer {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<(), mcp_proxy_demo::DemoError>>,
}

impl TestServer {
    async fn start() -> TestServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async { stopped.await.unwrap_or_default() };
        let running = tokio::spawn(serve_http(DemoContent::WithFixtures, listener, shutdown));
        TestServer {
            address,
            stop,
            running,
        }
    }

    /// Sends one request on a connection of its own and returns all of the response.
    async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> String {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request +=
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
        request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        socket.read_to_string(&mut response).await.unwrap();
        response
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.running.await.unwrap().unwrap();
    }
}

fn status(response: &str) -> &str {
    response.split(' ').nth(1).unwrap_or_default()
}

fn header<'a>(response: &'a str, name: &str) -> Option<&'a str> {
    let head = response.split("\r\n\r\n").next()?;
    head.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// The last `id:` of an event stream.
fn last_event_id(response: &str) -> Option<&str> {
    response
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .next_back()
}

fn initialize() -> String {
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "raw", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string()
}

fn call(id: u32, tool: &str, meta: Option<Value>) -> String {
    let mut params = json!({ "name": tool, "arguments": {} });
    if let Some(meta) = meta {
        params["_meta"] = meta;
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

#[tokio::test]
async fn both_eras_answer_on_one_url() {
    let server = TestServer::start().await;
    let legacy = server.request("POST", "/mcp", &[], &initialize()).await;
    assert_eq!(status(&legacy), "200");
    assert!(header(&legacy, "mcp-session-id").is_some(), "{legacy}");

    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "test_simple_text"),
    ];
    let modern = server
        .request(
            "POST",
            "/mcp/",
            &headers,
            &call(7, "test_simple_text", Some(meta)),
        )
        .await;
    assert_eq!(status(&modern), "200");
    assert!(header(&modern, "mcp-session-id").is_none(), "{modern}");
    assert!(
        modern.contains("This is a simple text response"),
        "{modern}"
    );
    server.stop().await;
}

#[tokio::test]
async fn strangers_and_other_paths_are_turned_away() {
    let server = TestServer::start().await;
    let evil = server
        .request("POST", "/mcp", &[("Host", "evil.example")], &initialize())
        .await;
    assert_eq!(status(&evil), "403");
    let evil = server
        .request(
            "POST",
            "/mcp",
            &[("Origin", "http://evil.example")],
            &initialize(),
        )
        .await;
    assert_eq!(status(&evil), "403");
    let local = server
        .request(
            "POST",
            "/mcp",
            &[("Origin", "http://localhost:5173")],
            &initialize(),
        )
        .await;
    assert_eq!(status(&local), "200");
    let elsewhere = server.request("POST", "/", &[], &initialize()).await;
    assert_eq!(status(&elsewhere), "404");
    server.stop().await;
}

#[tokio::test]
async fn an_answer_survives_the_server_hanging_up() {
    let server = TestServer::start().await;
    let opened = server.request("POST", "/mcp", &[], &initialize()).await;
    let session = header(&opened, "mcp-session-id").unwrap();
    let headers = [
        ("Mcp-Session-Id", session),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let accepted = server.request("POST", "/mcp", &headers, initialized).await;
    assert_eq!(status(&accepted), "202");

    let cut = server
        .request(
            "POST",
            "/mcp",
            &headers,
            &call(2, "test_reconnection", None),
        )
        .await;
    assert!(!cut.contains("welcome back"), "{cut}");
    let last = last_event_id(&cut).unwrap();

    // A resumed stream stays open after the answer, so read only as far as that.
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let request = format!(
        "GET /mcp HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\
         MCP-Protocol-Version: 2025-11-25\r\nLast-Event-ID: {last}\r\n\r\n",
        server.address
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut resumed = Vec::new();
    while !String::from_utf8_lossy(&resumed).contains("welcome back") {
        let read = socket.read_buf(&mut resumed).await.unwrap();
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&resumed));
    }
    server.stop().await;
}
