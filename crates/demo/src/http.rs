//! The server over streamable HTTP: one URL, `/mcp`, for both eras.
//!
//! rmcp answers the requests; here are the socket, the path, and the rules for who may ask. Host and Origin
//! must name this machine, so that a web page cannot reach the server by pointing its own name at it.

use std::{convert::Infallible, pin::Pin, sync::Arc};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, combinators::BoxBody};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::{BoxedFuture, DemoError, MAX_MESSAGE_BYTES, server::DemoServer};

type RmcpEndpoint = StreamableHttpService<DemoServer, LocalSessionManager>;

/// Any port of this machine; the port is the listener's business, and a proxy in front has another.
pub const LOCAL_ORIGINS: [&str; 6] = [
    "http://localhost:*",
    "http://127.0.0.1:*",
    "http://[::1]:*",
    "https://localhost:*",
    "https://127.0.0.1:*",
    "https://[::1]:*",
];

/// Serves HTTP clients at `/mcp` until `shutdown` completes; open sessions end with it.
pub fn serve_http<'a>(
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'a,
) -> impl Future<Output = Result<(), DemoError>> + Send + 'a {
    serve_boxed(listener, Box::pin(shutdown))
}

type Shutdown<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

fn serve_boxed(listener: TcpListener, shutdown: Shutdown<'_>) -> BoxedFuture<'_> {
    Box::pin(serve_until(listener, shutdown))
}

async fn serve_until(listener: TcpListener, mut shutdown: Shutdown<'_>) -> Result<(), DemoError> {
    let stop = CancellationToken::new();
    let endpoint = endpoint(stop.clone());
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => {
                let (socket, _) = accepted.map_err(DemoError::Listen)?;
                connections.spawn(serve_connection(endpoint.clone(), socket));
            }
            Some(_) = connections.join_next() => {}
        }
    }
    stop.cancel();
    connections.shutdown().await;
    Ok(())
}

fn endpoint(stop: CancellationToken) -> RmcpEndpoint {
    let first = DemoServer::new(stop.clone());
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(LOCAL_ORIGINS)
        .with_max_request_body_bytes(MAX_MESSAGE_BYTES)
        .with_cancellation_token(stop.clone());
    let sessions = Arc::new(LocalSessionManager::default());
    let server = move || Ok(first.with_session(stop.clone()));
    StreamableHttpService::new(server, sessions, config)
}

/// A connection that fails concerns nobody but its client, so the error ends here.
async fn serve_connection(endpoint: RmcpEndpoint, socket: TcpStream) {
    // Without this, small answers wait some 40 ms for the client's delayed acknowledgement.
    let _ = socket.set_nodelay(true);
    let service = service_fn(move |request| answer(endpoint.clone(), request));
    let builder = Builder::new(TokioExecutor::new());
    let _ = builder
        .serve_connection(TokioIo::new(socket), service)
        .await;
}

async fn answer(
    endpoint: RmcpEndpoint,
    request: Request<Incoming>,
) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
    if matches!(request.uri().path(), "/mcp" | "/mcp/") {
        return Ok(endpoint.handle(request).await);
    }
    let mut response = Response::new(Empty::new().boxed());
    *response.status_mut() = StatusCode::NOT_FOUND;
    Ok(response)
}
