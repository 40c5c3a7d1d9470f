//! A connection as tungstenite wants it: one that never blocks, and fails when its peer takes nothing for too long.
//!
//! tokio-tungstenite does the same, but does not let a limit of tungstenite's change while a socket is open: a peer that nobody knows
//! yet must not make us reserve memory for a long message.

use std::io::{ErrorKind, Read, Result as IoResult, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// The tasks of both halves of a socket. Each may read and write, so both are woken.
#[derive(Default)]
pub(super) struct SocketTasks {
    pub(super) reader: AtomicWaker,
    pub(super) writer: AtomicWaker,
}

impl Wake for SocketTasks {
    fn wake(self: Arc<Self>) {
        self.reader.wake();
        self.writer.wake();
    }
}

/// The connection below a WebSocket.
pub(super) struct PolledStream<S> {
    io: S,
    tasks: Waker,
    stall: Duration,
    /// Runs while the peer takes nothing.
    stalling: Option<Pin<Box<Sleep>>>,
    heard_at: Instant,
}

impl<S: AsyncRead + AsyncWrite + Unpin> PolledStream<S> {
    pub(super) fn new(io: S, tasks: &Arc<SocketTasks>, stall: Duration) -> PolledStream<S> {
        PolledStream {
            io,
            tasks: Waker::from(Arc::clone(tasks)),
            stall,
            stalling: None,
            heard_at: Instant::now(),
        }
    }

    /// When something came last.
    pub(super) fn heard_at(&self) -> Instant {
        self.heard_at
    }

    /// Closes our direction of the connection.
    pub(super) fn shut_down(&mut self) -> IoResult<()> {
        self.step(|io, cx| io.poll_shutdown(cx))
    }

    /// One step of writing. It fails if none has succeeded for too long.
    fn step<T>(
        &mut self,
        poll: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<IoResult<T>>,
    ) -> IoResult<T> {
        let mut cx = Context::from_waker(&self.tasks);
        if let Poll::Ready(done) = poll(Pin::new(&mut self.io), &mut cx) {
            self.stalling = None;
            return done;
        }
        let stall = self.stall;
        let timer = self.stalling.get_or_insert_with(|| Box::pin(sleep(stall)));
        match timer.as_mut().poll(&mut cx) {
            Poll::Ready(()) => {
                // A close frame may still be tried.
                self.stalling = None;
                Err(ErrorKind::TimedOut.into())
            }
            Poll::Pending => Err(ErrorKind::WouldBlock.into()),
        }
    }
}

impl<S: AsyncRead + Unpin> Read for PolledStream<S> {
    fn read(&mut self, into: &mut [u8]) -> IoResult<usize> {
        let mut cx = Context::from_waker(&self.tasks);
        let mut into = ReadBuf::new(into);
        match Pin::new(&mut self.io).poll_read(&mut cx, &mut into) {
            Poll::Ready(read) => read?,
            Poll::Pending => return Err(ErrorKind::WouldBlock.into()),
        }
        self.heard_at = Instant::now();
        Ok(into.filled().len())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Write for PolledStream<S> {
    fn write(&mut self, bytes: &[u8]) -> IoResult<usize> {
        self.step(|io, cx| io.poll_write(cx, bytes))
    }

    fn flush(&mut self) -> IoResult<()> {
        self.step(|io, cx| io.poll_flush(cx))
    }
}
