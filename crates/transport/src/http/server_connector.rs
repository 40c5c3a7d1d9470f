//! Connections to servers: how they are made, and what they remember for a request that fails.

use std::error::Error as StdError;
use std::io::{ErrorKind, Result as IoResult};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use http::{Extensions, Method, Uri};
use hyper_util::client::legacy::Error;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use mcp_proxy_core::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

use super::outbound_proxy::OutboundProxy;

const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
const KEEPALIVE: Duration = Duration::from_secs(60);
/// After a server has closed a connection, a reset is awaited for this long.
const RESET_WAIT: Duration = Duration::from_millis(500);
/// A kernel resets an idle connection as soon as a request arrives on it, so within a round trip. A later reset may come from
/// a server or a middlebox while the request is being carried out.
const UNREAD_RESET: Duration = Duration::from_secs(1);
/// A longer request may have been answered in part while it was written.
const RESENT_MAX: u64 = 16 * 1024;

type ConnectError = Box<dyn StdError + Send + Sync>;

/// Makes connections to one server.
#[derive(Clone)]
pub(super) struct ServerConnector {
    tcp: HttpConnector,
    way: Way,
}

#[derive(Clone)]
enum Way {
    Direct,
    /// Plain requests go to a proxy at this URL, which sends them on.
    Forwarded(Uri),
    Tunnelled(Tunnel<HttpConnector>),
}

impl ServerConnector {
    pub(super) fn new(
        is_plain: bool,
        proxy: Option<OutboundProxy>,
        stall: Duration,
    ) -> ServerConnector {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_DEADLINE));
        tcp.set_keepalive(Some(KEEPALIVE));
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(stall));
        #[cfg(not(target_os = "linux"))]
        let _ = stall;
        let way = match proxy {
            None => Way::Direct,
            Some(proxy) if is_plain => Way::Forwarded(proxy.url()),
            Some(proxy) => {
                let tunnel = Tunnel::new(proxy.url(), tcp.clone());
                Way::Tunnelled(match proxy.authorization() {
                    Some(authorization) => tunnel.with_auth(authorization.clone()),
                    None => tunnel,
                })
            }
        };
        ServerConnector { tcp, way }
    }
}

impl Service<Uri> for ServerConnector {
    type Response = ServerStream;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<ServerStream, ConnectError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let mut connector = self.clone();
        Box::pin(async move {
            let connected = match &mut connector.way {
                Way::Direct => connector.tcp.call(server).await?,
                Way::Forwarded(proxy) => connector.tcp.call(proxy.clone()).await?,
                Way::Tunnelled(tunnel) => tunnel.call(server).await?,
            };
            let connection = ServerConnection::new(connected.into_inner());
            Ok(TokioIo::new(ConnectionHandle {
                connection,
                is_proxied: matches!(connector.way, Way::Forwarded(_)),
            }))
        })
    }
}

/// What hyper reads and writes.
pub(super) type ServerStream = TokioIo<ConnectionHandle>;

/// A connection, with what is known when a request on it fails. It is shared with the errors of requests.
pub(super) struct ServerConnection {
    stream: TcpStream,
    /// There was an answer before the request that was written last.
    is_reused: AtomicBool,
    /// Something was read since.
    has_answered: AtomicBool,
    was_reset: AtomicBool,
    written_at: Mutex<Option<Instant>>,
}

impl ServerConnection {
    fn new(stream: TcpStream) -> Arc<ServerConnection> {
        Arc::new(ServerConnection {
            stream,
            is_reused: AtomicBool::new(false),
            has_answered: AtomicBool::new(false),
            was_reset: AtomicBool::new(false),
            written_at: Mutex::new(None),
        })
    }

    /// The connection that a request has failed on. `None` for h2, where requests share one.
    pub(super) fn of(error: &Error) -> Option<Arc<ServerConnection>> {
        let connected = error.connect_info()?;
        let mut extensions = Extensions::new();
        connected.get_extras(&mut extensions);
        let connection = extensions.remove()?;
        (!connected.is_negotiated_h2()).then_some(connection)
    }

    pub(super) fn remove_from(extensions: &mut Extensions) {
        extensions.remove::<Arc<ServerConnection>>();
    }

    /// Whether a request with a body of this length that failed here may be sent again. It was not the first one here, and nothing of an answer has come.
    /// If the method is not idempotent, the server must also have reset the connection right after the request was
    /// written: a kernel does that when what we sent was not read. A connection that is only closed may be that of a
    /// server that died at work.
    pub(super) async fn may_resend(&self, method: &Method, length: Option<u64>) -> bool {
        if !self.is_reused.load(Ordering::Relaxed) || self.has_answered.load(Ordering::Relaxed) {
            return false;
        }
        let is_short = length.is_some_and(|length| length <= RESENT_MAX);
        let written_at = *self.lock_written_at();
        let is_just_written = written_at.is_none_or(|at| at.elapsed() < UNREAD_RESET);
        method.is_idempotent() || (is_short && is_just_written && self.is_reset().await)
    }

    /// If the server closed before our request arrived, the reset follows the close by one round trip.
    async fn is_reset(&self) -> bool {
        if self.was_reset.load(Ordering::Relaxed) {
            return true;
        }
        let reset = timeout(RESET_WAIT, self.stream.ready(Interest::ERROR)).await;
        let error = self.stream.take_error();
        reset.is_ok() && matches!(error, Ok(Some(error)) if is_reset(&error))
    }

    fn note_written(&self) {
        if self.has_answered.swap(false, Ordering::Relaxed) {
            self.is_reused.store(true, Ordering::Relaxed);
        }
        *self.lock_written_at() = Some(Instant::now());
    }

    fn note_failed(&self, error: &std::io::Error) {
        self.was_reset.fetch_or(is_reset(error), Ordering::Relaxed);
    }

    fn lock_written_at(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.written_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a kernel reports after a reset, from a read or a write.
fn is_reset(error: &std::io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionReset | BrokenPipe | ConnectionAborted
    )
}

/// The half of a connection that hyper has.
pub(super) struct ConnectionHandle {
    connection: Arc<ServerConnection>,
    is_proxied: bool,
}

impl Connection for ConnectionHandle {
    fn connected(&self) -> Connected {
        let connection = Arc::clone(&self.connection);
        Connected::new().proxy(self.is_proxied).extra(connection)
    }
}

impl ConnectionHandle {
    /// Tries until the socket is not ready any more. Both directions can do so at once.
    fn poll_io<T>(
        &self,
        mut poll_ready: impl FnMut(&TcpStream) -> Poll<IoResult<()>>,
        mut step: impl FnMut(&TcpStream) -> IoResult<T>,
    ) -> Poll<IoResult<T>> {
        loop {
            ready!(poll_ready(&self.connection.stream))?;
            match step(&self.connection.stream) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => {
                    self.connection.note_failed(&error);
                    return Poll::Ready(Err(error));
                }
                done => return Poll::Ready(done),
            }
        }
    }
}

impl AsyncRead for ConnectionHandle {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<IoResult<()>> {
        let read = self.poll_io(
            |stream| stream.poll_read_ready(cx),
            |stream| stream.try_read_buf(into),
        );
        if ready!(read)? > 0 {
            self.connection.has_answered.store(true, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ConnectionHandle {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<IoResult<usize>> {
        self.poll_write_vectored(cx, &[std::io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<IoResult<usize>> {
        let written = ready!(self.poll_io(
            |stream| stream.poll_write_ready(cx),
            |stream| stream.try_write_vectored(slices),
        ))?;
        self.connection.note_written();
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<IoResult<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<IoResult<()>> {
        let socket = socket2::SockRef::from(&self.connection.stream);
        Poll::Ready(socket.shutdown(std::net::Shutdown::Write))
    }
}
