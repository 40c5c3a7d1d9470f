//! A WebSocket as a link: each message is a frame.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use mcp_proxy_core::{
    BoxFuture, FrameReader, FrameWriter, Link, LinkEnd, MemoryBudget, MemoryPermit, OutgoingFrame,
};
use mcp_proxy_wire::{
    Body, ErrorCode, Frame, Message, MessageEnds, Origin, Side, StreamId, TransportEnvelope,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout, timeout_at};
use tungstenite::error::{Error, ProtocolError};
use tungstenite::protocol::Message as SocketMessage;
use tungstenite::protocol::frame::coding::{Data, OpCode};
use tungstenite::protocol::frame::{CloseFrame, Frame as SocketFrame};

use super::shared_socket::{SharedSocket, SocketHalf, lock};
use super::{SilenceLimits, SocketEnd, SocketOptions};
use crate::refused_message::RefusedMessage;

/// The close code of a socket that has done its work.
const NORMAL: u16 = 1000;
/// How a peer is closed that does not read: "try again later".
const NOT_READ: (u16, &str) = (1013, "nothing was read");
/// The longest reason that fits into a close frame, with its code.
const REASON_MAX: usize = 123;
/// How long the end of a socket may take to reach its peer.
const WIND_UP_DEADLINE: Duration = Duration::from_secs(2);
/// A longer message is sent in several frames, so that a ping or a close frame need not wait for its end.
const FRAME_MAX: usize = 64 << 10;
/// Messages that are passed on together, if so many have come.
const READ_TOGETHER: usize = 64;

/// What a link cannot say about its socket.
#[derive(Debug)]
pub struct WebSocketHandle {
    max_message: OnceLock<usize>,
    messages_begun: AtomicU64,
    close: Mutex<(u16, String)>,
    /// Why nothing more can be read.
    end: OnceLock<SocketEnd>,
}

impl WebSocketHandle {
    /// With what the socket is closed when its writer is.
    pub fn set_close(&self, code: u16, reason: &str) {
        *lock(&self.close) = (code, reason.to_owned());
    }

    /// The peer is known: how long its messages may be, from the next one on. It can be said once.
    pub fn set_max_message(&self, bytes: usize) {
        let _ = self.max_message.set(bytes);
    }

    /// How many messages may have reached the peer, so far. The others have not, whatever has failed or was given up.
    pub fn messages_begun(&self) -> u64 {
        self.messages_begun.load(Ordering::Relaxed)
    }

    /// Why nothing more can be read from the socket, once that is so.
    pub fn end(&self) -> Option<&SocketEnd> {
        self.end.get()
    }

    /// Notes how the socket has ended, and what its peer is to be told.
    fn note_end(&self, end: SocketEnd) -> LinkEnd {
        match &end {
            SocketEnd::Violation(violation) => {
                self.set_close(violation.close_code(), violation.close_reason());
            }
            SocketEnd::Stalled(_) => self.set_close(NOT_READ.0, NOT_READ.1),
            _ => {}
        }
        link_end(self.end.get_or_init(|| end))
    }

    fn close_frame(&self) -> CloseFrame {
        let (code, reason) = lock(&self.close).clone();
        let ends = (0..=reason.len().min(REASON_MAX)).rev();
        let end = ends.into_iter().find(|end| reason.is_char_boundary(*end));
        CloseFrame {
            code: code.into(),
            reason: reason[..end.unwrap_or(0)].into(),
        }
    }
}

/// The link of a socket whose handshake is done, and its handle. Large messages count in `memory`.
pub(super) fn websocket_link<S>(
    stream: S,
    options: SocketOptions,
    memory: &MemoryBudget,
) -> (Link, Arc<WebSocketHandle>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let socket = Arc::new(SharedSocket::new(stream, &options));
    let handle = Arc::new(WebSocketHandle {
        max_message: OnceLock::new(),
        messages_begun: AtomicU64::new(0),
        close: Mutex::new((NORMAL, String::new())),
        end: OnceLock::new(),
    });
    let reader = MessageReader {
        socket: Arc::clone(&socket),
        handle: Arc::clone(&handle),
        memory: memory.permit(),
        refusals: Vec::new(),
        pinged_at: None,
        options,
    };
    let writer = MessageWriter {
        socket,
        handle: Arc::clone(&handle),
        is_sending: false,
    };
    (Link::new(reader, writer), handle)
}

struct MessageReader<S> {
    socket: Arc<SharedSocket<S>>,
    handle: Arc<WebSocketHandle>,
    memory: MemoryPermit,
    refusals: Vec<Message>,
    /// When a silent peer got a ping.
    pinged_at: Option<Instant>,
    options: SocketOptions,
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> FrameReader for MessageReader<S> {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            if let Some(end) = self.handle.end() {
                return Err(link_end(end));
            }
            let read = self.read_messages(into).await;
            read.map_err(|end| self.handle.note_end(end))
        })
    }

    fn refusals(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.refusals)
    }

    fn wind_up(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let told = async {
                let close = self.handle.close_frame();
                self.socket.close(SocketHalf::Reader, close).await;
                self.socket.shut_down().await;
                // Closing a socket with unread bytes resets it, and the peer may lose the close frame.
                if let Some(SocketEnd::Violation(_)) = self.handle.end() {
                    self.socket.discard().await;
                }
            };
            let _ = timeout(WIND_UP_DEADLINE, told).await;
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> MessageReader<S> {
    /// Reads until there is a message or a refusal of one, and takes the others that have come with it.
    async fn read_messages(&mut self, into: &mut Vec<Frame>) -> Result<(), SocketEnd> {
        let limit = self.handle.max_message.get().copied();
        if let Some(limit) = limit {
            self.socket.set_max_message(limit);
        }
        let before = into.len();
        while into.len() == before && self.refusals.is_empty() {
            let next = match self.silence_due() {
                Some(due) => timeout_at(due, self.socket.next()).await,
                None => Ok(self.socket.next().await),
            };
            match next {
                Ok(next) => self.take(next, into)?,
                Err(_) => self.check_silence()?,
            }
        }
        // The first messages are taken one by one: they decide how long the next one may be.
        while limit.is_some()
            && into.len() - before < READ_TOGETHER
            && let Some(next) = self.socket.next_ready()
        {
            if let Err(end) = self.take(next, into) {
                // What came before it is read first.
                self.handle.note_end(end);
                break;
            }
        }
        Ok(())
    }

    /// Adds what the peer sent, if it is a message.
    fn take(
        &mut self,
        next: Result<SocketMessage, Error>,
        into: &mut Vec<Frame>,
    ) -> Result<(), SocketEnd> {
        let next = next.map_err(|error| self.socket.end_of(error))?;
        self.pinged_at = None;
        let bytes = match next {
            SocketMessage::Text(text) => Bytes::from(text),
            SocketMessage::Binary(bytes) => bytes,
            SocketMessage::Close(close) => return Err(closed_by_peer(close)),
            SocketMessage::Ping(_) | SocketMessage::Pong(_) | SocketMessage::Frame(_) => {
                return Ok(());
            }
        };
        if let Err(over) = self.memory.resize(bytes.len()) {
            let ends = MessageEnds::of(&bytes);
            let refused = RefusedMessage { over, ends };
            // A client sends requests, and an extension answers.
            let answer = refused.answer(Side::Client);
            self.refusals
                .extend(answer.or_else(|| refused.answer(Side::Server)));
            return Ok(());
        }
        self.memory.release();
        let body = Body::Message(Message::parse(bytes));
        let (stream, origin) = (StreamId::Only, Origin::Client);
        into.push(Frame::new(stream, origin, TransportEnvelope::Bare, body));
        Ok(())
    }

    /// Until when the peer may say nothing.
    fn silence_due(&self) -> Option<Instant> {
        let SilenceLimits {
            ping_after,
            answer_within,
        } = self.options.silence?;
        let heard_at = self.socket.heard_at();
        Some(match self.pinged_at {
            Some(pinged_at) if pinged_at >= heard_at => pinged_at + answer_within,
            _ => heard_at + ping_after,
        })
    }

    /// Asks a silent peer for a sign of life, or gives it up if it has not answered.
    fn check_silence(&mut self) -> Result<(), SocketEnd> {
        let now = Instant::now();
        if self.silence_due().is_none_or(|due| now < due) {
            // A part of a message has come.
            return Ok(());
        }
        let heard_at = self.socket.heard_at();
        if self
            .pinged_at
            .is_some_and(|pinged_at| pinged_at >= heard_at)
        {
            return Err(SocketEnd::Silent(now - heard_at));
        }
        self.pinged_at = Some(now);
        self.socket.ping();
        Ok(())
    }
}

fn closed_by_peer(close: Option<CloseFrame>) -> SocketEnd {
    let (code, reason) = match close {
        Some(close) => (Some(close.code.into()), close.reason.to_string()),
        None => (None, String::new()),
    };
    SocketEnd::ClosedByPeer { code, reason }
}

struct MessageWriter<S> {
    socket: Arc<SharedSocket<S>>,
    handle: Arc<WebSocketHandle>,
    /// A `write` has begun. To find this at the next one is to find that it was dropped, perhaps inside a message.
    is_sending: bool,
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> FrameWriter for MessageWriter<S> {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            if std::mem::replace(&mut self.is_sending, true) {
                return Err(LinkEnd::Closed);
            }
            let mut socket_frames = VecDeque::with_capacity(frames.len());
            for frame in frames.drain(..).filter_map(OutgoingFrame::into_written) {
                if let Body::Message(message) = frame.body {
                    split(message.into_raw(), &mut socket_frames);
                }
            }
            let begun = &self.handle.messages_begun;
            let sent = self.socket.send(socket_frames, begun).await;
            sent.map_err(|error| match error {
                // The reader knows better why it is closed.
                Error::ConnectionClosed
                | Error::AlreadyClosed
                | Error::Protocol(ProtocolError::SendAfterClosing) => LinkEnd::Closed,
                error => self.handle.note_end(self.socket.end_of(error)),
            })?;
            self.is_sending = false;
            Ok(())
        })
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let close = self.handle.close_frame();
            self.socket.close(SocketHalf::Writer, close).await;
        })
    }
}

/// The frames of a message. It is sent as text.
fn split(mut bytes: Bytes, frames: &mut VecDeque<SocketFrame>) {
    let mut kind = Data::Text;
    while bytes.len() > FRAME_MAX {
        let part = bytes.split_to(FRAME_MAX);
        frames.push_back(SocketFrame::message(part, OpCode::Data(kind), false));
        kind = Data::Continue;
    }
    frames.push_back(SocketFrame::message(bytes, OpCode::Data(kind), true));
}

fn link_end(end: &SocketEnd) -> LinkEnd {
    let code = match end {
        SocketEnd::ClosedByPeer { .. } | SocketEnd::Closed => return LinkEnd::Closed,
        SocketEnd::Broken(_) | SocketEnd::Silent(_) | SocketEnd::Violation(_) => {
            ErrorCode::BAD_REQUEST
        }
        SocketEnd::Stalled(_) => ErrorCode::PEER_STALLED,
    };
    LinkEnd::failed(Side::Client, code, end.to_string())
}
