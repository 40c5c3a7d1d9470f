//! Facts about a message that is in a record.

use std::borrow::Cow;

use bytes::Bytes;
use mcp_proxy_wire::{Id, Message, PartialHead};

use super::Filter;
use super::facts::{EnvelopeFacts, MessageFacts, MessageFlags, RequestFacts};
use super::pattern::Pattern;
use crate::index::Row;
use crate::message::ProxyMessage;
use crate::{Error, MessageWithContext, SessionRecord, line_members};

/// A message read from its line, as it was received: verdicts are not folded in.
pub(super) struct RecordedMessage<'s> {
    read: ProxyMessage,
    message: Message,
    head: Option<PartialHead>,
    server: Option<Cow<'s, str>>,
}

impl<'s> RecordedMessage<'s> {
    pub(super) fn read(
        session: &'s SessionRecord,
        row: &Row,
        line: &Bytes,
    ) -> Result<RecordedMessage<'s>, Error> {
        let read = session.read_line(row, line)?;
        // Of a body that was not stored, what its line tells is known.
        let head = read.raw.bytes().is_none().then(|| head_of(&read));
        Ok(RecordedMessage {
            message: Message::parse(read.raw.to_bytes()),
            read,
            head,
            server: session.server_name(row.connection()),
        })
    }

    pub(super) fn facts<'a>(&'a self, session: &'a SessionRecord, row: &Row) -> MessageFacts<'a> {
        let peer = row.peer().and_then(|peer| session.row(peer));
        let asked = (
            peer.and_then(|peer| session.method(peer)),
            peer.and_then(|peer| session.name(peer)),
        );
        let server = self.server.as_deref();
        let facts = facts_of(&self.read, &self.message, self.head.as_ref(), asked, server);
        // Verdicts are in the row, not in the line.
        MessageFacts {
            flags: MessageFlags {
                modified: row.is_modified(),
                dropped: row.is_dropped(),
                ..facts.flags
            },
            ..facts
        }
    }
}

impl Filter {
    /// Whether a message that was told matches, as it was received: what filters are about in records too. A program without
    /// an end is an error.
    pub fn matches_message(&self, told: &MessageWithContext) -> Result<bool, Error> {
        let read = &told.message;
        let raw = read.original_raw.as_ref().unwrap_or(&read.raw);
        let head = raw.bytes().is_none().then(|| head_of(read));
        let message = Message::parse(raw.to_bytes());
        let asked = told.request.as_ref();
        let asked = (
            asked.map(|asked| asked.method.as_str()),
            asked.and_then(|asked| asked.name.as_deref()),
        );
        let server = told.server.as_deref();
        let facts = facts_of(read, &message, head.as_ref(), asked, server);
        self.judge_recorded(&facts)
    }
}

/// What is known of a message whose bytes are not at hand.
fn head_of(read: &ProxyMessage) -> PartialHead {
    let token = read.jsonrpc_id.as_ref();
    PartialHead {
        kind: read.kind,
        id: token.map(|token| Id::from_token(token.as_bytes())),
        method: read.method.clone(),
        name: read.name.clone(),
        error_code: None,
    }
}

/// `asked` is method and name of the request that it answers, `server` the name of its connection's server.
fn facts_of<'a>(
    read: &'a ProxyMessage,
    message: &'a Message,
    head: Option<&'a PartialHead>,
    asked: (Option<&'a str>, Option<&'a str>),
    server: Option<&'a str>,
) -> MessageFacts<'a> {
    MessageFacts {
        sequence: read.sequence,
        time: read.timestamp,
        direction: read.direction,
        origin: read.origin,
        parent: read.parent,
        transport: read.transport,
        connection: read.connection,
        server,
        exchange: read.exchange,
        message,
        partial_head: head.map(|head| (head, read.len)),
        request: read.answers.map(|sequence| RequestFacts {
            sequence,
            method: asked.0,
            name: asked.1,
            latency: read.latency.unwrap_or_default(),
            held: read.request_held.unwrap_or_default(),
        }),
        envelope: EnvelopeFacts::Recorded {
            http: read.http.as_ref(),
            sse: read.sse.as_ref(),
        },
        flags: MessageFlags {
            late: read.late,
            duplicate: read.duplicate,
            modified: read.modified,
            dropped: read.dropped,
        },
    }
}

impl SessionRecord {
    /// Shows `look` the facts about the message of row `index`, as it was received.
    pub fn with_facts<T>(
        &self,
        index: usize,
        look: impl FnOnce(&MessageFacts<'_>) -> T,
    ) -> Result<T, Error> {
        let row = self.row(index).ok_or(Error::NoSuchRow(index as u64))?;
        let recorded = RecordedMessage::read(self, row, &self.row_line(row)?)?;
        Ok(look(&recorded.facts(self, row)))
    }
}

/// Whether a pattern is in the message that a line holds.
pub(super) fn has_pattern(pattern: &Pattern, line: &[u8]) -> bool {
    let mut members = line_members::LineMembers::new(line);
    while let Some(key) = members.next_key() {
        if key == b"raw" {
            return members.last_value().is_some_and(|raw| pattern.is_in(raw));
        }
        let Some(value) = members.value() else { break };
        match key {
            b"raw_text" => {
                return line_members::text(value)
                    .is_some_and(|text| pattern.is_in(text.as_bytes()));
            }
            b"raw_b64" => {
                use base64::Engine as _;
                let text = line_members::string(value).unwrap_or_default();
                let bytes = base64::engine::general_purpose::STANDARD.decode(text);
                return bytes.is_ok_and(|bytes| pattern.is_in(&bytes));
            }
            _ => {}
        }
    }
    false
}
