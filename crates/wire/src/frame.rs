//! A frame: one message (or a piece of one) together with how it was carried.
//!
//! The carriage is plain data, so that a link of the same kind can write what it read and the record can tell what
//! was on the wire. A frame does no I/O and knows no link.

use std::fmt;
use std::str::FromStr;

use crate::{Chunk, Message, SseEvent};

/// One POST or GET over HTTP; one in all for stdio.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct ExchangeId(pub u64);

/// A message, what carried it, and the exchange that it belongs to.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The exchange that it belongs to.
    pub exchange: ExchangeId,
    /// What it came in.
    pub carriage: Carriage,
    /// The message, or the piece of it that is here.
    pub body: Body,
}

/// What a message came in.
#[derive(Clone, Debug)]
pub enum Carriage {
    /// A line on stdio.
    Line(LineEnd),
    /// The body of an HTTP request.
    Request(Box<http::request::Parts>),
    /// The body of an HTTP response that is no event stream, or the head of one that is.
    Response(Box<http::response::Parts>),
    /// An event of an SSE stream.
    Event(Box<SseEvent>),
    /// A terminated link, where messages have no carriage of their own.
    Message,
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

/// The message in a frame. One over the cut size comes as `Open`, any number of `More`, `Close`.
#[derive(Clone, Debug)]
pub enum Body {
    /// No message: a GET, a 202, a comment.
    Empty,
    /// A whole message.
    Whole(Message),
    /// The first piece of a message that is cut through.
    Open(Chunk),
    /// A further piece.
    More(Chunk),
    /// The last piece. Until it is written the other side cannot take the message for complete.
    Close(Chunk),
    /// A message that somebody decided not to pass on. It is written nowhere; where a client waits for an HTTP answer
    /// to it, or where it is that answer, the exchange ends without one.
    Withheld(Message),
    /// A message that somebody put into the place of another, where whoever waits is found by that other one: it goes to
    /// whom that would have gone. Towards a client that sent it: what it waits for has become this.
    Instead(Box<Instead>),
}

/// What stands in the place of what.
#[derive(Clone, Debug)]
pub struct Instead {
    /// As it was received.
    pub was: Message,
    /// As it goes on.
    pub now: Message,
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
        write!(f, "`{}` is none of {}", self.found, self.allowed)
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
