//! A frame: one message, who wrote it, the stream it travels on and what carried it.
//!
//! All of it is plain data, so that a link of the same kind can write what it read and the record can tell what
//! was on the wire. A frame does no I/O, knows no link, and holds no decision about itself.

use std::fmt;
use std::str::FromStr;

use crate::headers::HeaderEdits;
use crate::{Message, SseEvent};

/// One HTTP request with its response: a POST or a GET. Exchanges are numbered from 1 by the listener that accepts them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ExchangeId(pub u64);

/// The stream of a link that a message travels on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum StreamId {
    /// The link has one stream: stdio, a peer in this process. A server's message for an HTTP client also starts here,
    /// until the client's session chooses a stream for it.
    #[default]
    Only,
    /// The standing stream of an HTTP session, opened by GET.
    Standing,
    /// One HTTP exchange.
    Exchange(ExchangeId),
}

/// A message, who wrote it, and what carried it.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The stream it travels on.
    pub stream: StreamId,
    /// Who wrote it.
    pub origin: Origin,
    /// Its number in the record, once it has one.
    pub sequence: Option<u64>,
    /// The record's number of the call that made its sender send it. Only the hub knows one.
    pub parent: Option<u64>,
    /// What it came in.
    pub envelope: TransportEnvelope,
    /// Changes to the head of the HTTP request that the proxy makes for it, where HTTP begins here.
    pub header_edits: Option<Box<HeaderEdits>>,
    /// The message, if there is one.
    pub body: Body,
}

/// What a message came in.
#[derive(Clone, Debug)]
pub enum TransportEnvelope {
    /// A line on stdio.
    Line(LineEnd),
    /// The body of an HTTP request.
    Request(Box<http::request::Parts>),
    /// The body of an HTTP response that is not an event stream, or the head of one that is.
    Response(Box<http::response::Parts>),
    /// An event of an SSE stream.
    Event(Box<SseEvent>),
    /// Nothing: the peer runs in this process, or the link keeps no envelope.
    Bare,
}

/// How a line ended on the wire, so that it can be written the same way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum LineEnd {
    /// `\n`, as the specification says.
    #[default]
    Lf,
    /// `\r\n`, as some programs write.
    CrLf,
    /// Nothing: the last line before the end of the stream.
    Missing,
}

impl LineEnd {
    /// The bytes themselves.
    pub const fn as_bytes(self) -> &'static [u8] {
        match self {
            LineEnd::Lf => b"\n",
            LineEnd::CrLf => b"\r\n",
            LineEnd::Missing => b"",
        }
    }
}

/// What a frame carries.
#[derive(Clone, Debug)]
pub enum Body {
    /// No message: a GET, a 202, a comment.
    Empty,
    /// A message.
    Message(Message),
}

/// One of the two sides of the proxy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// Where the MCP client is.
    Client,
    /// Where the MCP server is.
    Server,
}

/// Who wrote a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// The client.
    Client,
    /// The server.
    Server,
    /// The proxy itself: an error answer, a progress notification, an answer that a rule gave.
    Proxy,
    /// A person or a program that sent a recorded or edited message again.
    Replay,
}

/// Which way a message goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// From the client to the server.
    ClientToServer,
    /// From the server to the client.
    ServerToClient,
}

/// How a peer is reached.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transport {
    /// Lines on the standard streams of a process.
    Stdio,
    /// HTTP+SSE of revision 2024-11-05.
    Sse,
    /// Streamable HTTP.
    StreamableHttp,
    /// WebSocket, between the relay and browsers.
    WebSocket,
    /// No transport: the peer runs in this process (a mock, a replay, the hub).
    InProcess,
}

impl StreamId {
    /// The exchange, if the stream is one.
    pub const fn exchange(self) -> Option<ExchangeId> {
        match self {
            StreamId::Exchange(exchange) => Some(exchange),
            StreamId::Only | StreamId::Standing => None,
        }
    }
}

impl From<ExchangeId> for StreamId {
    fn from(exchange: ExchangeId) -> StreamId {
        StreamId::Exchange(exchange)
    }
}

impl Frame {
    /// A frame that is not in the record yet.
    pub fn new(
        stream: impl Into<StreamId>,
        origin: Origin,
        envelope: TransportEnvelope,
        body: Body,
    ) -> Frame {
        Frame {
            stream: stream.into(),
            origin,
            sequence: None,
            parent: None,
            envelope,
            header_edits: None,
            body,
        }
    }

    /// A message that nothing carried: one of the proxy's own, or of a peer in this process.
    pub fn message(stream: impl Into<StreamId>, origin: Origin, message: Message) -> Frame {
        Frame::new(
            stream,
            origin,
            TransportEnvelope::Bare,
            Body::Message(message),
        )
    }

    /// Whether the proxy put it into the conversation: neither peer sent it.
    pub fn is_injected(&self) -> bool {
        matches!(self.origin, Origin::Proxy | Origin::Replay)
    }
}

impl Side {
    /// `client` or `server`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Side::Client => "client",
            Side::Server => "server",
        }
    }

    /// The other side.
    pub const fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

impl Origin {
    /// `client`, `server`, `proxy` or `replay`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Origin::Client => "client",
            Origin::Server => "server",
            Origin::Proxy => "proxy",
            Origin::Replay => "replay",
        }
    }
}

impl From<Side> for Origin {
    fn from(side: Side) -> Origin {
        match side {
            Side::Client => Origin::Client,
            Side::Server => Origin::Server,
        }
    }
}

impl Direction {
    /// `client_to_server` or `server_to_client`, as the seed's session format spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Direction::ClientToServer => "client_to_server",
            Direction::ServerToClient => "server_to_client",
        }
    }

    /// The side that sent the message.
    pub const fn from(self) -> Side {
        match self {
            Direction::ClientToServer => Side::Client,
            Direction::ServerToClient => Side::Server,
        }
    }

    /// The side that the message is for.
    pub const fn to(self) -> Side {
        self.from().other()
    }

    /// The way back.
    pub const fn reverse(self) -> Direction {
        match self {
            Direction::ClientToServer => Direction::ServerToClient,
            Direction::ServerToClient => Direction::ClientToServer,
        }
    }
}

impl Transport {
    /// Every transport, in the order of their numbers in the index.
    pub const ALL: [Transport; 5] = [
        Transport::Stdio,
        Transport::Sse,
        Transport::StreamableHttp,
        Transport::WebSocket,
        Transport::InProcess,
    ];

    /// `stdio`, `sse` or `streamable_http`, as the seed's session format spells them, `websocket` or `in_process`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Transport::Stdio => "stdio",
            Transport::Sse => "sse",
            Transport::StreamableHttp => "streamable_http",
            Transport::WebSocket => "websocket",
            Transport::InProcess => "in_process",
        }
    }
}

impl fmt::Display for ExchangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that names no [`Direction`] or [`Transport`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// What was read.
    pub found: String,
    /// What would have been understood.
    pub allowed: &'static str,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not one of {}", self.found, self.allowed)
    }
}

impl std::error::Error for UnknownName {}

impl FromStr for Direction {
    type Err = UnknownName;

    fn from_str(word: &str) -> Result<Direction, UnknownName> {
        match word {
            "client_to_server" => Ok(Direction::ClientToServer),
            "server_to_client" => Ok(Direction::ServerToClient),
            _ => Err(UnknownName {
                found: word.to_owned(),
                allowed: "client_to_server, server_to_client",
            }),
        }
    }
}

impl FromStr for Transport {
    type Err = UnknownName;

    /// Reads the seed's spelling and that of the command line.
    fn from_str(word: &str) -> Result<Transport, UnknownName> {
        match word {
            "stdio" => Ok(Transport::Stdio),
            "sse" => Ok(Transport::Sse),
            "streamable_http" | "streamable-http" => Ok(Transport::StreamableHttp),
            "websocket" => Ok(Transport::WebSocket),
            "in_process" => Ok(Transport::InProcess),
            _ => Err(UnknownName {
                found: word.to_owned(),
                allowed: "stdio, sse, streamable-http, websocket, in_process",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for transport in Transport::ALL {
            assert_eq!(transport.as_str().parse(), Ok(transport));
        }
        for direction in [Direction::ClientToServer, Direction::ServerToClient] {
            assert_eq!(direction.as_str().parse(), Ok(direction));
            assert_eq!(direction.reverse().from(), direction.to());
        }
        assert_eq!("streamable-http".parse(), Ok(Transport::StreamableHttp));
        assert!("http".parse::<Transport>().is_err());
    }
}
