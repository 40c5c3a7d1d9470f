//! A WebSocket behind an upgrade, next to ordinary requests on the same listener.

use futures_util::{SinkExt, StreamExt};
use mcp_proxy_transport::http::ListenerLimits;
use mcp_proxy_transport::http::{Admission, Token};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::server::{Choices, Event, RequestFacts, Server, certificate, soon};

/// Larger than any buffer on the way.
const LARGE: usize = 8 << 20;

fn upgraded(path: &str) -> Event {
    Event::Upgraded(RequestFacts {
        token: None,
        path: path.to_owned(),
    })
}

async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.address).await.unwrap()
}

/// Opens a WebSocket with more headers. An answer other than 101 is given back as its status.
async fn websocket<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    path: &str,
    headers: &[(&'static str, &str)],
) -> Result<WebSocketStream<S>, u16> {
    let url = format!("ws://localhost{path}");
    let mut request = url.into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    match soon(client_async(request, stream)).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(answer)) => Err(answer.status().as_u16()),
        Err(other) => panic!("{other}"),
    }
}

/// Sends a request and reads the head of its answer and `length` bytes of body.
async fn ask<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    headers: &str,
    body: &str,
) -> (String, String) {
    let length = body.len();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let head = head(stream).await;
    let mut answered = vec![0; length];
    soon(stream.read_exact(&mut answered)).await.unwrap();
    (head, String::from_utf8(answered).unwrap())
}

/// Reads the head of an answer and nothing behind it.
async fn head<S: AsyncRead + Unpin>(stream: &mut S) -> String {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        read.push(soon(stream.read_u8()).await.unwrap());
    }
    String::from_utf8(read).unwrap()
}

/// Messages of all sizes come back, a ping is answered, and both ends close properly.
async fn converse<S: AsyncRead + AsyncWrite + Unpin>(mut socket: WebSocketStream<S>) {
    let large: Vec<u8> = (0..LARGE).map(|index| (index % 251) as u8).collect();
    for message in [
        Message::text("hi"),
        Message::text(""),
        Message::binary(large),
        Message::text("after"),
    ] {
        soon(socket.send(message.clone())).await.unwrap();
        let echoed = soon(socket.next()).await.unwrap().unwrap();
        assert!(echoed == message, "{} bytes came back", echoed.len());
    }
    let ping = Message::Ping("are you there".into());
    soon(socket.send(ping)).await.unwrap();
    let pong = soon(socket.next()).await.unwrap().unwrap();
    assert_eq!(pong, Message::Pong("are you there".into()));
    soon(socket.close(None)).await.unwrap();
    let close = soon(socket.next()).await.unwrap().unwrap();
    assert!(matches!(close, Message::Close(_)), "{close:?}");
    assert!(soon(socket.next()).await.is_none());
}

on_both_runtimes!(
    a_websocket_and_ordinary_requests_share_a_listener,
    real_time
);
async fn a_websocket_and_ordinary_requests_share_a_listener() {
    let mut server = Server::start(Choices::default()).await;
    let mut ordinary = connect(&server).await;
    assert_eq!(ask(&mut ordinary, "", "one").await.1, "one");
    assert_eq!(server.event().await, Event::Answered);
    let socket = websocket(connect(&server).await, "/ws", &[]).await.unwrap();
    assert_eq!(server.event().await, upgraded("/ws"));
    assert_eq!(ask(&mut ordinary, "", "two").await.1, "two");
    assert_eq!(server.event().await, Event::Answered);
    converse(socket).await;
    assert_eq!(server.event().await, Event::Closed);
}

on_both_runtimes!(
    a_websocket_and_ordinary_requests_share_a_listener_under_tls,
    real_time
);
async fn a_websocket_and_ordinary_requests_share_a_listener_under_tls() {
    let folder = tempfile::tempdir().unwrap();
    let (own, client) = certificate(folder.path());
    let mut server = Server::start(Choices {
        tls: Some(own),
        ..Choices::default()
    })
    .await;
    let connector = tokio_rustls::TlsConnector::from(client);
    let name = || "localhost".try_into().unwrap();
    let tcp = connect(&server).await;
    let mut ordinary = soon(connector.connect(name(), tcp)).await.unwrap();
    assert_eq!(ask(&mut ordinary, "", "one").await.1, "one");
    assert_eq!(server.event().await, Event::Answered);
    let tcp = connect(&server).await;
    let secure = Box::new(soon(connector.connect(name(), tcp)).await.unwrap());
    let socket = websocket(secure, "/ws", &[]).await.unwrap();
    assert_eq!(server.event().await, upgraded("/ws"));
    converse(socket).await;
    assert_eq!(server.event().await, Event::Closed);
}

on_both_runtimes!(admission_comes_before_an_upgrade, real_time);
async fn admission_comes_before_an_upgrade() {
    let mut server = Server::start(Choices {
        admission: Admission {
            token: Token::new("s3cret"),
            hosts: vec!["localhost".to_owned()],
            ..Admission::default()
        },
        ..Choices::default()
    })
    .await;
    let token = ("authorization", "Bearer s3cret");
    for (path, headers, expected) in [
        ("/ws", &[token, ("origin", "https://evil.example")][..], 403),
        ("/ws", &[token, ("host", "evil.example")], 403),
        ("/ws", &[("authorization", "Bearer other")], 401),
        ("/ws", &[], 401),
        ("/other", &[token], 404),
    ] {
        let refused = websocket(connect(&server).await, path, headers).await;
        assert_eq!(refused.err(), Some(expected), "{path} {headers:?}");
    }
    assert!(server.is_quiet());
    let headers = [token, ("origin", "http://localhost:6274")];
    let accepted = websocket(connect(&server).await, "/ws", &headers).await;
    let facts = RequestFacts {
        token: Some("s3cret".to_owned()),
        path: "/ws".to_owned(),
    };
    assert_eq!(server.event().await, Event::Upgraded(facts));
    drop(accepted);
    assert_eq!(server.event().await, Event::Gone);
}

on_both_runtimes!(a_client_that_breaks_off_is_noticed, real_time);
async fn a_client_that_breaks_off_is_noticed() {
    let mut server = Server::start(Choices::default()).await;
    let mut socket = websocket(connect(&server).await, "/ws", &[]).await.unwrap();
    assert_eq!(server.event().await, upgraded("/ws"));
    soon(socket.send(Message::text("hi"))).await.unwrap();
    soon(socket.next()).await.unwrap().unwrap();
    drop(socket);
    assert_eq!(server.event().await, Event::Gone);
}

on_both_runtimes!(
    an_upgraded_stream_passes_bytes_untouched_in_both_directions_after_a_fin,
    real_time
);
/// Before an upgrade, a FIN behind an answer means that the client has left. After it, the protocol decides.
async fn an_upgraded_stream_passes_bytes_untouched_in_both_directions_after_a_fin() {
    let mut server = Server::start(Choices::default()).await;
    let mut stream = connect(&server).await;
    // The first bytes do not wait for the 101: what was read with the head is not lost.
    let request = "GET /raw/below HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: raw\r\n\r\nearly";
    stream.write_all(request.as_bytes()).await.unwrap();
    let answered = head(&mut stream).await;
    assert!(answered.starts_with("HTTP/1.1 101 "), "{answered}");
    assert_eq!(server.event().await, upgraded("/raw/below"));
    let (mut reading, mut writing) = stream.split();
    let sent: Vec<u8> = (0..LARGE).map(|index| (index % 253) as u8).collect();
    soon(writing.write_all(&sent)).await.unwrap();
    writing.shutdown().await.unwrap();
    let mut back = Vec::new();
    soon(reading.read_to_end(&mut back)).await.unwrap();
    assert!(back.strip_prefix(b"early").is_some_and(|rest| rest == sent));
}

on_both_runtimes!(
    a_request_whose_upgrade_is_not_granted_is_answered_like_any_other,
    real_time
);
async fn a_request_whose_upgrade_is_not_granted_is_answered_like_any_other() {
    let mut server = Server::start(Choices::default()).await;
    let mut stream = connect(&server).await;
    // As Java's HTTP client begins.
    let headers = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEA\r\n";
    for headers in [headers, "", headers] {
        let (head, body) = ask(&mut stream, headers, "again").await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert_eq!(body, "again");
        assert_eq!(server.event().await, Event::Answered);
    }
    // And the path of an upgrade says so to a request that asks for none.
    let request = "GET /ws HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(head(&mut stream).await.starts_with("HTTP/1.1 426 "));
}

fn one_connection() -> Choices {
    Choices {
        limits: ListenerLimits {
            connections: 1,
            ..ListenerLimits::default()
        },
        ..Choices::default()
    }
}

on_both_runtimes!(
    an_upgraded_connection_counts_as_one_of_those_allowed,
    real_time
);
async fn an_upgraded_connection_counts_as_one_of_those_allowed() {
    let mut server = Server::start(one_connection()).await;
    let mut socket = websocket(connect(&server).await, "/ws", &[]).await.unwrap();
    assert_eq!(server.event().await, upgraded("/ws"));
    let mut second = connect(&server).await;
    let asked = tokio::spawn(async move { ask(&mut second, "", "second").await.1 });
    // The listener has the time of some messages to accept it, and must not.
    for _ in 0..50 {
        soon(socket.send(Message::text("hi"))).await.unwrap();
        soon(socket.next()).await.unwrap().unwrap();
    }
    assert!(server.is_quiet());
    drop(socket);
    assert_eq!(server.event().await, Event::Gone);
    assert_eq!(server.event().await, Event::Answered);
    assert_eq!(asked.await.unwrap(), "second");
}

on_both_runtimes!(upgraded_connections_end_when_the_listener_stops, real_time);
async fn upgraded_connections_end_when_the_listener_stops() {
    let mut server = Server::start(one_connection()).await;
    let mut socket = websocket(connect(&server).await, "/ws", &[]).await.unwrap();
    assert_eq!(server.event().await, upgraded("/ws"));
    // All places are taken, and it still hears that it should stop.
    server.stop().await;
    let end = soon(socket.next()).await;
    assert!(!matches!(end, Some(Ok(_))), "{end:?}");
}
