//! Recording with redaction: bodies are looked through before any byte of them is stored.
//!
//! The head of a line (id, method, name) is read from what is left, so it tells nothing that the body does not.

use super::transport_envelope::is_encoded;
use crate::Redaction;
use crate::record_input::{NewBatchPart, NewBody, NewMessage, NewVerdict};
use bytes::Bytes;
use mcp_proxy_wire::Message;

/// What a `msg` line does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineRedaction {
    Nothing,
    /// How many values.
    Values(u32),
    /// All of the body: it is compressed, so that nobody can say what is in it.
    Body,
}

impl LineRedaction {
    /// The line's `redacted`.
    pub(super) fn count(self) -> u32 {
        match self {
            LineRedaction::Nothing => 0,
            LineRedaction::Values(count) => count,
            LineRedaction::Body => 1,
        }
    }
}

/// Hands the message without its secrets to `store`.
pub(super) fn redact_message(
    message: &NewMessage<'_>,
    redaction: &Redaction,
    store: impl FnOnce(&NewMessage<'_>, LineRedaction),
) {
    let body = match message.body {
        NewBody::Whole(body) => body,
        NewBody::Empty => return store(message, LineRedaction::Nothing),
    };
    if is_encoded(message.envelope) {
        return store(message, LineRedaction::Body);
    }
    let Some(redacted) = redaction.message(body) else {
        return store(message, LineRedaction::Nothing);
    };
    let parts = parts(message.parts, &redacted.message);
    let shown = NewMessage {
        body: NewBody::Whole(&redacted.message),
        parts: &parts,
        ..*message
    };
    store(&shown, LineRedaction::Values(redacted.count));
}

/// The parts of a batch, as what is left of it tells them.
fn parts(known: &[NewBatchPart], left: &Message) -> Vec<NewBatchPart> {
    let left = left.parts().unwrap_or_default();
    let pairs = known.iter().zip(left);
    let parts = pairs.map(|(known, left)| NewBatchPart {
        id: left.id(),
        method: left.method().map(|method| method.into_owned()),
        ..known.clone()
    });
    parts.collect()
}

/// The verdict without its secrets, and how many there were.
pub(super) fn redact_verdict(act: &NewVerdict, redaction: &Redaction) -> (NewVerdict, u32) {
    let mut act = act.clone();
    let mut count = 0;
    for raw in [&mut act.original_raw, &mut act.raw].into_iter().flatten() {
        if let Some(redacted) = redaction.message_after(&Message::parse(Bytes::clone(raw)), count) {
            count += redacted.count;
            *raw = redacted.message.into_raw();
        }
    }
    (act, count)
}
