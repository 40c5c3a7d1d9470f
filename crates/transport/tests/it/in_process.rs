//! A server in this process behind the listener: clients of both eras reach it over HTTP, HTTP+SSE and stdio, and it
//! sees who each of them is.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use mcp_proxy_core::{
    Caller, CarryOptions, Dial, HoldOptions, InProcessServer, Link, Peer, ProxyRun, RunOptions,
    carry, in_process,
};
use mcp_proxy_transport::http::{
    EndpointOptions, LegacyClients, McpEndpoint, ModernClients, SessionLimits, SessionPlaces,
};
use mcp_proxy_transport::http::{Listener, ListenerLimits, ListenerOptions};
use mcp_proxy_transport::http::{Route, Routes};
use mcp_proxy_transport::sse::SseEndpoint;
use mcp_proxy_transport::{LineReader, LineWriter};
use mcp_proxy_wire::{Message, Side, Transport};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::server::soon;

const MODERN: &str = "2026-07-28";

/// Opens the server: each connection gets one that knows its caller.
fn whoami() -> Dial {
    Arc::new(|connection| {
        let caller = connection.client.caller.clone();
        Box::pin(async move {
            let (link, server) = in_process();
            tokio::spawn(answer(server, caller));
            Ok(link)
        })
    })
}

/// Answers every request with who called. `slow` is answered only when it is cancelled, with an error.
async fn answer(mut server: InProcessServer, caller: Option<Arc<Caller>>) {
    let header = |name: &str| {
        let caller = caller.as_ref()?;
        Some(caller.headers.get(name)?.to_str().ok()?.to_owned())
    };
    let whoami = json!({
        "token": caller.as_ref().and_then(|caller| caller.token.as_deref()),
        "path": caller.as_ref().map(|caller| caller.path.clone()),
        "agent": header("user-agent"),
        "port": caller.as_ref().and_then(|caller| Some(caller.address?.port())),
    });
    while let Some(message) = server.requests.next().await {
        let text = String::from_utf8(message.raw().to_vec()).unwrap();
        let request: Value = serde_json::from_str(&text).unwrap();
        let (Some(id), Some(method)) = (request.get("id"), request["method"].as_str()) else {
            continue;
        };
        let result = match method {
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "whoami", "version": "1"},
            }),
            "slow" => {
                let progress = json!({"jsonrpc": "2.0", "method": "notifications/message",
                    "params": {"level": "info", "data": "working"}});
                let progress = Message::parse(progress.to_string());
                server.answers.send(progress).await.unwrap();
                continue;
            }
            _ => whoami.clone(),
        };
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        let sent = server.answers.send(Message::parse(answer.to_string()));
        if sent.await.is_err() {
            return;
        }
    }
}

pub fn proxy_run() -> Arc<ProxyRun> {
    ProxyRun::new(RunOptions {
        recorder: None,
        warn: Arc::new(|text| panic!("{text}")),
        pass_noise: false,
        hold: HoldOptions::default(),
    })
}

/// A listener with the server behind `/mcp`, below `/mcp/p` and behind `/sse`.
async fn listen() -> (SocketAddr, Arc<ProxyRun>, Arc<Routes>) {
    let options = ListenerOptions {
        admission: Default::default(),
        tls: None,
        stall: Duration::from_secs(30),
        is_public: false,
        limits: ListenerLimits::default(),
        on_refusal: Arc::new(|_| {}),
    };
    let listener = Listener::bind("127.0.0.1", 0, options).await.unwrap();
    let url = listener.url("");
    let address = url.rsplit_once('/').unwrap().1.parse().unwrap();
    let limits = SessionLimits {
        requests: 8,
        idle: Duration::from_secs(60),
        message: 1 << 20,
    };
    let places = SessionPlaces::new(8);
    let (run, server) = (proxy_run(), Peer::in_process("whoami"));
    let endpoint = McpEndpoint::new(
        Arc::clone(&run),
        whoami(),
        EndpointOptions {
            server: server.clone(),
            modern: ModernClients::OneByOne,
            legacy: LegacyClients::Sessions,
            limits,
            memory: None,
            places: Arc::clone(&places),
            carry: CarryOptions::default(),
        },
    );
    let carry = CarryOptions::default();
    let sse = SseEndpoint::new(Arc::clone(&run), whoami(), server, (limits, places), carry);
    let routes = Routes::new()
        .with(endpoint, [Route::exact("/mcp"), Route::prefix("/mcp/p")])
        .with(sse.messages(), [Route::exact("/message")])
        .with(sse, [Route::exact("/sse")]);
    let routes = Arc::new(routes);
    tokio::spawn(listener.run(Arc::clone(&routes), std::future::pending()));
    (address, run, routes)
}

/// One HTTP connection of a client with a name and a token.
struct Client {
    sender: hyper::client::conn::http1::SendRequest<Full<bytes::Bytes>>,
    port: u16,
    name: &'static str,
    token: Option<&'static str>,
    session: Option<String>,
}

impl Client {
    async fn connect(at: SocketAddr, name: &'static str, token: Option<&'static str>) -> Client {
        let stream = TcpStream::connect(at).await.unwrap();
        let port = stream.local_addr().unwrap().port();
        let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = shaken.unwrap();
        tokio::spawn(connection);
        Client {
            sender,
            port,
            name,
            token,
            session: None,
        }
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Response<Incoming> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("user-agent", self.name)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(token) = self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::from(body)).unwrap();
        // The task of the connection may still be busy with the answer before.
        soon(self.sender.ready()).await.unwrap();
        soon(self.sender.send_request(request)).await.unwrap()
    }

    async fn post(&mut self, path: &str, message: Value) -> Value {
        let answer = self.send(Method::POST, path, &[], message.to_string());
        whole(answer.await).await
    }

    async fn modern(&mut self, path: &str, id: u64, method: &str) -> Response<Incoming> {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        }});
        let headers = [("mcp-protocol-version", MODERN), ("mcp-method", method)];
        self.send(Method::POST, path, &headers, message.to_string())
            .await
    }

    /// Opens a legacy session.
    async fn initialize(&mut self, path: &str) {
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": self.name, "version": "1"},
        }});
        let answer = self.send(Method::POST, path, &[], message.to_string());
        let answer = answer.await;
        self.session = Some(header(answer.headers(), "mcp-session-id"));
        assert_eq!(
            whole(answer).await["result"]["serverInfo"]["name"],
            "whoami"
        );
    }

    fn expected(&self, path: &str) -> Value {
        json!({"token": self.token, "path": path, "agent": self.name, "port": self.port})
    }
}

fn header(headers: &HeaderMap, name: &str) -> String {
    headers[name].to_str().unwrap().to_owned()
}

async fn whole(answer: Response<Incoming>) -> Value {
    let body = soon(answer.into_body().collect()).await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{body:?}"))
}

/// The data of the next event.
async fn next_data(events: &mut Incoming) -> String {
    let frame = soon(events.frame()).await.unwrap().unwrap();
    let text = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
    let data = text.lines().find_map(|line| line.strip_prefix("data: "));
    data.unwrap().to_owned()
}

fn call(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "whoami"}})
}

on_both_runtimes!(legacy_clients_over_http_are_told_apart, real_time);
async fn legacy_clients_over_http_are_told_apart() {
    let (at, ..) = listen().await;
    let mut first = Client::connect(at, "first", Some("a")).await;
    let mut second = Client::connect(at, "second", None).await;
    first.initialize("/mcp").await;
    second.initialize("/mcp/p/work").await;
    assert_ne!(first.session, second.session);
    let answer = first.post("/mcp", call(1)).await;
    assert_eq!(answer["result"], first.expected("/mcp"));
    let answer = second.post("/mcp/p/work", call(1)).await;
    assert_eq!(answer["result"], second.expected("/mcp/p/work"));
}

on_both_runtimes!(
    modern_clients_over_http_are_told_apart_request_by_request,
    real_time
);
async fn modern_clients_over_http_are_told_apart_request_by_request() {
    let (at, run, _) = listen().await;
    let mut first = Client::connect(at, "first", Some("same")).await;
    let mut second = Client::connect(at, "second", Some("same")).await;
    // The same token, the same id, at the same time: each has its own answer.
    let (one, two) = tokio::join!(
        first.modern("/mcp", 1, "tools/call"),
        second.modern("/mcp/p/work", 1, "tools/call"),
    );
    assert_eq!(whole(one).await["result"], first.expected("/mcp"));
    assert_eq!(whole(two).await["result"], second.expected("/mcp/p/work"));
    assert_eq!(run.connections(), 2);
}

on_both_runtimes!(
    a_modern_client_that_closes_its_stream_ends_its_request_alone,
    real_time
);
async fn a_modern_client_that_closes_its_stream_ends_its_request_alone() {
    let (at, _, routes) = listen().await;
    let mut gone = Client::connect(at, "gone", None).await;
    let mut answer = gone.modern("/mcp", 1, "slow").await;
    let event = soon(answer.body_mut().frame()).await.unwrap().unwrap();
    let event = String::from_utf8(event.into_data().unwrap().to_vec()).unwrap();
    assert!(event.contains("working"), "{event}");
    assert!(!event.contains("id:"), "modern streams cannot be resumed");
    let mut other = Client::connect(at, "other", None).await;
    let answered = other.modern("/mcp", 1, "tools/call").await;
    assert_eq!(whole(answered).await["result"], other.expected("/mcp"));
    until_open(&routes, 1).await;
    drop((answer, gone));
    until_open(&routes, 0).await;
}

/// A session ends soon after its last answer, on whichever thread it runs.
async fn until_open(routes: &Routes, count: usize) {
    soon(async {
        while routes.open_count() != count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

on_both_runtimes!(a_client_over_http_and_sse_is_seen, real_time);
async fn a_client_over_http_and_sse_is_seen() {
    let (at, ..) = listen().await;
    let mut stream = Client::connect(at, "listener", Some("t")).await;
    let opened = stream.send(Method::GET, "/sse", &[], String::new()).await;
    let mut events = opened.into_body();
    let endpoint = next_data(&mut events).await;
    let mut poster = Client::connect(at, "poster", Some("t")).await;
    let sent = poster.send(Method::POST, &endpoint, &[], call(7).to_string());
    assert_eq!(sent.await.status(), 202);
    let answer: Value = serde_json::from_str(&next_data(&mut events).await).unwrap();
    assert_eq!(answer["id"], 7);
    // The caller of the connection is who opened the stream.
    assert_eq!(answer["result"], stream.expected("/sse"));
}

on_both_runtimes!(a_client_over_stdio_reaches_it_too, real_time);
async fn a_client_over_stdio_reaches_it_too() {
    let run = proxy_run();
    let connection = run.connect(Transport::Stdio, Peer::in_process("whoami"));
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(theirs);
    let client = Link::new(
        LineReader::new(read, Side::Client, 1 << 20, run.memory()),
        LineWriter::new(write, Side::Client),
    );
    let server = whoami()(Arc::clone(&connection)).await.unwrap();
    let carrying = tokio::spawn(async move {
        let options = CarryOptions::default();
        carry(&connection, client, server, options, std::future::pending()).await
    });
    let (read, mut write) = tokio::io::split(ours);
    let mut lines = BufReader::new(read).lines();
    let line = format!("{}\n", call(1));
    write.write_all(line.as_bytes()).await.unwrap();
    let answer: Value =
        serde_json::from_str(&soon(lines.next_line()).await.unwrap().unwrap()).unwrap();
    let nobody = json!({"token": null, "path": null, "agent": null, "port": null});
    assert_eq!(answer["result"], nobody);
    write.shutdown().await.unwrap();
    soon(carrying).await.unwrap();
}

/// The server behind sees no headers, so it could not tell these from legacy requests.
#[tokio::test]
async fn a_modern_request_in_legacy_form_is_refused() {
    let (at, ..) = listen().await;
    let mut client = Client::connect(at, "m", None).await;
    let legacy_forms = [
        ("tools/list", json!({}), 400, -32602),
        (
            "initialize",
            json!({"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}}),
            404,
            -32601,
        ),
    ];
    for (method, params, status, code) in legacy_forms {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let headers = [("mcp-protocol-version", MODERN), ("mcp-method", method)];
        let answer = client.send(Method::POST, "/mcp", &headers, message.to_string());
        let answer = answer.await;
        assert_eq!(answer.status(), status, "{method}");
        assert_eq!(whole(answer).await["error"]["code"], code, "{method}");
    }
}
