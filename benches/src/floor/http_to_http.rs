//! HTTP to HTTP: one server connection for each client connection, bodies streamed, nothing read.

use std::net::SocketAddr;

use anyhow::Result;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::spawn_local;

pub async fn serve(server: SocketAddr) -> Result<()> {
    let listener = super::listen().await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        // A connection that breaks concerns its two peers only.
        spawn_local(async move { carry(stream, server).await.ok() });
    }
}

async fn carry(client: TcpStream, server: SocketAddr) -> Result<()> {
    let server = Mutex::new(connect(server).await?);
    let service = service_fn(|request| async {
        let mut server = server.lock().await;
        server.ready().await?;
        server.send_request(request).await
    });
    http1::Builder::new()
        .serve_connection(TokioIo::new(client), service)
        .await?;
    Ok(())
}

async fn connect(address: SocketAddr) -> Result<SendRequest<Incoming>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    spawn_local(async move { connection.await.ok() });
    Ok(sender)
}
