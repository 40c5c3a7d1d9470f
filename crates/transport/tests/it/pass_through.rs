//! HTTP that is passed through, without a listener: the test is the client.

use std::path::Path;

use http::Method;
use http_body_util::BodyExt;
use mcp_proxy_transport::http::HttpResponse;
use tokio::net::TcpListener;

use crate::test_proxy::{ANSWER, TestProxy, read_request, record_lines, write_answer};

/// Answers one request on each connection.
async fn serve(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        assert!(read_request(&mut stream).await);
        write_answer(&mut stream, "connection: close\r\n").await;
    }
}

/// Sends a request through a proxy with a record in this folder.
async fn ask(folder: &Path) -> HttpResponse {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = TestProxy::new(folder, &listener);
    tokio::spawn(serve(listener));
    proxy.ask(Method::POST).await
}

fn undelivered(folder: &Path) -> Vec<u64> {
    let lines = record_lines(folder);
    let undelivered = lines.iter().filter(|line| line["kind"] == "undelivered");
    undelivered
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
