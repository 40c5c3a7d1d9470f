//! A WebSocket of tungstenite's that two tasks use.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{ErrorKind, Read as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tungstenite::error::{CapacityError, Error, ProtocolError};
use tungstenite::protocol::frame::coding::{Data, OpCode};
use tungstenite::protocol::frame::{CloseFrame, Frame};
use tungstenite::protocol::{Message, Role, WebSocket, WebSocketConfig};

use super::polled_stream::{PolledStream, SocketTasks};
use super::{SocketEnd, SocketOptions, SocketViolation};

/// Frames that are written together have about this many bytes.
const WRITTEN_TOGETHER: usize = 64 << 10;
/// What may wait unwritten, such as the answers to pings of a peer that reads nothing.
const UNWRITTEN_MAX: usize = 256 << 10;
/// What is read at once. An idle socket keeps a buffer of this size.
const READ_BUFFER: usize = 8 << 10;

/// What both halves of a link use, for one step at a time.
pub(super) struct SharedSocket<S> {
    socket: Mutex<WebSocket<PolledStream<S>>>,
    tasks: Arc<SocketTasks>,
    stall: Duration,
}

/// Which task waits.
#[derive(Clone, Copy)]
pub(super) enum SocketHalf {
    Reader,
    Writer,
}

impl<S: AsyncRead + AsyncWrite + Unpin> SharedSocket<S> {
    /// A socket whose handshake is done.
    pub(super) fn new(stream: S, options: &SocketOptions) -> SharedSocket<S> {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(UNWRITTEN_MAX - 1)
            .max_write_buffer_size(UNWRITTEN_MAX)
            .max_message_size(Some(options.max_first_message))
            .max_frame_size(Some(options.max_first_message));
        let tasks = Arc::default();
        let stream = PolledStream::new(stream, &tasks, options.stall);
        SharedSocket {
            socket: Mutex::new(WebSocket::from_raw_socket(
                stream,
                Role::Server,
                Some(config),
            )),
            tasks,
            stall: options.stall,
        }
    }

    /// How long a message may be, from the next frame on.
    pub(super) fn set_max_message(&self, bytes: usize) {
        self.socket().set_config(|config| {
            config.max_message_size = Some(bytes);
            config.max_frame_size = Some(bytes);
        });
    }

    /// When something came last.
    pub(super) fn heard_at(&self) -> Instant {
        self.socket().get_ref().heard_at()
    }

    fn socket(&self) -> MutexGuard<'_, WebSocket<PolledStream<S>>> {
        lock(&self.socket)
    }

    /// Repeats a step until it need not wait.
    async fn step<T>(
        &self,
        half: SocketHalf,
        mut step: impl FnMut(&mut WebSocket<PolledStream<S>>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let task = match half {
            SocketHalf::Reader => &self.tasks.reader,
            SocketHalf::Writer => &self.tasks.writer,
        };
        poll_fn(|cx| {
            task.register(cx.waker());
            match step(&mut self.socket()) {
                Err(error) if is_blocked(&error) => Poll::Pending,
                done => Poll::Ready(done),
            }
        })
        .await
    }

    /// What the peer sends next. Pings are answered meanwhile. Safe to cancel.
    pub(super) async fn next(&self) -> Result<Message, Error> {
        self.step(SocketHalf::Reader, WebSocket::read).await
    }

    /// What the peer has sent already. What it sends later wakes nobody.
    pub(super) fn next_ready(&self) -> Option<Result<Message, Error>> {
        match self.socket().read() {
            Err(error) if is_blocked(&error) => None,
            next => Some(next),
        }
    }

    /// Sends frames, and counts the messages that begin with them.
    pub(super) async fn send(
        &self,
        mut frames: VecDeque<Frame>,
        begun: &AtomicU64,
    ) -> Result<(), Error> {
        self.step(SocketHalf::Writer, |socket| {
            loop {
                socket.flush()?;
                if frames.is_empty() {
                    return Ok(());
                }
                let mut room = WRITTEN_TOGETHER;
                while room > 0
                    && let Some(frame) = frames.pop_front()
                {
                    room = room.saturating_sub(frame.len());
                    if frame.header().opcode == OpCode::Data(Data::Text) {
                        begun.fetch_add(1, Ordering::Relaxed);
                    }
                    match socket.write(Message::Frame(frame)) {
                        // It waits in the buffer.
                        Err(error) if is_blocked(&error) => {}
                        written => written?,
                    }
                }
            }
        })
        .await
    }

    /// Sends a ping, unless the peer does not even take what was sent before.
    pub(super) fn ping(&self) {
        let mut socket = self.socket();
        if socket.write(Message::Ping(Bytes::new())).is_ok() {
            let _ = socket.flush();
        }
    }

    /// Sends a close frame, unless one was sent, and writes what is left to write.
    pub(super) async fn close(&self, half: SocketHalf, frame: CloseFrame) {
        // It fails if the socket is closed already.
        let _ = self.socket().write(Message::Close(Some(frame)));
        let _ = self.step(half, WebSocket::flush).await;
    }

    /// Closes our direction of the connection.
    pub(super) async fn shut_down(&self) {
        let shut = self.step(SocketHalf::Reader, |socket| {
            Ok(socket.get_mut().shut_down()?)
        });
        let _ = shut.await;
    }

    /// Reads what comes until the connection ends, and forgets it.
    pub(super) async fn discard(&self) {
        let mut memory = [0; 4096];
        let mut read = |socket: &mut WebSocket<PolledStream<S>>| {
            let read = socket.get_mut().read(&mut memory);
            Ok(read?)
        };
        while self
            .step(SocketHalf::Reader, &mut read)
            .await
            .is_ok_and(|read| read > 0)
        {}
    }

    /// What an error of the library means.
    pub(super) fn end_of(&self, error: Error) -> SocketEnd {
        match error {
            Error::ConnectionClosed | Error::AlreadyClosed => SocketEnd::Closed,
            Error::Io(error) if error.kind() == ErrorKind::TimedOut => {
                SocketEnd::Stalled(self.stall)
            }
            Error::Capacity(CapacityError::MessageTooLong { max_size, .. }) => {
                SocketViolation::TooLong { limit: max_size }.into()
            }
            Error::Utf8(_) => SocketViolation::NotUtf8.into(),
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                SocketEnd::Broken("the peer sends no more".to_owned())
            }
            Error::Protocol(broken) => SocketViolation::Protocol(broken).into(),
            error => SocketEnd::Broken(error.to_string()),
        }
    }
}

/// Whether a step has to wait.
fn is_blocked(error: &Error) -> bool {
    matches!(error, Error::Io(error) if error.kind() == ErrorKind::WouldBlock)
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
