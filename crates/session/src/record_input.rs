//! What the pipeline hands to the recorder: a message received, a verdict on it, and everything else that happened.
//!
//! All of it is borrowed or small, so that recording a message copies its bytes once, into the pending line. The shapes on disk
//! are described in `docs/record-format.md`.

use crate::{MessageId, PeerInfo};
use bytes::Bytes;
use mcp_proxy_wire::{Direction, Id, Kind, Message, Origin, Transport, TransportEnvelope};
use std::time::{Duration, SystemTime};

/// A message as it was received, before any verdict.
#[derive(Debug, Clone, Copy)]
pub struct NewMessage<'a> {
    /// Monotonic number within the session, from 1.
    pub sequence: u64,
    /// The proxy's id for it.
    pub id: MessageId,
    /// When it was received.
    pub time: SystemTime,
    /// The same on the monotonic clock, since the session started.
    pub mono: Duration,
    /// Which way it travels.
    pub direction: Direction,
    /// The transport of the link it was read from.
    pub transport: Transport,
    /// The connection, written `c1`, `c2`, …
    pub connection: u32,
    /// The exchange within the connection (one per POST or GET; one in all for stdio).
    pub exchange: u64,
    /// Who wrote it.
    pub origin: Origin,
    /// The sequence number of the client's request that made the proxy send it. Not needed where that is the parent of the
    /// request that it answers, or of its connection ([`RecordEvent::Open`]).
    pub parent: Option<u64>,
    /// How it was carried: HTTP facts and SSE facts become part of the record.
    pub envelope: &'a TransportEnvelope,
    /// Its bytes.
    pub body: NewBody<'a>,
    /// The request it answers, if the caller found one.
    pub answered_request: Option<AnsweredRequest>,
    /// The id that the client knows the request by, where the server knows it by another one.
    pub client_id: Option<&'a Id>,
    /// It answers a request that was already given up or cancelled.
    pub late: bool,
    /// It answers a request that already had an answer.
    pub duplicate: bool,
    /// For a batch: what the caller found out about each part.
    pub parts: &'a [NewBatchPart],
}

/// Where a message's bytes are.
#[derive(Debug, Clone, Copy)]
pub enum NewBody<'a> {
    /// All of them.
    Whole(&'a Message),
    /// No bytes: an empty line. (An HTTP request or response without a body, or an event without data, is recorded as `io`.)
    Empty,
}

/// The request that a message answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnsweredRequest {
    /// The request's proxy id.
    pub id: MessageId,
    /// The request's sequence number.
    pub sequence: u64,
    /// From forwarding the request to receiving this answer: the server's own time.
    pub latency: Duration,
    /// How long the request was held or delayed before it was forwarded.
    pub held: Duration,
}

/// One part of a batch.
#[derive(Debug, Clone)]
pub struct NewBatchPart {
    /// What kind of message the part is.
    pub kind: Kind,
    /// The part's JSON-RPC id.
    pub id: Option<Id>,
    /// The part's method.
    pub method: Option<String>,
    /// The request it answers.
    pub answered_request: Option<AnsweredRequest>,
}

/// A verdict: what the proxy (or a person through it) did with a message. Written before its effect.
#[derive(Debug, Clone)]
pub struct NewVerdict {
    /// When it was decided.
    pub time: SystemTime,
    /// The message's sequence number.
    pub sequence: Option<u64>,
    /// The message's proxy id.
    pub message: Option<MessageId>,
    /// `forward`, `modify`, `drop`, `refuse`, `answer`, `hold`, …: a short verb.
    pub kind: &'static str,
    /// Who decided: `user`, `rule:…`, `proxy`.
    pub by: String,
    /// Why, for people.
    pub why: String,
    /// How long the message is delayed, if that is what was decided.
    pub delay: Option<Duration>,
    /// Of the kind `replay`: the message that was sent again.
    pub replay_of: Option<ReplayOrigin>,
    /// The message's bytes before the change, if the `msg` record does not show them.
    pub original_raw: Option<Bytes>,
    /// The bytes that are forwarded instead.
    pub raw: Option<Bytes>,
}

/// The message that a replay sends again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayOrigin {
    /// Its sequence number.
    pub sequence: u64,
    /// Whether it was edited before it was sent again.
    pub is_edited: bool,
}

/// Everything that happened besides messages and verdicts.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum RecordEvent<'a> {
    /// A line the server wrote to stderr, without its newline.
    Stderr {
        /// The connection whose process wrote it.
        connection: u32,
        /// The line.
        line: &'a [u8],
    },
    /// Bytes where a message was expected: noise on a server's stdout.
    Stray {
        /// The connection.
        connection: u32,
        /// The direction they came from.
        direction: Direction,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// An HTTP request or response without a body, the head of an event stream, or an event without data.
    Http {
        /// The connection.
        connection: u32,
        /// The exchange.
        exchange: u64,
        /// Requests travel from client to server, responses back.
        direction: Direction,
        /// The transport of the link it was read from.
        transport: Transport,
        /// The head.
        envelope: &'a TransportEnvelope,
    },
    /// A connection began.
    Open {
        /// The connection.
        connection: u32,
        /// Who is at the client's end.
        client: &'a PeerInfo,
        /// Who is at the server's end.
        server: &'a PeerInfo,
        /// The sequence number of the client's request that made the proxy open it. It counts for every message of the
        /// connection that has none of its own or of its request.
        parent: Option<u64>,
    },
    /// A connection ended.
    Close {
        /// The connection.
        connection: u32,
        /// Why.
        why: &'a str,
    },
    /// The server's process ended.
    Exit {
        /// The connection.
        connection: u32,
        /// Its exit code, if it exited.
        code: Option<i32>,
        /// The signal, if it was killed.
        signal: Option<i32>,
        /// What the proxy knows about the reason.
        why: &'a str,
    },
    /// A recorded message could not be delivered.
    Undelivered {
        /// The message.
        sequence: u64,
        /// Why.
        why: &'a str,
    },
    /// Anything else worth keeping.
    Note {
        /// The text.
        text: &'a str,
    },
    /// A note that a person wrote.
    UserNote {
        /// The number of the message that it is about.
        sequence: Option<u64>,
        /// Who wrote it.
        by: &'a str,
        /// The text.
        text: &'a str,
    },
    /// A note that marks a message, or takes the mark away.
    Mark {
        /// The message's number.
        sequence: u64,
        /// Which of the two.
        mark: MarkOperation,
        /// Who did it.
        by: &'a str,
    },
}

/// What is done with a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkOperation {
    /// The message has it from now on.
    Set,
    /// It has it no more.
    Removed,
}

impl MarkOperation {
    /// As records and the control protocol call it.
    pub const fn as_str(self) -> &'static str {
        match self {
            MarkOperation::Set => "set",
            MarkOperation::Removed => "removed",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<MarkOperation> {
        [MarkOperation::Set, MarkOperation::Removed]
            .into_iter()
            .find(|mark| mark.as_str() == name)
    }
}
