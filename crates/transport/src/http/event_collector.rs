//! The events of a server's stream, as far as there is room for them.

use bytes::Bytes;
use mcp_proxy_core::{MemoryBudget, MemoryPermit};
use mcp_proxy_wire::{Limits, SseSplitter, SseUnit};

use crate::refused_message::RefusedMessage;

/// Cuts a stream into events. A large event counts in the memory budget until its end has come.
pub(crate) struct EventCollector {
    splitter: SseSplitter,
    memory: MemoryPermit,
    /// An event that there was no room for, until its end.
    refused: Option<Box<RefusedMessage>>,
}

impl EventCollector {
    /// Nothing has come yet.
    pub(crate) fn new(limits: Limits, memory: &MemoryBudget) -> EventCollector {
        EventCollector {
            splitter: SseSplitter::new(limits),
            memory: memory.permit(),
            refused: None,
        }
    }

    /// More bytes of the stream. Returns the event in front of what is appended to `units`, if there was no room for it.
    pub(crate) fn push(
        &mut self,
        bytes: Bytes,
        units: &mut Vec<SseUnit>,
    ) -> Option<Box<RefusedMessage>> {
        let from = units.len();
        self.splitter.push(bytes, units);
        let refused = self.take_refused(from, units);
        if let Err(over) = self.memory.resize(self.splitter.held()) {
            let from = units.len();
            let held = self.splitter.give_up(units);
            self.refused = Some(Box::new(RefusedMessage::new(over, &held)));
            self.take_refused(from, units);
        }
        refused
    }

    /// The stream has ended.
    pub(crate) fn finish(&mut self, units: &mut Vec<SseUnit>) {
        let from = units.len();
        self.splitter.finish(units);
        self.take_refused(from, units);
    }

    /// Takes what belongs to a refused event out of the units from here on, and the event too if it ends there.
    fn take_refused(
        &mut self,
        from: usize,
        units: &mut Vec<SseUnit>,
    ) -> Option<Box<RefusedMessage>> {
        let refused = self.refused.as_mut()?;
        let mut length = 0;
        for unit in &units[from..] {
            let (SseUnit::More(chunk) | SseUnit::Close(chunk)) = unit else {
                break;
            };
            length += 1;
            refused.add(&chunk.message);
            if matches!(unit, SseUnit::Close(_)) {
                units.drain(from..from + length);
                return self.refused.take();
            }
        }
        units.drain(from..from + length);
        None
    }
}
