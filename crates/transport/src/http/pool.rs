//! Connections to one plain-HTTP server, reused.
//!
//! Own code, because time matters here: a request is written and its answer read by the task that asks, without a
//! task, a channel or a lock between (see [`super::h1`]). One origin, HTTP/1.1 and a list are all that is needed;
//! https goes the general way of hyper.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use http::{HeaderValue, Response, Uri, request};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::h1::{self, H1Error, H1ResponseHead};
use super::incoming_body::IncomingBody;
use super::outbound_proxy::OutboundProxy;
use super::outgoing_body::{BodyError, OutgoingBody};
use super::read_buffers::ReadBuffers;
use super::server_socket::{RequestWriter, ServerSocket};

const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// A connection that lay idle for longer is not trusted: servers close them about then.
const IDLE_MAX: Duration = Duration::from_secs(30);
const IDLE_CONNECTIONS: usize = 256;

/// The connections to one server.
pub struct ConnectionPool {
    /// What is connected to: the server, or the proxy on the way to it.
    host: String,
    port: u16,
    authority: HeaderValue,
    proxy: Option<OutboundProxy>,
    stall: Duration,
    /// The longest idle first.
    idle: Mutex<VecDeque<(ServerSocket, Instant)>>,
    buffers: Arc<ReadBuffers>,
    /// A task looks after them.
    swept: AtomicBool,
}

/// Marks an answer to a request that was sent twice: the server had closed the first connection without reading it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resent;

/// Why a request got no answer, or only a part of one.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// No connection.
    #[error("cannot connect ({0})")]
    Connect(std::io::Error),
    /// The connection broke.
    #[error("connection failed ({0})")]
    Broken(#[from] std::io::Error),
    /// The server closed the connection where an answer, or the rest of one, was due.
    #[error("connection closed {0}")]
    Closed(&'static str),
    /// What came is not HTTP.
    #[error("{0}")]
    Protocol(#[from] H1Error),
    /// The request's own body broke off.
    #[error("the request's {0}")]
    Request(Box<BodyError>),
}

impl ConnectionPool {
    /// For the server of `url`, which is plain HTTP.
    pub fn new(
        url: &Uri,
        stall: Duration,
        proxy: Option<OutboundProxy>,
    ) -> Option<Arc<ConnectionPool>> {
        let (host, port) = match &proxy {
            Some(proxy) => (proxy.host(), proxy.port()),
            None => (
                url.host()?.trim_matches(['[', ']']),
                url.port_u16().unwrap_or(80),
            ),
        };
        let authority = HeaderValue::from_str(url.authority()?.as_str()).ok()?;
        Some(Arc::new(ConnectionPool {
            host: host.to_owned(),
            port,
            proxy,
            authority,
            stall,
            idle: Mutex::default(),
            buffers: Arc::default(),
            swept: AtomicBool::new(false),
        }))
    }

    /// Sends a request on an idle connection, or on a new one. A server may close an idle connection at any moment, so a
    /// request that it did not read there is sent once more.
    pub async fn send(
        self: &Arc<Self>,
        parts: &request::Parts,
        payload: OutgoingBody,
    ) -> Result<Response<IncomingBody>, PoolError> {
        let (mut socket, copy) = match self.take() {
            Some(socket) => (socket, payload.copy()),
            None => (Box::pin(self.connect()).await?, None),
        };
        let mut request = self.request(parts, payload);
        match socket.exchange(&mut request, &parts.method).await {
            Ok(head) => Ok(self.answer(head, socket, &request)),
            Err(error) => Box::pin(self.send_again(parts, copy, (error, socket, request))).await,
        }
    }

    /// The first try failed like this: the second one, if there may be one.
    async fn send_again(
        self: &Arc<Self>,
        parts: &request::Parts,
        copy: Option<OutgoingBody>,
        (error, socket, request): (PoolError, ServerSocket, RequestWriter),
    ) -> Result<Response<IncomingBody>, PoolError> {
        let Some(copy) = copy else {
            return Err(error);
        };
        let may_resend = socket.may_resend(&error, &parts.method, request.is_just_written());
        if !may_resend.await {
            return Err(error);
        }
        let mut socket = self.connect().await?;
        let mut request = self.request(parts, copy);
        let head = socket.exchange(&mut request, &parts.method).await?;
        let mut response = self.answer(head, socket, &request);
        response.extensions_mut().insert(Resent);
        Ok(response)
    }

    fn answer(
        self: &Arc<Self>,
        head: H1ResponseHead,
        socket: ServerSocket,
        request: &RequestWriter,
    ) -> Response<IncomingBody> {
        // An answer before the request's end: the rest of it is not sent, and nothing else can be.
        let back = (head.keep_alive && request.is_done()).then(|| Arc::clone(self));
        let inflow = IncomingBody::from_socket(socket, head.framing, back);
        Response::from_parts(head.parts, inflow)
    }

    /// Whether it connects to a proxy.
    pub(super) fn has_proxy(&self) -> bool {
        self.proxy.is_some()
    }

    fn request(&self, parts: &request::Parts, payload: OutgoingBody) -> RequestWriter {
        let length = h1::BodyLength::of(&payload, &parts.method);
        let head = h1::request_head(parts, &self.authority, length, self.proxy.as_ref());
        RequestWriter::new(head, payload, length)
    }

    async fn connect(&self) -> Result<ServerSocket, PoolError> {
        let connecting = TcpStream::connect((self.host.as_str(), self.port));
        let stream = timeout(CONNECT_DEADLINE, connecting)
            .await
            .unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
            .map_err(PoolError::Connect)?;
        let _ = super::listener::tune(&stream, self.stall);
        Ok(ServerSocket::new(stream, Arc::clone(&self.buffers)))
    }

    /// The one that was used last: the others may rest and go.
    fn take(&self) -> Option<ServerSocket> {
        let mut idle = self.idle();
        while let Some((socket, since)) = idle.pop_back() {
            if since.elapsed() < IDLE_MAX && socket.is_quiet() {
                return Some(socket);
            }
        }
        None
    }

    /// Takes a connection back whose answer has been read to its end.
    pub(super) fn keep(self: Arc<Self>, mut socket: ServerSocket) {
        if !socket.reset() {
            return;
        }
        let mut idle = self.idle();
        if idle.len() >= IDLE_CONNECTIONS {
            idle.pop_front();
        }
        idle.push_back((socket, Instant::now()));
        drop(idle);
        if !self.swept.swap(true, Ordering::Relaxed) {
            tokio::spawn(sweep(Arc::downgrade(&self)));
        }
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<(ServerSocket, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes what has been idle for too long, until nothing is left.
async fn sweep(pool: Weak<ConnectionPool>) {
    loop {
        tokio::time::sleep(IDLE_MAX).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut idle = pool.idle();
        while idle
            .front()
            .is_some_and(|(_, since)| since.elapsed() >= IDLE_MAX)
        {
            idle.pop_front();
        }
        if idle.is_empty() {
            pool.buffers.clear();
            pool.swept.store(false, Ordering::Relaxed);
            return;
        }
    }
}
