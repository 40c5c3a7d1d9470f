//! Our WebSocket behind a listener, with a library of others as the client.

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use http::Request;
use hyper::body::Incoming;
use mcp_proxy_core::{BoxFuture, Link, MemoryBudget};
use mcp_proxy_transport::http::{Handler, HttpResponse, RequestSource};
use mcp_proxy_transport::websocket::{SocketEnd, SocketOptions, WebSocketHandle, accept_websocket};
use mcp_proxy_wire::Body;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame};
use tokio_tungstenite::tungstenite::protocol::{Message, WebSocketConfig};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::server::{Choices, Server, certificate, soon};

/// Larger than any buffer on the way.
const LARGE: usize = 16 << 20;

/// Sends every message back, and tells how the socket ended. A message `close` makes it close.
pub struct SocketEcho(pub mpsc::UnboundedSender<SocketEnd>);

impl Handler for SocketEcho {
    fn handle(
        self: Arc<Self>,
        _: RequestSource,
        mut request: Request<Incoming>,
    ) -> BoxFuture<'static, HttpResponse> {
        let options = SocketOptions {
            max_first_message: LARGE,
            ..SocketOptions::default()
        };
        let memory = MemoryBudget::default();
        let answer = accept_websocket(
            &mut request,
            options,
            memory,
            move |link, handle| async move {
                let _ = self.0.send(echo(link, handle).await);
            },
        );
        Box::pin(std::future::ready(answer))
    }
}

async fn echo(mut link: Link, handle: Arc<WebSocketHandle>) -> SocketEnd {
    let mut frames = Vec::new();
    while link.reader.read(&mut frames).await.is_ok() {
        for frame in frames.drain(..) {
            if matches!(&frame.body, Body::Message(message) if message.raw() == "close") {
                handle.set_close(4000, "as you wish");
                link.writer.close().await;
            } else if link.writer.write(&mut vec![frame.into()]).await.is_err() {
                break;
            }
        }
    }
    // The peer is told before the connection ends.
    link.reader.wind_up().await;
    handle.end().unwrap().clone()
}

async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.address).await.unwrap()
}

async fn websocket<S: AsyncRead + AsyncWrite + Unpin>(stream: S) -> WebSocketStream<S> {
    let request = "ws://localhost/echo".into_client_request().unwrap();
    let mut config = WebSocketConfig::default();
    config.max_frame_size = None;
    let opened = client_async_with_config(request, stream, Some(config));
    soon(opened).await.unwrap().0
}

/// A text with characters of all lengths, so that pieces cut some.
fn large_text() -> String {
    let mut text = "aä€😀".repeat(LARGE / 10);
    text.truncate(LARGE);
    text
}

async fn converse<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut WebSocketStream<S>) {
    let large = large_text();
    for message in ["hi", "", &"m".repeat(64 * 1024), &large, "after"] {
        let (mut sink, mut stream) = (&mut *socket).split();
        let sent = sink.send(Message::text(message));
        let (sent, echoed) = soon(async { tokio::join!(sent, stream.next()) }).await;
        sent.unwrap();
        let echoed = echoed.unwrap().unwrap();
        assert!(
            echoed == Message::text(message),
            "{} bytes came back",
            echoed.len()
        );
    }
    soon(socket.send(Message::Ping("there?".into())))
        .await
        .unwrap();
    let pong = soon(socket.next()).await.unwrap().unwrap();
    assert_eq!(pong, Message::Pong("there?".into()));
    soon(socket.send(Message::Pong("alive".into())))
        .await
        .unwrap();
}

on_both_runtimes!(messages_of_all_sizes_pass_through_our_websocket, real_time);
async fn messages_of_all_sizes_pass_through_our_websocket() {
    let mut server = Server::start(Choices::default()).await;
    let mut socket = websocket(connect(&server).await).await;
    converse(&mut socket).await;
    soon(socket.close(None)).await.unwrap();
    while let Some(Ok(_)) = soon(socket.next()).await {}
    let reason = String::new();
    let end = SocketEnd::ClosedByPeer { code: None, reason };
    assert_eq!(server.socket_end().await, end);
}

on_both_runtimes!(
    messages_of_all_sizes_pass_through_our_websocket_under_tls,
    real_time
);
async fn messages_of_all_sizes_pass_through_our_websocket_under_tls() {
    let folder = tempfile::tempdir().unwrap();
    let (own, client) = certificate(folder.path());
    let mut server = Server::start(Choices {
        tls: Some(own),
        ..Choices::default()
    })
    .await;
    let connector = tokio_rustls::TlsConnector::from(client);
    let tcp = connect(&server).await;
    let name = "localhost".try_into().unwrap();
    let secure = Box::new(soon(connector.connect(name, tcp)).await.unwrap());
    let mut socket = websocket(secure).await;
    converse(&mut socket).await;
    soon(socket.send(Message::text("close"))).await.unwrap();
    let close = soon(socket.next()).await.unwrap().unwrap();
    let expected = CloseFrame {
        code: 4000.into(),
        reason: "as you wish".into(),
    };
    assert_eq!(close, Message::Close(Some(expected)));
    while let Some(Ok(_)) = soon(socket.next()).await {}
    let end = SocketEnd::ClosedByPeer {
        code: Some(4000),
        reason: "as you wish".to_owned(),
    };
    assert_eq!(server.socket_end().await, end);
}

on_both_runtimes!(
    clients_that_do_not_finish_their_handshake_keep_nobody_out,
    real_time
);
async fn clients_that_do_not_finish_their_handshake_keep_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let (own, client) = certificate(folder.path());
    let server = Server::start(Choices {
        tls: Some(own),
        ..Choices::default()
    })
    .await;
    let mut unfinished = Vec::new();
    for _ in 0..150 {
        let mut tcp = connect(&server).await;
        // The beginning of a record that never comes.
        tcp.write_all(&[22, 3, 1, 2, 0]).await.unwrap();
        unfinished.push(tcp);
    }
    let connector = tokio_rustls::TlsConnector::from(client);
    let tcp = connect(&server).await;
    let name = "localhost".try_into().unwrap();
    soon(connector.connect(name, tcp)).await.unwrap();
    drop(unfinished);
}

on_both_runtimes!(fragments_like_those_of_chromium_are_joined, real_time);
async fn fragments_like_those_of_chromium_are_joined() {
    let server = Server::start(Choices::default()).await;
    let mut socket = websocket(connect(&server).await).await;
    let large = large_text();
    let mut parts = large.as_bytes().chunks(131_000).enumerate().peekable();
    let (mut sink, mut stream) = (&mut socket).split();
    let sending = async {
        while let Some((place, part)) = parts.next() {
            let opcode = match place {
                0 => OpCode::Data(Data::Text),
                _ => OpCode::Data(Data::Continue),
            };
            let frame = Frame::message(part.to_vec(), opcode, parts.peek().is_none());
            sink.send(Message::Frame(frame)).await.unwrap();
        }
    };
    let ((), echoed) = soon(async { tokio::join!(sending, stream.next()) }).await;
    assert!(echoed.unwrap().unwrap() == Message::text(large.as_str()));
}

on_both_runtimes!(
    a_message_that_is_too_long_is_told_so_while_it_is_sent,
    real_time
);
async fn a_message_that_is_too_long_is_told_so_while_it_is_sent() {
    let mut server = Server::start(Choices::default()).await;
    let mut socket = websocket(connect(&server).await).await;
    let close = {
        let (mut sink, mut stream) = (&mut socket).split();
        let sending = sink.send(Message::binary(vec![0; LARGE + 1]));
        soon(async { tokio::join!(sending, stream.next()) }).await.1
    };
    let Some(Ok(Message::Close(Some(close)))) = close else {
        panic!("{close:?}");
    };
    assert_eq!(u16::from(close.code), 1009);
    drop(socket);
    let end = server.socket_end().await;
    let SocketEnd::Violation(violation) = end else {
        panic!("{end:?}");
    };
    assert_eq!(violation.close_code(), 1009);
}

on_both_runtimes!(a_client_that_disappears_is_broken_off, real_time);
async fn a_client_that_disappears_is_broken_off() {
    let mut server = Server::start(Choices::default()).await;
    let socket = websocket(connect(&server).await).await;
    drop(socket);
    let end = server.socket_end().await;
    assert!(matches!(end, SocketEnd::Broken(_)), "{end:?}");
}

on_both_runtimes!(
    a_wrong_handshake_is_refused_and_the_connection_stays,
    real_time
);
async fn a_wrong_handshake_is_refused_and_the_connection_stays() {
    let server = Server::start(Choices::default()).await;
    let mut stream = connect(&server).await;
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for (headers, status) in [
        (String::new(), 426),
        (upgrade.to_owned(), 426),
        (format!("{upgrade}Sec-WebSocket-Version: 13\r\n"), 400),
        (format!("{upgrade}{key}Sec-WebSocket-Version: 13\r\n"), 101),
    ] {
        let request = format!("GET /echo HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let head = read_answer(&mut stream).await;
        let expected = format!("http/1.1 {status} ");
        assert!(head.starts_with(&expected), "{head}");
        let version = head.contains("sec-websocket-version: 13");
        assert_eq!(version, status == 426, "{head}");
        assert!(!head.contains("sec-websocket-extensions"));
    }
}

/// The head of an answer, in small letters. Its body is read too.
async fn read_answer(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        read.push(soon(stream.read_u8()).await.unwrap());
    }
    let head = String::from_utf8(read).unwrap().to_lowercase();
    let length = head.split_once("content-length: ").map_or("0", |it| it.1);
    let length = length.lines().next().unwrap().parse().unwrap();
    let mut body = vec![0; length];
    soon(stream.read_exact(&mut body)).await.unwrap();
    head
}
