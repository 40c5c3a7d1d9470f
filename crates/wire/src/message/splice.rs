//! Changing a message: the named spans are replaced, every other byte stays.

use std::fmt;

use bytes::Bytes;

use super::{EMBED_DEPTH, HeadMembers, Kind, Message, MessageHead};
use crate::{Id, Span, json};

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

/// Room for the names of all members of a message that is restated.
const RESTATED_MORE: usize = 64;

fn breaks_line(text: &[u8]) -> bool {
    memchr::memchr2(b'\n', b'\r', text).is_some()
}

/// Appends a value that stood at `from`, with edits, and says where it is now.
fn push_value(raw: &mut Vec<u8>, value: &[u8], from: usize, edits: &[(Span, &[u8])]) -> Span {
    let start = raw.len();
    let mut done = 0;
    for (span, new) in edits {
        raw.extend_from_slice(&value[done..span.start - from]);
        raw.extend_from_slice(new);
        done = span.end - from;
    }
    raw.extend_from_slice(&value[done..]);
    Span::new(start, raw.len())
}

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
        Ok(Message::with_head(raw, self.moved_head(edits)))
    }

    /// Like [`Message::splice`], where the caller knows that the result is sound JSON with the same outermost members: spans are
    /// values inside `params`, `result` or `error`, or the id. The head is moved along, and only what is new is looked at.
    pub fn splice_inside(&self, edits: &[(Span, &[u8])]) -> Result<Message, SpliceError> {
        let raw = self.splice_raw(edits)?;
        let Some(depth) = self.depth_with(edits) else {
            return Ok(Message::parse(raw));
        };
        let head = MessageHead {
            depth,
            newline: self.head.newline || edits.iter().any(|(_, new)| breaks_line(new)),
            ..self.moved_head(edits)
        };
        debug_assert!(head.agrees_with(&MessageHead::read(&raw)));
        Ok(Message::with_head(raw, head))
    }

    /// The same request, response or error under this id, with no other members than JSON-RPC's, in their usual order. Spans are
    /// values inside `params`, `result` or `error`, in order, and what replaces them is sound JSON. The head is made
    /// along with it. Nothing for other kinds.
    pub fn restated(&self, id: &Id, edits: &[(Span, &[u8])]) -> Option<Message> {
        let HeadMembers {
            method,
            params,
            result,
            error,
            ..
        } = self.head.members;
        let kept = match self.head.kind {
            Kind::Request => [("method", method), ("params", params)],
            Kind::Response => [("result", result), ("", None)],
            Kind::Error => [("error", error), ("", None)],
            _ => return None,
        };
        let added: usize = edits.iter().map(|(_, new)| new.len()).sum();
        let mut raw = Vec::with_capacity(RESTATED_MORE + id.token().len() + self.len() + added);
        raw.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        let mut members = HeadMembers {
            id: Some(push_value(&mut raw, id.token(), 0, &[])),
            ..HeadMembers::default()
        };
        for (name, span) in kept {
            let Some(span) = span else { continue };
            for part in [",\"", name, "\":"] {
                raw.extend_from_slice(part.as_bytes());
            }
            let inside =
                |edit: &&(Span, &[u8])| span.start <= edit.0.start && edit.0.end <= span.end;
            let edits: Vec<_> = edits.iter().filter(inside).copied().collect();
            let pushed = push_value(&mut raw, self.slice(span), span.start, &edits);
            if let Some(slot) = members.plain_slot(name.as_bytes()) {
                *slot = Some(pushed);
            }
        }
        raw.push(b'}');
        let Some(depth) = self.depth_with(edits) else {
            return Some(Message::parse(raw));
        };
        let head = MessageHead {
            depth,
            newline: false,
            bom: false,
            members,
            ..self.head
        };
        // A break may have been in what was left out, or in what was put in.
        if self.head.newline || edits.iter().any(|(_, new)| breaks_line(new)) {
            return Some(Message::parse(raw));
        }
        debug_assert!(head.agrees_with(&MessageHead::read(&raw)));
        Some(Message::with_head(raw.into(), head))
    }

    /// How deep it is nested at most with these values in it. Nothing if only reading it can tell.
    fn depth_with(&self, edits: &[(Span, &[u8])]) -> Option<u16> {
        let added = edits.iter().map(|(_, new)| json::nesting(new)).max();
        let depth = self.head.depth.saturating_add(added.unwrap_or(0));
        (self.is_json() && usize::from(depth) <= EMBED_DEPTH).then_some(depth)
    }

    fn moved_head(&self, edits: &[(Span, &[u8])]) -> MessageHead {
        self.head.moved(|at| {
            let before = edits.iter().filter(|(span, _)| span.end <= at);
            before.fold(at, |moved, (span, new)| moved + new.len() - span.len())
        })
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
