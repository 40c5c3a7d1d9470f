//! A message that is read and given up, because there is no room for the rest of it.

use mcp_proxy_core::OverBudget;
use mcp_proxy_wire::{Id, Kind, Message, PartialHead, Side, read_partial_head};

/// How much is kept of its two ends.
const FRONT_KEPT: usize = 64 << 10;
const BACK_KEPT: usize = 4 << 10;

/// A message that there is no room for. Its id may be at its end: SDKs for TypeScript write the id last.
pub(crate) struct RefusedMessage {
    /// Why.
    pub over: OverBudget,
    front: Vec<u8>,
    back: Vec<u8>,
}

impl RefusedMessage {
    /// Of which this much was read.
    pub(crate) fn new(over: OverBudget, read: &[u8]) -> RefusedMessage {
        let mut refused = RefusedMessage {
            over,
            front: Vec::new(),
            back: Vec::new(),
        };
        refused.add(read);
        refused
    }

    /// More of it has come.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let in_front = bytes.len().min(FRONT_KEPT - self.front.len());
        self.front.extend_from_slice(&bytes[..in_front]);
        self.back
            .extend_from_slice(&bytes[bytes.len().saturating_sub(BACK_KEPT)..]);
        let longer = self.back.len().saturating_sub(BACK_KEPT);
        self.back.drain(..longer);
    }

    /// Before its end: the error for who waits for it, or for an answer to it, if its front tells.
    pub(crate) fn early_answer(&self, from: Side) -> Option<Message> {
        let head = read_partial_head(&self.front, b"");
        let id = head.id.as_ref().filter(|_| is_awaited(from, &head))?;
        Some(self.over.answer(Some(id)))
    }

    /// At its end: the error for who waits for it, or for an answer to it, as far as its ends tell.
    pub(crate) fn answer(&self, from: Side) -> Option<Message> {
        let head = read_partial_head(&self.front, &self.back);
        is_awaited(from, &head).then(|| self.over.answer(head.id.as_ref()))
    }

    /// At its end, on a stream that was opened for these requests: the error for who waits for it. If its id is not found, it is
    /// taken for the answer to the only one.
    pub(crate) fn answer_among(&self, open: &[Id]) -> Option<Message> {
        let head = read_partial_head(&self.front, &self.back);
        let id = match (head.id, head.method, open) {
            (None, None, [only]) => Some(only.clone()),
            (id, None, _) => id,
            (_, Some(_), _) => None,
        };
        id.map(|id| self.over.answer(Some(&id)))
    }
}

/// Whether somebody waits for an answer in place of a message from this side that is refused. Nobody does for a notification.
pub(crate) fn is_awaited(from: Side, head: &PartialHead) -> bool {
    match from {
        Side::Client => head.kind == Kind::Request || head.id.is_none() && head.method.is_none(),
        Side::Server => head.method.is_none() && head.id.is_some(),
    }
}
