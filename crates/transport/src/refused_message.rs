//! A message that is read and given up, because there is no room for the rest of it.

use mcp_proxy_core::OverBudget;
use mcp_proxy_wire::{Id, Kind, Message, MessageEnds, PartialHead, Side};

/// A message that does not fit into memory.
pub(crate) struct RefusedMessage {
    /// Why.
    pub over: OverBudget,
    /// What is left of it.
    pub ends: MessageEnds,
}

impl RefusedMessage {
    /// At its end: the error for who waits for it, or for an answer to it, as far as its ends tell.
    pub(crate) fn answer(&self, from: Side) -> Option<Message> {
        let head = self.ends.head();
        is_awaited(from, &head).then(|| self.over.answer(head.id.as_ref()))
    }

    /// At its end, on a stream that was opened for these requests: the error for who waits for it. If its id is not found, it is
    /// taken for the answer to the only one.
    pub(crate) fn answer_among(&self, open: &[Id]) -> Option<Message> {
        let head = self.ends.head();
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
