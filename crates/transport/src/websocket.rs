//! WebSockets of clients (RFC 6455), next to HTTP on the same listener.
//!
//! `handshake` grants an upgrade, `decoder` makes events of bytes with the help of `frames` and `utf8`, `reader` and `writer`
//! are the two halves of a socket. Own code instead of a library's, because libraries collect whole messages: here a
//! message of any length passes in pieces of at most 128 KiB. Extensions such as compression are never negotiated.

mod decoder;
mod frames;
mod handshake;
mod link;
mod peer_watch;
mod reader;
#[cfg(test)]
mod tests;
mod utf8;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

use self::peer_watch::PeerSilence;
use crate::http::UpgradedStream;

pub use handshake::accept_websocket;
pub use link::{WebSocketHandle, websocket_link};
pub use reader::SocketReader;
pub use writer::{OutgoingPiece, PiecePart, SocketWriteError, SocketWriter};

/// No piece of a message is longer.
const PIECE_MAX: usize = 128 * 1024;

/// How a WebSocket is served.
#[derive(Clone, Debug)]
pub struct SocketOptions {
    /// A message up to this length is one event; a longer one arrives in pieces. At most 128 KiB.
    pub stream_above: usize,
    /// The longest message at first; see [`SocketReader::set_max_message`].
    pub max_message: usize,
    /// A peer that takes nothing for this long is given up.
    pub stall: Duration,
    /// How long the peer may take to answer a close frame.
    pub close_deadline: Duration,
    /// How long the peer may say nothing. `None`: for ever.
    pub silence: Option<SilenceLimits>,
}

/// How long a peer may say nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SilenceLimits {
    /// Then it gets a ping. After half of this time, a ping already travels with the next message.
    pub ping_after: Duration,
    /// If nothing comes for this long after the ping, the peer is given up.
    pub answer_within: Duration,
}

impl Default for SocketOptions {
    fn default() -> SocketOptions {
        SocketOptions {
            stream_above: 64 * 1024,
            max_message: 256 * 1024,
            stall: Duration::from_secs(5),
            close_deadline: Duration::from_secs(2),
            silence: None,
        }
    }
}

/// What a peer sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// A whole text or binary message.
    Message(Bytes),
    /// The next piece of a message that is too long to be collected. The first piece has at least
    /// [`SocketOptions::stream_above`] bytes. No other message comes before the last piece.
    Piece {
        /// At most 128 KiB.
        bytes: Bytes,
        /// The message ends with it.
        is_last: bool,
    },
    /// The answer to a ping, or a sign of life that nobody asked for.
    Pong,
}

/// How a socket ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SocketEnd {
    /// The peer closed it.
    #[error("the peer closed the WebSocket with code {code:?} {reason:?}")]
    ClosedByPeer {
        /// The close code, if the peer named one.
        code: Option<u16>,
        /// The peer's text, often empty.
        reason: String,
    },
    /// We closed it, and the peer agreed.
    #[error("the WebSocket was closed")]
    Closed,
    /// We closed it, and the peer did not answer in time.
    #[error("the peer did not answer the close frame in time")]
    CloseUnanswered,
    /// The connection ended without a close frame.
    #[error("the connection of the WebSocket ended: {0}")]
    Broken(String),
    /// The peer took nothing for [`SocketOptions::stall`].
    #[error("the peer took nothing for {0:?}")]
    Stalled(Duration),
    /// The peer sent nothing for this long, not even the answer to a ping.
    #[error("the peer sent nothing for {0:?} and did not answer a ping")]
    Silent(Duration),
    /// The peer sent what it must not send, and was told so.
    #[error(transparent)]
    Violation(#[from] SocketViolation),
}

/// What a peer must not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SocketViolation {
    /// Frames that are not those of RFC 6455.
    #[error("the peer broke the WebSocket protocol: {0}")]
    Protocol(&'static str),
    /// A text that is not UTF-8.
    #[error("the peer sent text that is not UTF-8")]
    NotUtf8,
    /// A message over the limit.
    #[error("the peer sent a message of more than {limit} bytes")]
    TooLong {
        /// What was allowed.
        limit: usize,
    },
}

impl SocketViolation {
    /// The code to close with.
    pub fn close_code(self) -> u16 {
        match self {
            SocketViolation::Protocol(_) => 1002,
            SocketViolation::NotUtf8 => 1007,
            SocketViolation::TooLong { .. } => 1009,
        }
    }

    /// The reason to close with, short enough for a close frame.
    fn close_reason(self) -> &'static str {
        match self {
            SocketViolation::Protocol(what) => what,
            SocketViolation::NotUtf8 => "text is not UTF-8",
            SocketViolation::TooLong { .. } => "message is too long",
        }
    }
}

/// An open WebSocket of a client.
pub struct WebSocket<S = UpgradedStream> {
    reader: SocketReader<S>,
    writer: SocketWriter<S>,
}

impl<S: AsyncRead + AsyncWrite + Send> WebSocket<S> {
    /// A socket whose handshake is done.
    fn new(stream: S, options: &SocketOptions) -> WebSocket<S> {
        let (reading, writing) = tokio::io::split(stream);
        let silence = options
            .silence
            .map(|limits| Arc::new(PeerSilence::new(limits)));
        let side = writer::WriteSide::new(writing, options.stall, silence.clone());
        let (tell, news) = oneshot::channel();
        let writer = SocketWriter::new(side, tell);
        WebSocket {
            reader: SocketReader::new(reading, writer.side(), news, silence, options),
            writer,
        }
    }

    /// The two halves, for two tasks. The connection ends when both are dropped.
    pub fn split(self) -> (SocketReader<S>, SocketWriter<S>) {
        (self.reader, self.writer)
    }
}
