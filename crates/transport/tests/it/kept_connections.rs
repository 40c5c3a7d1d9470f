//! Connections that are kept for the next request, to servers that close them without a word.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt;
use mcp_proxy_core::{HoldOptions, ProxyRun, RunOptions};
use mcp_proxy_session::{RecordLocation, RecordOptions, Recorder, testing};
use mcp_proxy_transport::http::{
    CollectedBody, HttpPassThrough, RemoteServer, RemoteServerOptions, RequestSource,
};
use mcp_proxy_wire::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

/// What a server does with a connection after its answer. It never announces it.
#[derive(Clone, Copy)]
enum AfterAnswer {
    Close,
    /// After this long.
    CloseAfter(Duration),
    /// When the next request has come, which it does not read.
    CloseUnread,
    /// It reads the next request and closes then: it may have carried it out.
    ReadAndClose,
    /// It reads the next request, works on it for this long, and then the connection is reset.
    ReadAndReset(Duration),
}

/// Serves, and counts the requests that it has read.
async fn serve(listener: TcpListener, after: AfterAnswer, read: Arc<AtomicUsize>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let read = Arc::clone(&read);
        tokio::spawn(async move {
            if !read_request(&mut stream).await {
                return;
            }
            read.fetch_add(1, Ordering::SeqCst);
            let length = ANSWER.len();
            let text = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{ANSWER}"
            );
            let _ = stream.write_all(text.as_bytes()).await;
            match after {
                AfterAnswer::Close => {}
                AfterAnswer::CloseAfter(pause) => tokio::time::sleep(pause).await,
                AfterAnswer::CloseUnread => drop(stream.readable().await),
                AfterAnswer::ReadAndClose => {
                    if read_request(&mut stream).await {
                        read.fetch_add(1, Ordering::SeqCst);
                    }
                }
                AfterAnswer::ReadAndReset(work) => {
                    if read_request(&mut stream).await {
                        read.fetch_add(1, Ordering::SeqCst);
                    }
                    tokio::time::sleep(work).await;
                    stream.set_zero_linger().unwrap();
                }
            }
        });
    }
}

/// Reads a request to its end; `false`: none came.
async fn read_request(stream: &mut TcpStream) -> bool {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        let ended = match text.starts_with("POST") {
            true => text.ends_with(ASK),
            false => text.ends_with("\r\n\r\n"),
        };
        if ended {
            return true;
        }
        if !matches!(stream.read_buf(&mut read).await, Ok(count) if count > 0) {
            return false;
        }
    }
}

struct TestProxy {
    passing: Arc<HttpPassThrough>,
    read: Arc<AtomicUsize>,
}

impl TestProxy {
    async fn start(folder: &Path, after: AfterAnswer) -> TestProxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let read = Arc::new(AtomicUsize::new(0));
        tokio::spawn(serve(listener, after, Arc::clone(&read)));
        let place = RecordLocation::File(folder.join("s.jsonl"));
        let recorder =
            Recorder::create(place, RecordOptions::default(), &testing::header()).unwrap();
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
        TestProxy { passing, read }
    }

    /// Sends a request and takes the whole answer; its status.
    async fn send(&self, method: Method) -> u16 {
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
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let body = CollectedBody::Whole(body);
        let answer = self.passing.pass(&source, parts, body).await;
        let status = answer.status().as_u16();
        drop(answer.into_body().collect().await);
        status
    }

    fn read(&self) -> usize {
        self.read.load(Ordering::SeqCst)
    }
}

fn notes(folder: &Path) -> usize {
    let text = std::fs::read_to_string(folder.join("s.jsonl")).unwrap();
    let is_note = |line: &&str| line.contains(r#""t":"note""#) && line.contains("idle connection");
    text.lines().filter(is_note).count()
}

on_both_runtimes!(
    a_request_on_a_connection_that_the_server_has_closed_is_sent_again,
    real_time
);
async fn a_request_on_a_connection_that_the_server_has_closed_is_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = TestProxy::start(folder.path(), AfterAnswer::Close).await;
    for number in 1..=200 {
        assert_eq!(proxy.send(Method::POST).await, 200, "request {number}");
        assert_eq!(proxy.read(), number, "each is read once");
    }
}

on_both_runtimes!(
    a_request_on_a_connection_that_is_closed_later_is_sent_again,
    real_time
);
async fn a_request_on_a_connection_that_is_closed_later_is_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let pause = AfterAnswer::CloseAfter(Duration::from_micros(700));
    let proxy = TestProxy::start(folder.path(), pause).await;
    for number in 1..=100_u64 {
        assert_eq!(proxy.send(Method::POST).await, 200, "request {number}");
        assert_eq!(proxy.read() as u64, number, "each is read once");
        // Sometimes before, sometimes after, sometimes just when the server closes.
        tokio::time::sleep(Duration::from_micros(number * 97 % 1500)).await;
    }
}

on_both_runtimes!(a_request_that_was_not_read_is_sent_again, real_time);
async fn a_request_that_was_not_read_is_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = TestProxy::start(folder.path(), AfterAnswer::CloseUnread).await;
    assert_eq!(proxy.send(Method::POST).await, 200);
    assert_eq!(notes(folder.path()), 0);
    assert_eq!(proxy.send(Method::POST).await, 200);
    assert_eq!(proxy.read(), 2);
    assert_eq!(notes(folder.path()), 1);
}

on_both_runtimes!(a_request_that_was_read_is_not_sent_again, real_time);
async fn a_request_that_was_read_is_not_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = TestProxy::start(folder.path(), AfterAnswer::ReadAndClose).await;
    assert_eq!(proxy.send(Method::POST).await, 200);
    assert_eq!(proxy.send(Method::POST).await, 502);
    assert_eq!(proxy.read(), 2);
    assert_eq!(notes(folder.path()), 0);
}

on_both_runtimes!(a_request_that_may_be_repeated_is_sent_again, real_time);
async fn a_request_that_may_be_repeated_is_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = TestProxy::start(folder.path(), AfterAnswer::ReadAndClose).await;
    assert_eq!(proxy.send(Method::POST).await, 200);
    assert_eq!(proxy.send(Method::DELETE).await, 200);
    assert_eq!(proxy.read(), 3);
    assert_eq!(notes(folder.path()), 1);
}

on_both_runtimes!(
    a_request_whose_connection_is_reset_during_a_long_call_is_not_sent_again,
    real_time
);
async fn a_request_whose_connection_is_reset_during_a_long_call_is_not_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let call = AfterAnswer::ReadAndReset(Duration::from_millis(1100));
    let proxy = TestProxy::start(folder.path(), call).await;
    assert_eq!(proxy.send(Method::POST).await, 200);
    assert_eq!(proxy.send(Method::POST).await, 502);
    assert_eq!(proxy.read(), 2, "carried out once");
    assert_eq!(notes(folder.path()), 0);
}
