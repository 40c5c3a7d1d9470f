//! A client's socket: tells a client that has closed from one that will only send no more.
//!
//! A client that closes its socket and one that closes only its sending half (`nc -N`) look the same: both send a FIN, and
//! only a client that has closed resets the connection, when we write. A closed stream must cancel at once (2026-07-28), a client that
//! still reads must get its answer. So the time decides: a FIN right behind a request, before anything of its answer
//! went out, is that of a client with nothing more to say; any later one is that of a client that has left.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mcp_proxy_core::Connection;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

use super::connection_places::ConnectionActivity;
use super::listener::limit_unsent;

/// A FIN this soon after the last byte of a request belongs to it.
const RIGHT_BEHIND: Duration = Duration::from_millis(50);

/// A client's socket.
pub(super) struct ClientSocket {
    state: Arc<Mutex<ClientSocketState>>,
    activity: Arc<ConnectionActivity>,
}

/// Watches for the client's end while hyper does not read, because it works on a request. Not polled any more after an
/// upgrade: what a FIN means is then up to the other protocol.
pub(super) struct DisconnectWatch {
    state: Arc<Mutex<ClientSocketState>>,
    /// The client sends no more, but may read: until when it is served.
    half_closed: Option<Pin<Box<Sleep>>>,
    patience: Duration,
}

/// What bodies know of the socket that they are sent over.
#[derive(Clone)]
pub(super) struct SocketHandle(Arc<Mutex<ClientSocketState>>);

impl SocketHandle {
    /// hyper has taken this message of the record, but the socket may not have. If it never does, the message is
    /// undelivered.
    pub(super) fn hand_over(&self, connection: &Arc<Connection>, sequence: u64) {
        let message = (Arc::clone(connection), sequence);
        lock(&self.0).unwritten.push(message);
    }

    /// The connection leaves HTTP: see [`limit_unsent`].
    pub(super) fn prepare_upgrade(&self) {
        let _ = limit_unsent(&lock(&self.0).stream);
    }
}

/// How a client was found to be away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientDisconnect {
    /// It closed the connection.
    Closed,
    /// It sent no more, and its answer took longer than it is waited for.
    HalfClosed,
}

/// The socket and what was last done with it.
///
/// The lock is never waited for, whatever the runtime: [`ClientSocket`] and [`DisconnectWatch`] are polled by the connection's task
/// only, one after the other. An upgrade gives the `ClientSocket` to another task; by then the connection's task polls neither.
struct ClientSocketState {
    stream: TcpStream,
    /// When bytes came last; none if bytes went out since.
    asked: Option<Instant>,
    /// hyper has read the end itself.
    end_is_known: bool,
    /// Messages of the record that hyper has, and that may not be written yet.
    unwritten: Vec<(Arc<Connection>, u64)>,
}

impl Drop for ClientSocketState {
    fn drop(&mut self) {
        for (connection, sequence) in &self.unwritten {
            connection.undelivered(
                &[*sequence],
                "the client closed its connection before it took the message",
            );
        }
    }
}

impl ClientSocket {
    /// Around `stream`. A client that sends no more is served for `patience`.
    pub(super) fn new(
        stream: TcpStream,
        patience: Duration,
        activity: Arc<ConnectionActivity>,
    ) -> (ClientSocket, DisconnectWatch) {
        let state = Arc::new(Mutex::new(ClientSocketState {
            stream,
            asked: None,
            end_is_known: false,
            unwritten: Vec::new(),
        }));
        let socket = ClientSocket {
            state: Arc::clone(&state),
            activity,
        };
        let watch = DisconnectWatch {
            state,
            half_closed: None,
            patience,
        };
        (socket, watch)
    }

    /// For bodies that are sent over it.
    pub(super) fn handle(&self) -> SocketHandle {
        SocketHandle(Arc::clone(&self.state))
    }

    fn line(&self) -> MutexGuard<'_, ClientSocketState> {
        lock(&self.state)
    }
}

impl DisconnectWatch {
    /// Ready when the client is away. To be polled whenever the connection is, after it.
    pub(super) fn poll_disconnect(&mut self, cx: &mut Context<'_>) -> Poll<ClientDisconnect> {
        if let Some(deadline) = &mut self.half_closed {
            ready!(deadline.as_mut().poll(cx));
            return Poll::Ready(ClientDisconnect::HalfClosed);
        }
        let line = lock(&self.state);
        if line.end_is_known {
            return Poll::Pending;
        }
        let mut byte = [0];
        match ready!(line.stream.poll_peek(cx, &mut ReadBuf::new(&mut byte))) {
            // The next request, or the rest of one: hyper reads it, and we are asked again then.
            Ok(1..) => return Poll::Pending,
            Ok(0)
                if line
                    .asked
                    .is_some_and(|asked| asked.elapsed() < RIGHT_BEHIND) => {}
            Ok(0) | Err(_) => return Poll::Ready(ClientDisconnect::Closed),
        }
        drop(line);
        let mut deadline = Box::pin(sleep(self.patience));
        let waiting = deadline
            .as_mut()
            .poll(cx)
            .map(|()| ClientDisconnect::HalfClosed);
        self.half_closed = Some(deadline);
        waiting
    }
}

fn lock(line: &Mutex<ClientSocketState>) -> MutexGuard<'_, ClientSocketState> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AsyncRead for ClientSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let before = into.filled().len();
        let mut line = self.line();
        ready!(Pin::new(&mut line.stream).poll_read(cx, into))?;
        match into.filled().len() > before {
            true => {
                let now = Instant::now();
                line.asked = Some(now);
                self.activity.bytes_came(now);
            }
            false => line.end_is_known = true,
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ClientSocket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let mut line = self.line();
        line.asked = None;
        Pin::new(&mut line.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let mut line = self.line();
        line.asked = None;
        Pin::new(&mut line.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// hyper flushes when it has written all that it had.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let mut line = self.line();
        ready!(Pin::new(&mut line.stream).poll_flush(cx))?;
        line.unwritten.clear();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.line().stream).poll_shutdown(cx)
    }
}
