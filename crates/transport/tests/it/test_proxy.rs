//! HTTP that is passed through to a raw server, without a listener: the test is the client.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use mcp_proxy_core::{HoldOptions, ProxyRun, RunOptions};
use mcp_proxy_session::{RecordLocation, RecordOptions, Recorder, testing};
use mcp_proxy_transport::http::{
    HttpPassThrough, HttpResponse, RemoteServer, RemoteServerOptions, RequestSource, TokenSource,
};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
/// What the server answers.
pub const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

/// A proxy with a record.
pub struct TestProxy(Arc<HttpPassThrough>);

impl TestProxy {
    /// In front of the server of this listener, with its record in this folder.
    pub fn new(folder: &Path, server: &TcpListener) -> TestProxy {
        TestProxy::signed_in(folder, server, None)
    }

    /// The same with tokens for the server.
    pub fn signed_in(
        folder: &Path,
        server: &TcpListener,
        tokens: Option<Arc<dyn TokenSource>>,
    ) -> TestProxy {
        let place = RecordLocation::File(folder.join("s.jsonl"));
        let recorder =
            Recorder::create(place, RecordOptions::default(), &testing::header()).unwrap();
        let run = ProxyRun::new(RunOptions {
            recorder: Some(recorder),
            warn: Arc::new(|text| panic!("{text}")),
            pass_noise: false,
            hold: HoldOptions::default(),
        });
        TestProxy(HttpPassThrough::new(run, remote(server, tokens), 1 << 20))
    }

    /// Sends a request; a POST has a message in it.
    pub async fn ask(&self, method: Method) -> HttpResponse {
        self.ask_as(method, None).await
    }

    /// The same with an `Authorization` header of the client's own.
    pub async fn ask_as(&self, method: Method, authorization: Option<&str>) -> HttpResponse {
        let source = RequestSource {
            token: None,
            address: "127.0.0.1:1".parse().unwrap(),
        };
        let body = match method == Method::POST {
            true => Bytes::from_static(ASK.as_bytes()),
            false => Bytes::new(),
        };
        let request = Request::builder()
            .method(method)
            .uri("http://localhost/mcp")
            .header("content-type", "application/json");
        let request = match authorization {
            Some(authorization) => request.header("authorization", authorization),
            None => request,
        };
        let (parts, ()) = request.body(()).unwrap().into_parts();
        self.0.pass(&source, parts, body).await
    }
}

/// The server of this listener, with tokens for it.
pub fn remote(server: &TcpListener, tokens: Option<Arc<dyn TokenSource>>) -> Arc<RemoteServer> {
    let url = format!("http://{}/mcp", server.local_addr().unwrap());
    let remote = RemoteServer::new(RemoteServerOptions {
        url: url.parse().unwrap(),
        headers: Vec::new(),
        ca_file: None,
        stall: Duration::from_secs(60),
        tools: Arc::default(),
        tokens,
        proxy: None,
    });
    remote.unwrap()
}

/// The lines of the record in this folder.
pub fn record_lines(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("s.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

/// The server's side: reads a request to its end; `false`: none came.
pub async fn read_request(stream: &mut TcpStream) -> bool {
    let mut read = Vec::new();
    loop {
        let ended = match read.starts_with(b"POST") {
            true => read.ends_with(ASK.as_bytes()),
            false => read.ends_with(b"\r\n\r\n"),
        };
        if ended {
            return true;
        }
        if !matches!(stream.read_buf(&mut read).await, Ok(count) if count > 0) {
            return false;
        }
    }
}

/// Writes the answer, with these headers too.
pub async fn write_answer(stream: &mut TcpStream, headers: &str) {
    let length = ANSWER.len();
    let text = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{headers}\r\n{ANSWER}"
    );
    let _ = stream.write_all(text.as_bytes()).await;
}
