//! The server over HTTP: it answers, refuses strangers, and shuts down.

use mcp_proxy_demo::serve_http;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

#[tokio::test]
async fn it_serves_this_machine_at_one_path_until_it_is_stopped() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async { stopped.await.unwrap_or_default() };
    let running = tokio::spawn(serve_http(listener, shutdown));
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#;
    let cases = [
        ("/mcp", address.to_string(), "200"),
        ("/", address.to_string(), "404"),
        ("/mcp", "evil.example".to_owned(), "403"),
    ];
    for (path, host, status) in cases {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "POST {path} HTTP/1.1\r\nConnection: close\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        socket.read_to_string(&mut response).await.unwrap();
        assert_eq!(response.split(' ').nth(1), Some(status), "{response}");
    }
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}
