//! The events of a server's stream, as far as there is room for them.

use bytes::Bytes;
use mcp_proxy_core::{MemoryBudget, MemoryPermit, OverBudget};
use mcp_proxy_wire::{Limits, Message, Side, SseSplitter, SseUnit, read_partial_head};

use crate::lines::is_awaited;

/// Cuts a stream into events. An event counts in the memory budget until its end has come.
pub(crate) struct EventCollector {
    splitter: SseSplitter,
    memory: MemoryPermit,
}

/// An event that there is no room for. The rest of it is skipped, and the stream continues.
pub(crate) struct RefusedEvent {
    /// Why.
    pub over: OverBudget,
    /// The first bytes of its data.
    front: Bytes,
}

impl RefusedEvent {
    /// The error for who waits for it, if its beginning tells whose answer it is.
    pub(crate) fn answer(&self) -> Option<Message> {
        let head = read_partial_head(&self.front, b"");
        is_awaited(Side::Server, &head).then(|| self.over.answer(head.id.as_ref()))
    }
}

impl EventCollector {
    /// Nothing has come yet.
    pub(crate) fn new(limits: Limits, memory: &MemoryBudget) -> EventCollector {
        EventCollector {
            splitter: SseSplitter::new(limits),
            memory: memory.permit(),
        }
    }

    /// More bytes of the stream. What is refused comes behind what was appended to `units`.
    pub(crate) fn push(&mut self, bytes: Bytes, units: &mut Vec<SseUnit>) -> Option<RefusedEvent> {
        self.splitter.push(bytes, units);
        let over = self.memory.resize(self.splitter.held()).err()?;
        let front = self.splitter.give_up();
        Some(RefusedEvent { over, front })
    }

    /// The stream has ended.
    pub(crate) fn finish(&mut self, units: &mut Vec<SseUnit>) {
        self.splitter.finish(units);
    }
}
