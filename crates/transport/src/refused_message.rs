//! A message that is read and given up, because there is no room for the rest of it.

use bytes::Bytes;
use mcp_proxy_core::OverBudget;
use mcp_proxy_wire::{Kind, Message, PartialHead, Side, read_partial_head};

/// A message that there is no room for. Only what refers to it is lost.
pub(crate) struct RefusedMessage {
    /// Why.
    pub over: OverBudget,
    /// Its first bytes.
    pub front: Bytes,
}

impl RefusedMessage {
    /// The error for who waits for it, or for an answer to it, as far as its beginning tells.
    pub(crate) fn answer(&self, from: Side) -> Option<Message> {
        let head = read_partial_head(&self.front, b"");
        is_awaited(from, &head).then(|| self.over.answer(head.id.as_ref()))
    }
}

/// Whether somebody waits for an answer in place of a message from this side that is refused. Nobody does for a notification.
pub(crate) fn is_awaited(from: Side, head: &PartialHead) -> bool {
    match from {
        Side::Client => head.kind == Kind::Request || head.id.is_none() && head.method.is_none(),
        Side::Server => head.method.is_none() && head.id.is_some(),
    }
}
