//! HTTP that is passed through, without a listener: the test is the client.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt;
use mcp_proxy_core::{HoldOptions, ProxyRun, RunOptions};
use mcp_proxy_session::{RecordLocation, RecordOptions, Recorder, testing};
use mcp_proxy_transport::http::{
    CollectedBody, HttpPassThrough, HttpResponse, RemoteServer, RemoteServerOptions, RequestSource,
};
use mcp_proxy_wire::Limits;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const ASK: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

/// Answers one request on each connection.
async fn serve(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut read = Vec::new();
        while !read.ends_with(ASK) {
            assert!(stream.read_buf(&mut read).await.unwrap() > 0);
        }
        let length = ANSWER.len();
        let text = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{ANSWER}"
        );
        stream.write_all(text.as_bytes()).await.unwrap();
    }
}

/// Sends a request through a proxy with a record in this folder.
async fn ask(folder: &Path) -> HttpResponse {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(serve(listener));
    let place = RecordLocation::File(folder.join("s.jsonl"));
    let recorder = Recorder::create(place, RecordOptions::default(), &testing::header()).unwrap();
    let run = ProxyRun::new(RunOptions {
        recorder: Some(recorder),
        warn: Arc::new(|text| panic!("{text}")),
        pass_noise: false,
        hold: HoldOptions::default(),
    });
    let remote = RemoteServer::new(RemoteServerOptions {
        url: url.parse().unwrap(),
        headers: Vec::new(),
        ca_file: None,
        stall: Duration::from_secs(60),
        tools: Arc::default(),
        proxy: None,
    });
    let limits = Limits {
        cut: 1 << 16,
        max: 1 << 20,
    };
    let passing = HttpPassThrough::new(run, remote.unwrap(), limits);
    let source = RequestSource {
        token: None,
        address: "127.0.0.1:1".parse().unwrap(),
    };
    let request = Request::post("http://localhost/mcp").header("content-type", "application/json");
    let (parts, ()) = request.body(()).unwrap().into_parts();
    let body = CollectedBody::Whole(Bytes::from_static(ASK));
    passing.pass(&source, parts, body).await
}

fn undelivered(folder: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(folder.join("s.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines
        .filter(|line: &Value| line["kind"] == "undelivered")
        .map(|line| line["sequence"].as_u64().unwrap())
        .collect()
}

on_both_runtimes!(
    an_answer_that_the_client_does_not_take_is_undelivered,
    real_time
);
async fn an_answer_that_the_client_does_not_take_is_undelivered() {
    let folder = tempfile::tempdir().unwrap();
    let answer = ask(folder.path()).await;
    assert_eq!(answer.status(), 200);
    drop(answer);
    assert_eq!(undelivered(folder.path()), [2]);
}

on_both_runtimes!(an_answer_that_the_client_takes_is_delivered, real_time);
async fn an_answer_that_the_client_takes_is_delivered() {
    let folder = tempfile::tempdir().unwrap();
    let answer = ask(folder.path()).await;
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(bytes, ANSWER);
    assert!(undelivered(folder.path()).is_empty());
}
