//! Connections that bring no request: they end in time, make room for others, and never keep the listener from stopping.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_transport::http::ListenerLimits;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::server::{Choices, Server, certificate, soon};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn limits(connections: usize, deadline: Duration) -> ListenerLimits {
    ListenerLimits {
        connections,
        header_deadline: deadline,
        ..ListenerLimits::default()
    }
}

async fn over_tls(
    server: &Server,
    client: &Arc<rustls::ClientConfig>,
    alpn: &[u8],
) -> TlsStream<TcpStream> {
    let mut client = rustls::ClientConfig::clone(client);
    client.alpn_protocols = vec![alpn.to_vec()];
    let stream = TcpStream::connect(server.address).await.unwrap();
    let name = "localhost".try_into().unwrap();
    soon(TlsConnector::from(Arc::new(client)).connect(name, stream))
        .await
        .unwrap()
}

/// Reads until the listener closes the connection.
async fn closed(stream: &mut (impl AsyncRead + Unpin)) {
    let mut rest = Vec::new();
    // A reset is an end too.
    let _ = soon(stream.read_to_end(&mut rest)).await;
}

async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    let request = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi";
    stream.write_all(request).await.unwrap();
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\nhi") {
        assert!(
            soon(stream.read_buf(&mut read)).await.unwrap() > 0,
            "closed"
        );
    }
}

/// Sends the head of a request and waits until its handler wants the body.
async fn begin(stream: &mut TcpStream) {
    let head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        assert!(
            soon(stream.read_buf(&mut read)).await.unwrap() > 0,
            "closed"
        );
    }
}

on_both_runtimes!(silent_connections_end_at_the_deadline, real_time);
async fn silent_connections_end_at_the_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let (tls, client) = certificate(folder.path());
    let limits = limits(64, Duration::from_millis(200));
    let beginnings: [&[u8]; 4] = [b"", b"P", PREFACE, b"POST /mcp HTTP/1.1\r\nHost: local"];
    let server = Server::start(Choices {
        limits,
        ..Choices::default()
    });
    let server = server.await;
    for said in beginnings {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(said).await.unwrap();
        closed(&mut stream).await;
    }
    let server = Server::start(Choices {
        limits,
        tls: Some(tls),
        ..Choices::default()
    });
    let server = server.await;
    for alpn in [&b"http/1.1"[..], b"h2"] {
        for said in beginnings {
            let mut stream = over_tls(&server, &client, alpn).await;
            stream.write_all(said).await.unwrap();
            stream.flush().await.unwrap();
            closed(&mut stream).await;
        }
    }
}

on_both_runtimes!(a_connection_that_has_asked_outlives_the_deadline, real_time);
async fn a_connection_that_has_asked_outlives_the_deadline() {
    let server = Server::start(Choices {
        limits: limits(64, Duration::from_millis(50)),
        ..Choices::default()
    });
    let server = server.await;
    let mut kept = TcpStream::connect(server.address).await.unwrap();
    ask(&mut kept).await;
    // Two others come and go in the meantime.
    for _ in 0..2 {
        closed(&mut TcpStream::connect(server.address).await.unwrap()).await;
    }
    ask(&mut kept).await;
}

on_both_runtimes!(
    a_further_head_that_is_not_completed_ends_its_connection,
    real_time
);
async fn a_further_head_that_is_not_completed_ends_its_connection() {
    let server = Server::start(Choices {
        limits: limits(64, Duration::from_millis(200)),
        ..Choices::default()
    });
    let server = server.await;
    let (mut slow, mut idle) = (
        TcpStream::connect(server.address).await.unwrap(),
        TcpStream::connect(server.address).await.unwrap(),
    );
    ask(&mut slow).await;
    ask(&mut idle).await;
    slow.write_all(b"POST /mcp HTTP/1.1\r\nHost: local")
        .await
        .unwrap();
    closed(&mut slow).await;
    // One that has begun nothing stays, and its next request begins anew.
    ask(&mut idle).await;
    ask(&mut idle).await;
}

on_both_runtimes!(the_longest_idle_connection_makes_room, real_time);
async fn the_longest_idle_connection_makes_room() {
    let server = Server::start(Choices {
        limits: limits(2, Duration::from_secs(3600)),
        ..Choices::default()
    });
    let server = server.await;
    let mut first = TcpStream::connect(server.address).await.unwrap();
    ask(&mut first).await;
    let mut second = TcpStream::connect(server.address).await.unwrap();
    ask(&mut second).await;
    ask(&mut first).await;
    let mut third = TcpStream::connect(server.address).await.unwrap();
    ask(&mut third).await;
    closed(&mut second).await;
    ask(&mut first).await;
    // Silent ones make room for each other, and all of them for one that asks.
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(server.address).await.unwrap());
    }
    let mut last = TcpStream::connect(server.address).await.unwrap();
    ask(&mut last).await;
    server.stop().await;
}

on_both_runtimes!(a_connection_with_an_open_request_keeps_its_place, real_time);
async fn a_connection_with_an_open_request_keeps_its_place() {
    let server = Server::start(Choices {
        limits: limits(1, Duration::from_secs(3600)),
        ..Choices::default()
    });
    let server = server.await;
    let mut busy = TcpStream::connect(server.address).await.unwrap();
    begin(&mut busy).await;
    let mut waiting = TcpStream::connect(server.address).await.unwrap();
    let asking = tokio::spawn(async move {
        ask(&mut waiting).await;
        waiting
    });
    busy.write_all(b"hi").await.unwrap();
    let mut read = Vec::new();
    soon(busy.read_to_end(&mut read)).await.unwrap();
    assert!(read.ends_with(b"hi"), "it was answered before it made room");
    drop(soon(asking).await.unwrap());
}

on_both_runtimes!(a_full_listener_stops, real_time);
async fn a_full_listener_stops() {
    let server = Server::start(Choices {
        limits: limits(1, Duration::from_secs(3600)),
        ..Choices::default()
    });
    let server = server.await;
    let mut busy = TcpStream::connect(server.address).await.unwrap();
    begin(&mut busy).await;
    let _waiting = TcpStream::connect(server.address).await.unwrap();
    server.stop().await;
}
