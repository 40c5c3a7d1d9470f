//! `--memory-budget`: what is read whole counts while it is read. What finds no room is refused, and harms nobody else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_proxy_core::{FrameReader, MemoryBudget, ProxyRun};
use mcp_proxy_transport::http::{
    HttpLink, HttpPassThrough, Listener, ListenerLimits, ListenerOptions, Route, Routes,
};
use mcp_proxy_transport::sse::sse_link;
use mcp_proxy_transport::{LineReader, RemoteLinkOptions, SessionLoss};
use mcp_proxy_wire::{Body, ErrorCode, Frame, Message, Origin, Side, StreamId, Transport};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::in_process;
use crate::server::soon;
use crate::test_proxy::{ANSWER, read_request, remote, write_answer};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

fn proxy_run(budget: usize) -> Arc<ProxyRun> {
    let run = in_process::proxy_run();
    run.memory().set_limit(budget);
    run
}

/// A proxy in front of this server.
async fn pass_through(run: &Arc<ProxyRun>, server: &TcpListener) -> SocketAddr {
    let options = ListenerOptions {
        admission: Default::default(),
        tls: None,
        stall: Duration::from_secs(30),
        is_public: false,
        limits: ListenerLimits::default(),
        on_refusal: Arc::new(|_| {}),
    };
    let listener = Listener::bind("127.0.0.1", 0, options).await.unwrap();
    let address = listener
        .url("")
        .rsplit_once('/')
        .unwrap()
        .1
        .parse()
        .unwrap();
    let handler = HttpPassThrough::new(Arc::clone(run), remote(server, None), 256 * MIB);
    let routes = Arc::new(Routes::new().with(handler, [Route::exact("/mcp")]));
    tokio::spawn(listener.run(routes, std::future::pending()));
    address
}

/// A POST whose body has this length, of which this much is sent.
async fn post(address: SocketAddr, length: usize, sent: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(sent).await.unwrap();
    stream
}

/// The status of the answer, and the code of the error in it.
async fn answer(mut stream: TcpStream) -> (u16, Option<i64>) {
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body["error"]["code"].as_i64())
}

const NO_ROOM: Option<i64> = Some(ErrorCode::MEMORY_BUDGET.0);

async fn until(is_so: impl Fn() -> bool) {
    soon(async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Answers one request on each connection.
async fn serve(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        tokio::spawn(async move {
            if read_request(&mut stream).await {
                write_answer(&mut stream, "connection: close\r\n").await;
            }
        });
    }
}

on_both_runtimes!(
    a5_thirty_requests_that_do_not_end_stay_within_the_budget,
    real_time
);
async fn a5_thirty_requests_that_do_not_end_stay_within_the_budget() {
    let (run, server) = (
        proxy_run(256 * MIB),
        TcpListener::bind("127.0.0.1:0").await.unwrap(),
    );
    let address = pass_through(&run, &server).await;
    tokio::spawn(serve(server));
    let half: Arc<[u8]> = vec![b' '; 50 * MIB].into();
    let clients: Vec<_> = (0..30)
        .map(|_| {
            let half = Arc::clone(&half);
            tokio::spawn(async move { post(address, 100 * MIB, &half).await })
        })
        .collect();
    let memory = run.memory();
    until(|| memory.refused() >= 25).await;
    assert!(memory.used() <= memory.limit(), "{memory:?}");
    // What is small enough still finds room.
    let small = post(address, PING.len(), PING.as_bytes()).await;
    assert_eq!(answer(small).await, (200, None));
    clients.iter().for_each(tokio::task::JoinHandle::abort);
    drop(clients);
    until(|| memory.used() == 0).await;
}

on_both_runtimes!(a5_a_request_without_room_is_answered_503, real_time);
async fn a5_a_request_without_room_is_answered_503() {
    let (run, server) = (
        proxy_run(MIB),
        TcpListener::bind("127.0.0.1:0").await.unwrap(),
    );
    let address = pass_through(&run, &server).await;
    let large = post(address, 2 * MIB, &vec![b' '; 2 * MIB]).await;
    assert_eq!(answer(large).await, (503, NO_ROOM));
    assert_eq!((run.memory().used(), run.memory().refused()), (0, 1));
}

on_both_runtimes!(a5_answers_count_while_they_are_read, real_time);
async fn a5_answers_count_while_they_are_read() {
    let (run, server) = (
        proxy_run(5 * MIB),
        TcpListener::bind("127.0.0.1:0").await.unwrap(),
    );
    let (address, memory) = (pass_through(&run, &server).await, run.memory());
    let ask = || post(address, PING.len(), PING.as_bytes());
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2621440\r\n\r\n";
    let mut halves = Vec::new();
    for count in 1..=2 {
        let client = ask().await;
        let (mut stream, _) = soon(server.accept()).await.unwrap();
        assert!(read_request(&mut stream).await);
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&vec![b' '; 2 * MIB]).await.unwrap();
        until(|| memory.used() == count * 2 * MIB).await;
        halves.push((client, stream));
    }
    let client = ask().await;
    let (mut stream, _) = soon(server.accept()).await.unwrap();
    assert!(read_request(&mut stream).await);
    stream.write_all(head.as_bytes()).await.unwrap();
    // The proxy stops reading amid it.
    let _ = stream.write_all(&vec![b' '; 2 * MIB]).await;
    assert_eq!(answer(client).await, (502, NO_ROOM));
    assert_eq!((memory.used(), memory.refused()), (4 * MIB, 1));
    // The others get what is left of theirs, and nothing stays behind.
    for (client, mut stream) in halves {
        stream
            .write_all(&vec![b' '; MIB / 2 - ANSWER.len()])
            .await
            .unwrap();
        stream.write_all(ANSWER.as_bytes()).await.unwrap();
        assert_eq!(answer(client).await, (200, None));
    }
    until(|| memory.used() == 0).await;
}

fn log(bytes: usize) -> String {
    let text = "x".repeat(bytes);
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"{text}"}}}}"#
    )
}

fn result(id: u64, bytes: usize) -> String {
    let text = "x".repeat(bytes);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"text":"{text}"}}}}"#)
}

/// The next messages, each with its author and error code.
async fn read(reader: &mut dyn FrameReader) -> Vec<(Origin, Message)> {
    let mut frames = Vec::new();
    soon(reader.read(&mut frames)).await.unwrap();
    let messages = frames.into_iter().map(|frame| match frame.body {
        Body::Message(message) => (frame.origin, message),
        other => panic!("{other:?}"),
    });
    messages.collect()
}

on_both_runtimes!(
    a5_an_event_without_room_is_skipped_and_its_request_answered,
    real_time
);
async fn a5_an_event_without_room_is_skipped_and_its_request_answered() {
    let (run, server) = (
        proxy_run(256 * KIB),
        TcpListener::bind("127.0.0.1:0").await.unwrap(),
    );
    let connection = run.connect(Transport::Stdio, Transport::StreamableHttp);
    let options = RemoteLinkOptions {
        max: 16 * MIB,
        on_loss: SessionLoss::Reopen,
    };
    let mut link = HttpLink::link(remote(&server, None), connection, options);
    let request = Frame::message(StreamId::Only, Origin::Client, Message::parse(PING));
    link.writer.write(&mut vec![request.into()]).await.unwrap();
    let (mut stream, _) = soon(server.accept()).await.unwrap();
    assert!(read_request(&mut stream).await);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let answer = format!(
        r#"{{"result":{{"text":"{}"}},"jsonrpc":"2.0","id":1}}"#,
        "x".repeat(2 * MIB)
    );
    let events = [log(2 * MIB), log(1), answer, log(2)];
    let events = events.map(|event| format!("data: {event}\n\n")).concat();
    tokio::spawn(async move {
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(events.as_bytes()).await.unwrap();
        std::future::pending::<()>().await;
    });
    let mut came = Vec::new();
    while came.len() < 3 {
        came.extend(read(&mut *link.reader).await);
    }
    let (origins, codes): (Vec<_>, Vec<_>) = came
        .iter()
        .map(|(origin, message)| (*origin, message.error_code()))
        .unzip();
    assert_eq!(origins, [Origin::Server, Origin::Proxy, Origin::Server]);
    assert_eq!(codes, [None, NO_ROOM, None]);
    assert_eq!((run.memory().used(), run.memory().refused()), (0, 2));
}

#[tokio::test]
async fn a5_lines_count_until_they_end() {
    let memory = MemoryBudget::new(MIB);
    let line_reader = |side| {
        let (ours, theirs) = tokio::io::duplex(4 * MIB);
        (ours, LineReader::new(theirs, side, 16 * MIB, &memory))
    };
    let (mut slow, mut slow_reader) = line_reader(Side::Client);
    let (mut server, mut server_reader) = line_reader(Side::Server);
    let (mut client, mut client_reader) = line_reader(Side::Client);
    slow.write_all(&vec![b' '; 700 * KIB]).await.unwrap();
    let slow_one = tokio::spawn(async move { read(&mut slow_reader).await });
    until(|| memory.used() == 700 * KIB).await;
    // An answer is refused onward, a request back.
    let large = format!("{}\n", result(7, 400 * KIB));
    server.write_all(large.as_bytes()).await.unwrap();
    let came = read(&mut server_reader).await;
    assert_eq!(came[0].0, Origin::Proxy);
    assert_eq!(
        (came[0].1.error_code(), came[0].1.id().unwrap().token()),
        (NO_ROOM, &b"7"[..])
    );
    // Whose it is may stand at its end.
    let text = "x".repeat(400 * KIB);
    let large = format!(r#"{{"result":{{"text":"{text}"}},"jsonrpc":"2.0","id":8}}"#);
    server
        .write_all(format!("{large}\n{}\n", log(1)).as_bytes())
        .await
        .unwrap();
    let came = read(&mut server_reader).await;
    assert_eq!(
        (came[0].0, came[0].1.error_code()),
        (Origin::Proxy, NO_ROOM)
    );
    assert_eq!(came[0].1.id().unwrap().token(), b"8");
    let large =
        format!(r#"{{"method":"tools/call","params":{{"text":"{text}"}},"jsonrpc":"2.0","id":9}}"#);
    let lines = format!("{large}\n{PING}\n");
    client.write_all(lines.as_bytes()).await.unwrap();
    let (mut frames, mut refused) = (Vec::new(), Vec::new());
    while frames.is_empty() || refused.is_empty() {
        soon(client_reader.read(&mut frames)).await.unwrap();
        refused.extend(client_reader.refusals());
    }
    assert_eq!((frames.len(), refused.len()), (1, 1));
    assert_eq!(refused[0].error_code(), NO_ROOM);
    assert_eq!(refused[0].id().unwrap().token(), b"9");
    assert_eq!((memory.used(), memory.refused()), (700 * KIB, 3));
    slow.write_all(format!("{PING}\n").as_bytes())
        .await
        .unwrap();
    assert_eq!(slow_one.await.unwrap().len(), 1);
    assert_eq!(memory.used(), 0);
}

on_both_runtimes!(a5_small_messages_have_room_in_a_full_budget, real_time);
async fn a5_small_messages_have_room_in_a_full_budget() {
    let (run, server) = (
        proxy_run(256 * KIB),
        TcpListener::bind("127.0.0.1:0").await.unwrap(),
    );
    let memory = run.memory();
    let full = memory.hold(Bytes::from(vec![0; 256 * KIB])).unwrap();
    // Each of these is read in several pieces. First a line.
    let (mut peer, theirs) = tokio::io::duplex(64);
    let mut reader = LineReader::new(theirs, Side::Server, MIB, memory);
    let small = result(1, 60 * KIB);
    let line = format!("{small}\n");
    tokio::spawn(async move { peer.write_all(line.as_bytes()).await.unwrap() });
    assert_eq!(read(&mut reader).await[0].0, Origin::Server);
    // The bodies of a request and of its answer.
    let address = pass_through(&run, &server).await;
    let request = format!("{}{PING}", " ".repeat(60 * KIB));
    let client = post(address, request.len(), request.as_bytes()).await;
    let (mut stream, _) = soon(server.accept()).await.unwrap();
    assert!(read_request(&mut stream).await);
    let head = format!(
        "content-type: application/json\r\ncontent-length: {}",
        small.len()
    );
    let text = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{small}");
    stream.write_all(text.as_bytes()).await.unwrap();
    assert_eq!(answer(client).await, (200, None));
    // An event.
    let connection = run.connect(Transport::Stdio, Transport::StreamableHttp);
    let options = RemoteLinkOptions {
        max: 16 * MIB,
        on_loss: SessionLoss::Reopen,
    };
    let mut link = HttpLink::link(remote(&server, None), connection, options);
    let request = Frame::message(StreamId::Only, Origin::Client, Message::parse(PING));
    link.writer.write(&mut vec![request.into()]).await.unwrap();
    let (mut stream, _) = soon(server.accept()).await.unwrap();
    assert!(read_request(&mut stream).await);
    let head = "content-type: text/event-stream\r\nconnection: close";
    let text = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\ndata: {small}\n\n");
    stream.write_all(text.as_bytes()).await.unwrap();
    assert_eq!(read(&mut *link.reader).await[0].0, Origin::Server);
    assert_eq!((memory.used(), memory.refused()), (full.len(), 0));
}

/// An answer whose id is at its end, as SDKs for TypeScript write it.
fn result_before_id(id: u64, bytes: usize) -> String {
    let text = "x".repeat(bytes);
    format!(r#"{{"result":{{"text":"{text}"}},"jsonrpc":"2.0","id":{id}}}"#)
}

/// The server's side of an event stream that begins with this.
async fn event_stream(server: &TcpListener, first: &str) -> TcpStream {
    let (mut stream, _) = soon(server.accept()).await.unwrap();
    assert!(read_request(&mut stream).await);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close";
    let text = format!("{head}\r\n\r\n{first}");
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

on_both_runtimes!(
    a5_an_answer_without_room_on_an_sse_servers_stream_is_replaced,
    real_time
);
async fn a5_an_answer_without_room_on_an_sse_servers_stream_is_replaced() {
    let (run, server) = (
        proxy_run(256 * KIB),
        TcpListener::bind("127.0.0.1:0").await.unwrap(),
    );
    let connection = run.connect(Transport::Stdio, Transport::Sse);
    let options = RemoteLinkOptions {
        max: 16 * MIB,
        on_loss: SessionLoss::Reopen,
    };
    let linking = tokio::spawn(sse_link(remote(&server, None), connection, options));
    let endpoint = "event: endpoint\ndata: /message\n\n";
    let mut stream = event_stream(&server, endpoint).await;
    let mut link = linking.await.unwrap().unwrap();
    let request = Frame::message(StreamId::Only, Origin::Client, Message::parse(PING));
    link.writer.write(&mut vec![request.into()]).await.unwrap();
    let (mut post, _) = soon(server.accept()).await.unwrap();
    assert!(read_request(&mut post).await);
    let accepted = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
    post.write_all(accepted).await.unwrap();
    let events = [log(2 * MIB), result_before_id(1, 2 * MIB), log(1)];
    let events = events.map(|event| format!("data: {event}\n\n")).concat();
    let writing = tokio::spawn(async move {
        stream.write_all(events.as_bytes()).await.unwrap();
        stream
    });
    let mut came = Vec::new();
    while came.len() < 2 {
        came.extend(read(&mut *link.reader).await);
    }
    let answer = &came[0];
    assert_eq!((answer.0, answer.1.error_code()), (Origin::Proxy, NO_ROOM));
    assert_eq!(answer.1.id().unwrap().token(), b"1");
    assert_eq!(came[1].0, Origin::Server);
    assert_eq!((run.memory().used(), run.memory().refused()), (0, 2));
    drop(writing.await);
}

on_both_runtimes!(
    a5_an_event_without_room_ends_no_stream_that_passes_through,
    real_time
);
async fn a5_an_event_without_room_ends_no_stream_that_passes_through() {
    let (run, server) = (
        proxy_run(256 * KIB),
        TcpListener::bind("127.0.0.1:0").await.unwrap(),
    );
    let address = pass_through(&run, &server).await;
    let mut client = post(address, PING.len(), PING.as_bytes()).await;
    let events = [log(2 * MIB), result_before_id(1, 2 * MIB), log(1)];
    let events = events.map(|event| format!("data: {event}\n\n")).concat();
    let stream = event_stream(&server, &events).await;
    drop(stream);
    let mut text = String::new();
    soon(client.read_to_string(&mut text)).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let came = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let came: Vec<Message> = came.map(|data| Message::parse(data.to_owned())).collect();
    let codes: Vec<_> = came.iter().map(Message::error_code).collect();
    assert_eq!(codes, [NO_ROOM, None]);
    assert_eq!(came[0].id().unwrap().token(), b"1");
    assert_eq!((run.memory().used(), run.memory().refused()), (0, 2));
}
