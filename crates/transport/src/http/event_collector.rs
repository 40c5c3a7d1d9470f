//! The events of a server's stream, as far as there is room for them.

use bytes::Bytes;
use mcp_proxy_core::{MemoryBudget, MemoryPermit};
use mcp_proxy_wire::{Limits, SseSplitter, SseUnit};

use crate::refused_message::RefusedMessage;

/// Cuts a stream into events. A large event counts in the memory budget until its end has come.
pub(crate) struct EventCollector {
    splitter: SseSplitter,
    memory: MemoryPermit,
}

impl EventCollector {
    /// Nothing has come yet.
    pub(crate) fn new(limits: Limits, memory: &MemoryBudget) -> EventCollector {
        EventCollector {
            splitter: SseSplitter::new(limits),
            memory: memory.permit(),
        }
    }

    /// More bytes of the stream. If there is no room for an event, the rest of it is skipped, and the stream continues; it comes
    /// behind what is appended to `units`.
    pub(crate) fn push(
        &mut self,
        bytes: Bytes,
        units: &mut Vec<SseUnit>,
    ) -> Option<RefusedMessage> {
        self.splitter.push(bytes, units);
        let over = self.memory.resize(self.splitter.held()).err()?;
        Some(RefusedMessage::new(over, &self.splitter.give_up()))
    }

    /// The stream has ended.
    pub(crate) fn finish(&mut self, units: &mut Vec<SseUnit>) {
        self.splitter.finish(units);
    }
}
