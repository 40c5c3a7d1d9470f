//! Connections that are kept for the next request, to servers that close them without a word.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use http_body_util::BodyExt;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use crate::test_proxy::{TestProxy, read_request, record_lines, write_answer};

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
    /// Its answer is large, and another one follows that nobody asked for.
    SayMore,
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
            if let AfterAnswer::SayMore = after {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
                let large = format!("{head} 200000\r\n\r\n{}", " ".repeat(200_000));
                let unasked = format!("{head} 2\r\n\r\n{{}}");
                let _ = stream.write_all((large + &unasked).as_bytes()).await;
                if read_request(&mut stream).await {
                    read.fetch_add(100, Ordering::SeqCst);
                }
                return;
            }
            write_answer(&mut stream, "").await;
            match after {
                AfterAnswer::Close | AfterAnswer::SayMore => {}
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

/// A proxy in front of such a server.
struct KeptConnections {
    proxy: TestProxy,
    read: Arc<AtomicUsize>,
}

impl KeptConnections {
    async fn start(folder: &Path, after: AfterAnswer) -> KeptConnections {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = TestProxy::new(folder, &listener);
        let read = Arc::new(AtomicUsize::new(0));
        tokio::spawn(serve(listener, after, Arc::clone(&read)));
        KeptConnections { proxy, read }
    }

    /// Sends a request and takes the whole answer; its status.
    async fn send(&self, method: Method) -> u16 {
        let answer = self.proxy.ask(method).await;
        let status = answer.status().as_u16();
        drop(answer.into_body().collect().await);
        status
    }

    fn read(&self) -> usize {
        self.read.load(Ordering::SeqCst)
    }
}

/// How often the record says that a request was sent again.
fn notes(folder: &Path) -> usize {
    let lines = record_lines(folder);
    let is_note = |line: &&serde_json::Value| {
        line["t"] == "note" && line.to_string().contains("idle connection")
    };
    lines.iter().filter(is_note).count()
}

on_both_runtimes!(
    a_request_on_a_connection_that_the_server_has_closed_is_sent_again,
    real_time
);
async fn a_request_on_a_connection_that_the_server_has_closed_is_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = KeptConnections::start(folder.path(), AfterAnswer::Close).await;
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
    let proxy = KeptConnections::start(folder.path(), pause).await;
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
    let proxy = KeptConnections::start(folder.path(), AfterAnswer::CloseUnread).await;
    assert_eq!(proxy.send(Method::POST).await, 200);
    assert_eq!(notes(folder.path()), 0);
    assert_eq!(proxy.send(Method::POST).await, 200);
    assert_eq!(proxy.read(), 2);
    assert_eq!(notes(folder.path()), 1);
}

on_both_runtimes!(a_request_that_was_read_is_not_sent_again, real_time);
async fn a_request_that_was_read_is_not_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = KeptConnections::start(folder.path(), AfterAnswer::ReadAndClose).await;
    assert_eq!(proxy.send(Method::POST).await, 200);
    assert_eq!(proxy.send(Method::POST).await, 502);
    assert_eq!(proxy.read(), 2);
    assert_eq!(notes(folder.path()), 0);
}

on_both_runtimes!(a_request_that_may_be_repeated_is_sent_again, real_time);
async fn a_request_that_may_be_repeated_is_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = KeptConnections::start(folder.path(), AfterAnswer::ReadAndClose).await;
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
    let proxy = KeptConnections::start(folder.path(), call).await;
    assert_eq!(proxy.send(Method::POST).await, 200);
    assert_eq!(proxy.send(Method::POST).await, 502);
    assert_eq!(proxy.read(), 2, "carried out once");
    assert_eq!(notes(folder.path()), 0);
}

on_both_runtimes!(
    a_connection_on_which_the_server_says_more_is_not_used_again,
    real_time
);
async fn a_connection_on_which_the_server_says_more_is_not_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = KeptConnections::start(folder.path(), AfterAnswer::SayMore).await;
    for number in 1..=20 {
        assert_eq!(proxy.send(Method::POST).await, 200, "request {number}");
        assert_eq!(proxy.read(), number, "each has a connection of its own");
    }
}
