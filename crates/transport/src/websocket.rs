//! WebSockets of clients (RFC 6455), next to HTTP on the same listener.
//!
//! `handshake` grants an upgrade, and `link` makes each message a frame of a link. tungstenite speaks the protocol in
//! `shared_socket`, over `polled_stream`, the connection with a deadline. Extensions such as compression are never negotiated.

mod handshake;
mod link;
mod polled_stream;
mod shared_socket;
#[cfg(test)]
mod tests;

use std::time::Duration;

use tungstenite::error::ProtocolError;

pub use handshake::accept_websocket;
pub use link::WebSocketHandle;

/// How a WebSocket is served.
#[derive(Clone, Debug)]
pub struct SocketOptions {
    /// The longest message until [`WebSocketHandle::set_max_message`]: a peer that nobody knows yet costs no more memory.
    pub max_first_message: usize,
    /// A peer that takes nothing for this long is given up.
    pub stall: Duration,
    /// How long the peer may say nothing. `None`: for ever.
    pub silence: Option<SilenceLimits>,
}

/// How long a peer may say nothing. A connection whose other end was unplugged looks like a silent one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SilenceLimits {
    /// Then it gets a ping.
    pub ping_after: Duration,
    /// If nothing comes for this long after the ping, the peer is given up.
    pub answer_within: Duration,
}

impl Default for SocketOptions {
    fn default() -> SocketOptions {
        SocketOptions {
            max_first_message: 256 << 10,
            stall: Duration::from_secs(5),
            silence: None,
        }
    }
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
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SocketViolation {
    /// Frames that are not those of RFC 6455.
    #[error("the peer broke the WebSocket protocol: {0}")]
    Protocol(ProtocolError),
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
    pub fn close_code(&self) -> u16 {
        match self {
            SocketViolation::Protocol(_) => 1002,
            SocketViolation::NotUtf8 => 1007,
            SocketViolation::TooLong { .. } => 1009,
        }
    }

    /// The reason to close with.
    fn close_reason(&self) -> &'static str {
        match self {
            SocketViolation::Protocol(_) => "protocol error",
            SocketViolation::NotUtf8 => "text is not UTF-8",
            SocketViolation::TooLong { .. } => "message is too long",
        }
    }
}
