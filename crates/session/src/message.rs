//! `ProxyMessage`: one message as a reader sees it, with the verdicts on it folded in.
//!
//! The seed's fields come first and mean what the seed says; the rest is what this proxy knows besides.

mod batch_part;
mod json;
mod remarks;

pub use batch_part::BatchPart;
pub(crate) use batch_part::batch_parts;
pub use json::{BodyInclusion, MessageWithContext, RequestSummary, raw_member};
pub use remarks::{MessageProblem, remark_words};

use crate::{MessageId, ReplayOrigin, subject_name};
use bytes::Bytes;
use mcp_proxy_wire::{Direction, Field, Kind, Message, Origin, Transport, flatten};
use serde::Deserialize;
use std::borrow::Cow;
use std::time::{Duration, SystemTime};

/// One recorded message.
#[derive(Debug, Clone)]
pub struct ProxyMessage {
    /// The proxy's id for it.
    pub id: MessageId,
    /// Monotonic number within the session.
    pub sequence: u64,
    /// When the proxy received it.
    pub timestamp: SystemTime,
    /// Which way it travels.
    pub direction: Direction,
    /// The transport of the link it was read from.
    pub transport: Transport,
    /// Its bytes: the forwarded ones, if a verdict changed them.
    pub raw: RawBody,
    /// The JSON-RPC id's raw token (`1`, `1.0` and `"1"` differ).
    pub jsonrpc_id: Option<String>,
    /// The id that the server knows it by, where that is not the client's: on a connection that several clients share.
    pub server_id: Option<String>,
    /// The JSON-RPC method.
    pub method: Option<String>,
    /// The proxy id of the request that it answers.
    pub correlated_id: Option<MessageId>,
    /// Whether a verdict changed it.
    pub modified: bool,
    /// The bytes as received, if a verdict changed them.
    pub original_raw: Option<RawBody>,
    /// What kind of message it is.
    pub kind: Kind,
    /// What the request is about: the tool's or prompt's name, or the resource's URI.
    pub name: Option<String>,
    /// The connection's number.
    pub connection: u32,
    /// The exchange within the connection.
    pub exchange: u64,
    /// When it was received on the monotonic clock, since the session started.
    pub mono: Duration,
    /// Sequence number of the request that it answers.
    pub answers: Option<u64>,
    /// How long the server took for the answer: from the moment its request was forwarded.
    pub latency: Option<Duration>,
    /// For an answer: how long its request was held or delayed before it was forwarded. `latency` is without it.
    pub request_held: Option<Duration>,
    /// It answers a request that was given up.
    pub late: bool,
    /// It answers a request that had its answer.
    pub duplicate: bool,
    /// Who wrote it.
    pub origin: Origin,
    /// The sequence number of the call that caused it: its own, that of its request, or that of its connection.
    pub parent: Option<u64>,
    /// A verdict dropped it.
    pub dropped: bool,
    /// A verdict refused it.
    pub refused: bool,
    /// The proxy answered it in the place of the peer, so it was not forwarded.
    pub answered: bool,
    /// It was held, and nobody has decided about it: it waits, or the proxy was killed.
    pub undecided: bool,
    /// How long it was held or delayed itself, as far as that is over.
    pub held: Option<Duration>,
    /// A rule delayed it.
    pub delayed: bool,
    /// A rule sent it to another server.
    pub redirected: bool,
    /// How many values were hidden in it and in the verdicts on it; 0 is none. A body that could not be looked through counts as one.
    pub redacted: u32,
    /// Length of the body: as received, or without what was hidden.
    pub len: u64,
    /// What is known about each part of a batch.
    pub parts: Vec<BatchPart>,
    /// HTTP facts, if it came in an HTTP body.
    pub http: Option<HttpHead>,
    /// SSE facts, if it came as an event.
    pub sse: Option<SseFields>,
    /// Of a replay: the message that was sent again.
    pub replay_of: Option<ReplayOrigin>,
    /// The verdicts on it, in order.
    pub verdicts: Vec<Verdict>,
}

/// A message's bytes, sorted by what can be done with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawBody {
    /// One JSON value that may stand inside another document.
    Json(Bytes),
    /// Text that is not.
    Text(String),
    /// Neither.
    Binary(Bytes),
    /// Not in the record: redaction could not look through it, or the record is of format 2 and had it in another file.
    NotStored {
        /// How long it was.
        len: u64,
    },
}

/// The head of the HTTP request or response that carried a message. Credentials are masked unless they were kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct HttpHead {
    /// A request's method.
    #[serde(default)]
    pub method: Option<String>,
    /// A request's target.
    #[serde(default)]
    pub target: Option<String>,
    /// A response's status.
    #[serde(default)]
    pub status: Option<u16>,
    /// `HTTP/1.1`, `HTTP/2.0`, …
    #[serde(default)]
    pub version: String,
    /// Names in lower case, in their order.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
}

impl HttpHead {
    /// The first value of a header. `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// The fields of the SSE event that carried a message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct SseFields {
    /// `id`.
    #[serde(default)]
    pub id: Option<String>,
    /// `event`.
    #[serde(default)]
    pub event: Option<String>,
    /// `retry`, in milliseconds.
    #[serde(default)]
    pub retry: Option<u64>,
    /// The stream ended inside the event.
    #[serde(default)]
    pub partial: bool,
}

/// A verdict on a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// When.
    pub timestamp: SystemTime,
    /// `modify`, `drop`, `refuse`, …
    pub kind: String,
    /// Who.
    pub by: String,
    /// Why.
    pub why: String,
    /// How long it delays the message.
    pub delay: Option<Duration>,
    /// The message that was sent again with this one.
    pub replay_of: Option<ReplayOrigin>,
    /// How many values were hidden in it.
    pub redacted: u32,
    /// The bytes before.
    pub original_raw: Option<RawBody>,
    /// The bytes after.
    pub raw: Option<RawBody>,
}

impl RawBody {
    /// Sorts bytes that are in memory.
    pub fn classify(bytes: Bytes) -> RawBody {
        let message = Message::parse(bytes);
        // A body over several lines is JSON like any other; flattening also says whether it is shallow enough.
        if message.fits_in_json_line()
            || (message.is_json() && flatten(&message).is_some_and(|flat| flat.fits_in_json_line()))
        {
            return RawBody::Json(message.into_raw());
        }
        match String::from_utf8(message.into_raw().into()) {
            Ok(text) => RawBody::Text(text),
            Err(error) => RawBody::Binary(error.into_bytes().into()),
        }
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            RawBody::Json(bytes) | RawBody::Binary(bytes) => bytes.len() as u64,
            RawBody::Text(text) => text.len() as u64,
            RawBody::NotStored { len } => *len,
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes; `None` if they were not stored.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            RawBody::Json(bytes) | RawBody::Binary(bytes) => Some(bytes),
            RawBody::Text(text) => Some(text.as_bytes()),
            RawBody::NotStored { .. } => None,
        }
    }

    /// The bytes; none if they were not stored.
    pub fn to_bytes(&self) -> Bytes {
        match self {
            RawBody::Json(bytes) | RawBody::Binary(bytes) => bytes.clone(),
            RawBody::Text(text) => Bytes::copy_from_slice(text.as_bytes()),
            RawBody::NotStored { .. } => Bytes::new(),
        }
    }
}

impl ProxyMessage {
    /// The client or the server of its connection wrote it, and not the proxy or a replay.
    pub fn is_from_peer(&self) -> bool {
        self.origin == Origin::from(self.direction.from())
    }

    /// It was forwarded under this id, which the client knows its request by. `raw` has it too.
    pub(crate) fn show_client_id(&mut self, id: String) {
        if let RawBody::Json(bytes) = &self.raw {
            let received = Message::parse(bytes.clone());
            let span = received.span(Field::Id);
            let sent = span.and_then(|span| received.splice(&[(span, id.as_bytes())]).ok());
            if let Some(sent) = sent {
                self.raw = RawBody::Json(sent.into_raw());
            }
        }
        self.server_id = self.jsonrpc_id.replace(id);
    }

    /// The verdicts, applied in order: `raw` is what was forwarded, `original_raw` what was received.
    pub(crate) fn apply_verdict(&mut self, verdict: Verdict) {
        if verdict.replay_of.is_some() {
            // It says where the message comes from, and decides nothing.
            self.replay_of = verdict.replay_of;
            return;
        }
        match verdict.kind.as_str() {
            "drop" => self.dropped = true,
            "refuse" => self.refused = true,
            "error" | "answer" => self.answered = true,
            "delay" => self.delayed = true,
            "redirect" => self.redirected = true,
            _ => {}
        }
        let waited = match self.verdicts.last() {
            Some(hold) if self.undecided => verdict.timestamp.duration_since(hold.timestamp).ok(),
            _ => None,
        };
        for time in [waited, verdict.delay].into_iter().flatten() {
            self.held = Some(self.held.unwrap_or_default() + time);
        }
        self.undecided = verdict.kind == "hold";
        self.redacted = self.redacted.saturating_add(verdict.redacted);
        if verdict.kind == "modify" || verdict.raw.is_some() {
            self.modified = true;
        }
        if let Some(raw) = &verdict.raw {
            // The fields describe `raw`, so they follow it.
            if let RawBody::Json(bytes) = raw {
                let changed = Message::parse(bytes.clone());
                self.kind = changed.kind();
                self.method = changed.method().map(Cow::into_owned);
                self.name = subject_name(&changed).map(Cow::into_owned);
                self.jsonrpc_id = changed
                    .id_token()
                    .map(|token| String::from_utf8_lossy(token).into_owned());
                self.parts = batch_part::updated_batch_parts(&changed, &self.parts);
            }
            let received = std::mem::replace(&mut self.raw, raw.clone());
            self.original_raw.get_or_insert(received);
        }
        if let Some(original) = &verdict.original_raw
            && self
                .verdicts
                .iter()
                .all(|earlier| earlier.original_raw.is_none())
        {
            self.original_raw = Some(original.clone());
        }
        self.verdicts.push(verdict);
    }
}
