//! The writing half of a WebSocket.
//!
//! Small messages are copied into one buffer and one write; large ones are written from where they lie. The reading half
//! writes too, pongs and close frames, so both take turns at the [`WriteSide`].

use std::io::{IoSlice, Result as IoResult};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt, WriteHalf};
use tokio::sync::{Mutex, oneshot};
use tokio::time::timeout;

use super::frames::{CONTROL_MAX, FrameKind, begun_frames, push_control, push_head};
use super::peer_watch::PeerSilence;
use super::{SocketEnd, UpgradedStream};

/// Longer payloads are not copied.
const COPY_MAX: usize = 16 * 1024;
/// About as much is collected for one write.
const BUFFER_MAX: usize = 64 * 1024;
/// The longest head of a frame that is not masked.
const HEAD_MAX: usize = 10;
/// So much of a frame is kept for a peer that has stopped reading in the middle of it, so that a close frame can follow.
const REST_MAX: usize = 256 * 1024;
/// How a peer is closed that does not read: "try again later".
const NOT_READ: (u16, &str) = (1013, "nothing was read");

/// The writing half.
pub struct SocketWriter<S = UpgradedStream> {
    side: Arc<Mutex<WriteSide<S>>>,
    /// Told once, when the writer closes or fails, so that the reader does not wait for nothing.
    tell: Option<oneshot::Sender<WriterNews>>,
    /// Between the first and the last piece of a message.
    is_inside_message: bool,
    messages_begun: Arc<AtomicU64>,
}

/// What the reading half has to know.
#[derive(Debug)]
pub(super) enum WriterNews {
    /// The close frame is being written, and the peer has to answer it.
    Closing,
    /// Nothing can be written any more.
    Failed(SocketEnd),
}

/// A message, or a piece of one. It is sent as text.
#[derive(Clone, Debug)]
pub struct OutgoingPiece {
    /// Its bytes.
    pub bytes: Bytes,
    /// Where it belongs.
    pub part: PiecePart,
}

/// Which part of its message a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PiecePart {
    /// All of it.
    Whole,
    /// Its beginning; others follow.
    First,
    /// Neither its beginning nor its end.
    Middle,
    /// Its end.
    Last,
}

/// Why nothing could be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SocketWriteError {
    /// One of the two sides has closed the socket.
    #[error("the WebSocket is closed")]
    Closed,
    /// The peer takes nothing.
    #[error("the peer took nothing for {0:?}")]
    Stalled(Duration),
    /// The connection failed.
    #[error("writing to the WebSocket failed: {0}")]
    Broken(String),
    /// An earlier `send` was dropped before it was done, so nobody knows where in a frame the peer is.
    #[error("an earlier message was cut off")]
    Interrupted,
    /// The pieces do not follow each other. Nothing of them was sent.
    #[error("the pieces of the message are out of order")]
    OutOfOrder,
}

impl<S: AsyncWrite + Send> SocketWriter<S> {
    pub(super) fn new(side: WriteSide<S>, tell: oneshot::Sender<WriterNews>) -> SocketWriter<S> {
        SocketWriter {
            messages_begun: Arc::clone(&side.messages_begun),
            side: Arc::new(Mutex::new(side)),
            tell: Some(tell),
            is_inside_message: false,
        }
    }

    /// What the reading half writes through.
    pub(super) fn side(&self) -> Arc<Mutex<WriteSide<S>>> {
        Arc::clone(&self.side)
    }

    /// Of how many messages at least one byte was written, so far. It is exact also when a `send` has failed or was dropped.
    pub(super) fn messages_begun(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.messages_begun)
    }

    /// Sends these, in as few writes as is sensible. If it is dropped before it is done, nothing can be sent any more.
    pub async fn send(&mut self, pieces: &[OutgoingPiece]) -> Result<(), SocketWriteError> {
        self.is_inside_message = order(self.is_inside_message, pieces)?;
        let mut side = self.side.lock().await;
        let sent = side.send(pieces).await;
        drop(side);
        self.noted(sent)
    }

    /// Asks for a [`Pong`](super::SocketEvent::Pong).
    pub async fn ping(&mut self) -> Result<(), SocketWriteError> {
        let mut side = self.side.lock().await;
        let sent = side.send_control(FrameKind::Ping, &[]).await;
        drop(side);
        self.noted(sent)
    }

    /// Sends a close frame, with as much of the reason as fits. The reader then ends when the peer has answered, or
    /// after [`SocketOptions::close_deadline`](super::SocketOptions::close_deadline).
    pub async fn close(mut self, code: u16, reason: &str) -> Result<(), SocketWriteError> {
        // First, so that the deadline holds even if this is dropped. A reader that is gone waits for nothing.
        if let Some(tell) = self.tell.take() {
            let _ = tell.send(WriterNews::Closing);
        }
        let mut side = self.side.lock().await;
        side.send_close(Some(code), reason).await
    }

    /// Tells the reader if writing has failed for good.
    fn noted(&mut self, sent: Result<(), SocketWriteError>) -> Result<(), SocketWriteError> {
        if let Err(error) = &sent
            && let Some(end) = error.end()
            && let Some(tell) = self.tell.take()
        {
            let _ = tell.send(WriterNews::Failed(end));
        }
        sent
    }
}

impl SocketWriteError {
    /// The end of the socket that this is. `None` where the reader knows better, or nothing has ended.
    pub(super) fn end(&self) -> Option<SocketEnd> {
        match self {
            SocketWriteError::Stalled(time) => Some(SocketEnd::Stalled(*time)),
            SocketWriteError::Broken(_) | SocketWriteError::Interrupted => {
                Some(SocketEnd::Broken(self.to_string()))
            }
            SocketWriteError::Closed | SocketWriteError::OutOfOrder => None,
        }
    }
}

/// Whether we are inside a message after these pieces.
fn order(mut is_inside: bool, pieces: &[OutgoingPiece]) -> Result<bool, SocketWriteError> {
    for piece in pieces {
        is_inside = match (is_inside, piece.part) {
            (false, PiecePart::Whole) | (true, PiecePart::Last) => false,
            (false, PiecePart::First) | (true, PiecePart::Middle) => true,
            _ => return Err(SocketWriteError::OutOfOrder),
        };
    }
    Ok(is_inside)
}

/// What both halves of a socket write through, one at a time.
pub(super) struct WriteSide<S> {
    io: WriteHalf<S>,
    stall: Duration,
    state: WriteState,
    messages_begun: Arc<AtomicU64>,
    /// `None` if a peer may be silent for as long as it likes.
    silence: Option<Arc<PeerSilence>>,
    /// Control frames that are not written, or not to their end. Without any, it has no memory. For a peer that does not
    /// read, also the rest of the frame in front of the last one.
    unsent: Vec<u8>,
}

#[derive(Debug)]
enum WriteState {
    Open,
    /// A message is being written. To find this is to find that a `send` was dropped.
    Sending,
    /// A close frame is written, or in `unsent`.
    Closed,
    Failed(SocketWriteError),
}

impl<S: AsyncWrite> WriteSide<S> {
    pub(super) fn new(
        io: WriteHalf<S>,
        stall: Duration,
        silence: Option<Arc<PeerSilence>>,
    ) -> WriteSide<S> {
        WriteSide {
            io,
            stall,
            silence,
            state: WriteState::Open,
            messages_begun: Arc::default(),
            unsent: Vec::new(),
        }
    }

    #[cfg(test)]
    pub(super) fn unsent_bytes(&self) -> usize {
        self.unsent.len()
    }

    /// Whether something may be sent.
    fn check(&mut self) -> Result<(), SocketWriteError> {
        match &self.state {
            WriteState::Open => Ok(()),
            WriteState::Closed => Err(SocketWriteError::Closed),
            WriteState::Failed(error) => Err(error.clone()),
            WriteState::Sending => {
                self.state = WriteState::Failed(SocketWriteError::Interrupted);
                Err(SocketWriteError::Interrupted)
            }
        }
    }

    async fn send(&mut self, pieces: &[OutgoingPiece]) -> Result<(), SocketWriteError> {
        self.check()?;
        if let Err(error) = self.flush_unsent().await {
            self.leave_close_frame(&error);
            return Err(error);
        }
        self.state = WriteState::Sending;
        let sent = self.send_pieces(pieces).await;
        self.state = match &sent {
            Ok(()) => WriteState::Open,
            Err(error) => WriteState::Failed(error.clone()),
        };
        sent
    }

    /// Leaves a close frame for a peer that has stopped reading. It is written when the reading half winds up, if the peer reads
    /// again by then.
    fn leave_close_frame(&mut self, error: &SocketWriteError) {
        if let SocketWriteError::Stalled(_) = error {
            let payload = close_payload(Some(NOT_READ.0), NOT_READ.1);
            push_control(&mut self.unsent, FrameKind::Close, &payload);
        }
    }

    async fn send_pieces(&mut self, pieces: &[OutgoingPiece]) -> Result<(), SocketWriteError> {
        let copied = pieces.iter().map(|piece| match piece.bytes.len() {
            length @ 0..=COPY_MAX => length + HEAD_MAX,
            _ => HEAD_MAX,
        });
        let room = copied.sum::<usize>().min(BUFFER_MAX);
        let mut buffer = Vec::with_capacity(room + HEAD_MAX);
        let silence = self.silence.as_ref();
        if silence.is_some_and(|silence| silence.takes_ping()) {
            push_control(&mut buffer, FrameKind::Ping, &[]);
        }
        for piece in pieces {
            let kind = match piece.part {
                PiecePart::Whole | PiecePart::First => FrameKind::Text,
                PiecePart::Middle | PiecePart::Last => FrameKind::Continuation,
            };
            let is_final = matches!(piece.part, PiecePart::Whole | PiecePart::Last);
            let length = piece.bytes.len();
            if length <= COPY_MAX {
                if buffer.len() + HEAD_MAX + length > BUFFER_MAX {
                    self.write(&buffer, &[]).await?;
                    buffer.clear();
                }
                push_head(&mut buffer, kind, is_final, length);
                buffer.extend_from_slice(&piece.bytes);
            } else {
                push_head(&mut buffer, kind, is_final, length);
                self.write(&buffer, &piece.bytes).await?;
                buffer.clear();
            }
        }
        self.write(&buffer, &[]).await?;
        self.flush().await
    }

    /// Sends a ping or pong.
    pub(super) async fn send_control(
        &mut self,
        kind: FrameKind,
        payload: &[u8],
    ) -> Result<(), SocketWriteError> {
        self.check()?;
        // So that never more than one frame is kept, however often this is dropped and called again.
        let mut sent = self.flush_unsent().await;
        if sent.is_ok() {
            push_control(&mut self.unsent, kind, payload);
            sent = self.flush_unsent().await;
        }
        if let Err(error) = &sent {
            self.leave_close_frame(error);
        }
        sent
    }

    /// Sends a close frame. Nothing can be sent behind it.
    pub(super) async fn send_close(
        &mut self,
        code: Option<u16>,
        reason: &str,
    ) -> Result<(), SocketWriteError> {
        self.check()?;
        let payload = close_payload(code, reason);
        push_control(&mut self.unsent, FrameKind::Close, &payload);
        self.state = WriteState::Closed;
        self.flush_unsent().await
    }

    /// Nothing can be sent from now on, because the connection has ended.
    pub(super) fn end(&mut self) {
        if self.check().is_ok() {
            self.state = WriteState::Closed;
        }
    }

    /// Writes what is left of control frames. May be dropped and called again.
    pub(super) async fn flush_unsent(&mut self) -> Result<(), SocketWriteError> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        while !self.unsent.is_empty() {
            let writing = self.io.write(&self.unsent);
            let written = progress(self.stall, writing).await;
            let written = match written.and_then(some_bytes) {
                Ok(written) => written,
                Err(error) => return Err(self.fail(error)),
            };
            self.unsent.drain(..written);
        }
        self.unsent = Vec::new();
        let flushed = self.flush().await;
        flushed.map_err(|error| self.fail(error))
    }

    /// Tells the peer that nothing more comes.
    pub(super) async fn shut_down(&mut self) -> Result<(), SocketWriteError> {
        progress(self.stall, self.io.shutdown()).await
    }

    /// Writes frames, and behind them the payload of the last one.
    async fn write(&mut self, frames: &[u8], payload: &[u8]) -> Result<(), SocketWriteError> {
        let (mut written, mut begun) = (0, 0);
        while written < frames.len() + payload.len() {
            let first = frames.get(written..).unwrap_or_default();
            let second = &payload[written.saturating_sub(frames.len())..];
            let slices = [IoSlice::new(first), IoSlice::new(second)];
            let taken = match (first, second) {
                (one, []) | ([], one) => progress(self.stall, self.io.write(one)).await,
                _ => progress(self.stall, self.io.write_vectored(&slices)).await,
            };
            match taken.and_then(some_bytes) {
                Ok(taken) => written += taken,
                Err(error) => {
                    if let SocketWriteError::Broken(_) = error {
                        // Under TLS some of it may have been written before it failed.
                        let (messages, _) = begun_frames(frames, frames.len());
                        self.messages_begun
                            .fetch_add(messages - begun, Ordering::Relaxed);
                    }
                    // Messages that follow in the buffer were not begun, and never will be.
                    let (_, frame_end) = begun_frames(frames, written);
                    let rest = frame_end.saturating_sub(written);
                    if rest <= REST_MAX {
                        self.unsent = [first, second].concat();
                        self.unsent.truncate(rest);
                        self.leave_close_frame(&error);
                    }
                    return Err(error);
                }
            }
            let (messages, _) = begun_frames(frames, written);
            self.messages_begun
                .fetch_add(messages - begun, Ordering::Relaxed);
            begun = messages;
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), SocketWriteError> {
        progress(self.stall, self.io.flush()).await
    }

    fn fail(&mut self, error: SocketWriteError) -> SocketWriteError {
        self.state = WriteState::Failed(error.clone());
        error
    }
}

/// A code and as much of its reason as fits into a close frame.
fn close_payload(code: Option<u16>, reason: &str) -> Vec<u8> {
    let Some(code) = code else {
        return Vec::new();
    };
    let mut payload = code.to_be_bytes().to_vec();
    let ends = (0..=reason.len().min(CONTROL_MAX - 2)).rev();
    let end = ends.into_iter().find(|end| reason.is_char_boundary(*end));
    payload.extend_from_slice(&reason.as_bytes()[..end.unwrap_or(0)]);
    payload
}

/// One step of writing, which must not take longer than `stall`.
async fn progress<T>(
    stall: Duration,
    step: impl Future<Output = IoResult<T>>,
) -> Result<T, SocketWriteError> {
    match timeout(stall, step).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(SocketWriteError::Broken(error.to_string())),
        Err(_) => Err(SocketWriteError::Stalled(stall)),
    }
}

fn some_bytes(written: usize) -> Result<usize, SocketWriteError> {
    match written {
        0 => Err(SocketWriteError::Broken("nothing is taken".to_owned())),
        written => Ok(written),
    }
}
