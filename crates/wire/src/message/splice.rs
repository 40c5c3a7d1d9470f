//! Changing a message: the named spans are replaced, every other byte stays.

use std::fmt;

use bytes::Bytes;

use super::Message;
use crate::Span;

/// Whether this is, by its ends, a number or a string: what [`Message::id`] and our own counters give.
pub(super) fn is_scalar(token: &[u8]) -> bool {
    match token {
        [b'"', middle @ .., b'"'] => !middle.ends_with(b"\\"),
        [b'-' | b'0'..=b'9', ..] => token.iter().all(|byte| !byte.is_ascii_whitespace()),
        _ => false,
    }
}

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

    /// Like [`Message::splice`], where each span is a whole number or string and so is what replaces it: the shape
    /// stays, so the head is moved along and not parsed again.
    pub fn splice_scalars(&self, edits: &[(Span, &[u8])]) -> Result<Message, SpliceError> {
        let raw = self.splice_raw(edits)?;
        if !self.is_json() || !edits.iter().all(|(_, new)| is_scalar(new)) {
            return Ok(Message::parse(raw));
        }
        let head = self.head.moved(|at| {
            let before = edits.iter().filter(|(span, _)| span.end <= at);
            before.fold(at, |moved, (span, new)| moved + new.len() - span.len())
        });
        Ok(Message::with_head(raw, head))
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
