//! Changing a message: the named spans are replaced, every other byte stays.

use std::fmt;

use bytes::Bytes;

use super::{Kind, Message};
use crate::{Id, Span};

/// Why a splice was refused. The message is unchanged then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpliceError {
    /// A span reaches over the end of the message, or ends before it starts.
    OutOfRange(Span),
    /// A span begins before the one in front of it ends.
    Overlap(Span),
}

impl fmt::Display for SpliceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpliceError::OutOfRange(span) => write!(
                f,
                "bytes {}..{} are not in the message",
                span.start, span.end
            ),
            SpliceError::Overlap(span) => write!(
                f,
                "bytes {}..{} overlap the edit before them",
                span.start, span.end
            ),
        }
    }
}

impl std::error::Error for SpliceError {}

impl Message {
    /// The message with each span replaced by the bytes it is paired with, and parsed again. Spans come in order and do not
    /// overlap; an empty span inserts.
    pub fn splice(&self, edits: &[(Span, &[u8])]) -> Result<Message, SpliceError> {
        self.splice_raw(edits).map(Message::parse)
    }

    /// The same request, response or error under this id, with no other members than JSON-RPC's, in their usual order. Spans are
    /// values inside `params`, `result` or `error`, in order. Nothing for other kinds.
    pub fn restated(&self, id: &Id, edits: &[(Span, &[u8])]) -> Option<Message> {
        let kept = match self.kind() {
            Kind::Request => [("method", self.method_span()), ("params", self.params())],
            Kind::Response => [("result", self.result()), ("", None)],
            Kind::Error => [("error", self.error()), ("", None)],
            _ => return None,
        };
        let added: usize = edits.iter().map(|(_, new)| new.len()).sum();
        let mut raw = Vec::with_capacity(self.len() + added);
        raw.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        raw.extend_from_slice(id.token());
        for (name, span) in kept {
            let Some(span) = span else { continue };
            for part in [",\"", name, "\":"] {
                raw.extend_from_slice(part.as_bytes());
            }
            let mut done = span.start;
            for (edited, new) in edits {
                if span.start <= edited.start && edited.end <= span.end {
                    raw.extend_from_slice(&self.raw()[done..edited.start]);
                    raw.extend_from_slice(new);
                    done = edited.end;
                }
            }
            raw.extend_from_slice(&self.raw()[done..span.end]);
        }
        raw.push(b'}');
        Some(Message::parse(raw))
    }

    /// Like [`Message::splice`], for one who needs only the bytes.
    pub fn splice_raw(&self, edits: &[(Span, &[u8])]) -> Result<Bytes, SpliceError> {
        let raw = self.raw();
        let mut length = raw.len();
        let mut done = 0;
        for &(span, new) in edits {
            if span.start > span.end || span.end > raw.len() {
                return Err(SpliceError::OutOfRange(span));
            }
            if span.start < done {
                return Err(SpliceError::Overlap(span));
            }
            done = span.end;
            length = length - span.len() + new.len();
        }
        if edits.is_empty() {
            return Ok(raw.clone());
        }
        let mut spliced = Vec::with_capacity(length);
        let mut done = 0;
        for &(span, new) in edits {
            spliced.extend_from_slice(&raw[done..span.start]);
            spliced.extend_from_slice(new);
            done = span.end;
        }
        spliced.extend_from_slice(&raw[done..]);
        Ok(spliced.into())
    }
}
