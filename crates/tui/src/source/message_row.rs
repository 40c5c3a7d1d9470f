//! One row of the list, as values: what a screen shows about a message without opening it.
//!
//! Texts are as the peer sent them. The panes escape control characters before they draw them.

use std::time::{Duration, SystemTime};

use mcp_proxy_session::filter::is_http_error;
use mcp_proxy_session::{MessageWithContext, RawBody, Row, SessionRecord};
use mcp_proxy_wire::{Direction, Field, Kind, Message, Origin};

/// Bytes of a message that has no method and answers nothing, enough to fill a line.
const EXCERPT: usize = 256;

/// What the list shows of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    /// Its number within the session.
    pub sequence: u64,
    /// When it was received.
    pub time: SystemTime,
    /// Which way it travels.
    pub direction: Direction,
    /// The connection's number.
    pub connection: u32,
    /// What kind of message it is.
    pub kind: Kind,
    /// The method; of an answer, that of the request it answers.
    pub method: Option<String>,
    /// The tool, prompt or resource; of an answer, that of the request it answers.
    pub name: Option<String>,
    /// The beginning of a message that has no method and answers nothing known; the parts' methods of a batch.
    pub excerpt: Option<String>,
    /// The sequence number of the request that it answers.
    pub answers: Option<u64>,
    /// For an answer: how long it took.
    pub latency: Option<Duration>,
    /// Length of the body in bytes.
    pub len: u64,
    /// An error answer, or a tool's result that says it failed (of long messages that is not known here).
    pub is_error: bool,
    /// The status of the HTTP response that it came in, if that says that something went wrong.
    pub http_error: Option<u16>,
    /// A verdict changed it.
    pub modified: bool,
    /// A verdict dropped it.
    pub dropped: bool,
    /// A verdict refused it.
    pub refused: bool,
    /// The proxy answered it in the place of the peer.
    pub answered: bool,
    /// It was held, and nobody has decided about it.
    pub undecided: bool,
    /// It answers a request that was given up.
    pub late: bool,
    /// It answers a request that had its answer.
    pub duplicate: bool,
    /// Who wrote it.
    pub origin: Origin,
    /// It could not be delivered.
    pub undelivered: bool,
    /// A rule delayed it.
    pub delayed: bool,
    /// A rule sent it to another server.
    pub redirected: bool,
    /// Of a call, where calls are shown: its answer.
    pub answer: Option<Box<MessageRow>>,
}

impl MessageRow {
    /// The line of a whole message.
    pub fn of(told: &MessageWithContext) -> MessageRow {
        let message = &told.message;
        let (method, name) = match &told.request {
            Some(asked) => (Some(asked.method.clone()), asked.name.clone()),
            None => (message.method.clone(), message.name.clone()),
        };
        MessageRow {
            sequence: message.sequence,
            time: message.timestamp,
            direction: message.direction,
            connection: message.connection,
            kind: message.kind,
            excerpt: method.is_none().then(|| excerpt(told)).flatten(),
            method,
            name,
            answers: message.answers,
            latency: message.latency,
            len: message.len,
            is_error: is_error(told),
            http_error: http_error(told),
            modified: message.modified,
            dropped: message.dropped,
            refused: message.refused,
            answered: message.answered,
            undecided: message.undecided,
            late: message.late,
            duplicate: message.duplicate,
            origin: message.origin,
            undelivered: told.undelivered,
            delayed: message.delayed,
            redirected: message.redirected,
            answer: None,
        }
    }

    /// The line of a message that cannot be read, or is too long to be, from what the index knows.
    pub(super) fn of_row(session: &SessionRecord, row: &Row) -> MessageRow {
        let answer = matches!(row.kind(), Kind::Response | Kind::Error);
        let asked = row.peer().filter(|_| answer);
        let asked = asked.and_then(|peer| session.row(peer));
        let about = asked.unwrap_or(row);
        MessageRow {
            sequence: row.sequence(),
            time: row.time(),
            direction: row.direction(),
            connection: row.connection(),
            kind: row.kind(),
            method: session.method(about).map(str::to_owned),
            name: session.name(about).map(str::to_owned),
            excerpt: None,
            answers: asked.map(Row::sequence),
            latency: row.latency(),
            len: u64::from(row.line_len()),
            is_error: row.kind() == Kind::Error,
            http_error: None,
            modified: row.is_modified(),
            dropped: row.is_dropped(),
            refused: row.is_refused(),
            answered: false,
            undecided: false,
            late: row.is_late(),
            duplicate: row.is_duplicate(),
            origin: row.origin(),
            undelivered: row.is_undelivered(),
            delayed: false,
            redirected: false,
            answer: None,
        }
    }
}

fn excerpt(told: &MessageWithContext) -> Option<String> {
    let message = &told.message;
    if message.kind == Kind::Batch && !message.parts.is_empty() {
        let parts = message.parts.iter().take(16);
        let words: Vec<&str> = parts
            .map(|part| part.method.as_deref().unwrap_or(&part.kind))
            .collect();
        return Some(words.join(", "));
    }
    let bytes = message.raw.bytes()?;
    let start = &bytes[..bytes.len().min(EXCERPT)];
    Some(String::from_utf8_lossy(start).into_owned())
}

fn http_error(told: &MessageWithContext) -> Option<u16> {
    let status = told.message.http.as_ref()?.status;
    status.filter(|status| is_http_error(*status))
}

/// As `.status` of a filter sees it: a tool that fails answers with a result that says so.
fn is_error(told: &MessageWithContext) -> bool {
    let message = &told.message;
    let of_tool = told
        .request
        .as_ref()
        .is_none_or(|asked| asked.method == "tools/call");
    match message.kind {
        Kind::Error => true,
        _ if http_error(told).is_some() => true,
        Kind::Response if of_tool => {
            let RawBody::Json(body) = &message.raw else {
                return false;
            };
            let body = Message::parse(body.clone());
            body.span(Field::ResultField("isError"))
                .is_some_and(|span| body.slice(span) == b"true")
        }
        _ => false,
    }
}
