//! The events of a server's stream, as far as there is room for them.

use bytes::Bytes;
use mcp_proxy_core::{MemoryBudget, MemoryPermit, OverBudget};
use mcp_proxy_wire::{SseSplitter, SseUnit};

use crate::refused_message::RefusedMessage;

/// Cuts a stream into events. A large event counts in the memory budget until its end has come.
pub(crate) struct EventCollector {
    splitter: SseSplitter,
    memory: MemoryPermit,
    /// Why an event was given up, until its end.
    over: Option<OverBudget>,
}

impl EventCollector {
    /// Nothing has come yet. An event may have `max` bytes.
    pub(crate) fn new(max: usize, memory: &MemoryBudget) -> EventCollector {
        EventCollector {
            splitter: SseSplitter::new(max),
            memory: memory.permit(),
            over: None,
        }
    }

    /// More bytes of the stream. Returns the event in front of what is appended to `units`, if there was no room for it.
    pub(crate) fn push(
        &mut self,
        bytes: Bytes,
        units: &mut Vec<SseUnit>,
    ) -> Option<RefusedMessage> {
        let from = units.len();
        self.splitter.push(bytes, units);
        let refused = self.take_refused(from, units);
        if let Err(over) = self.memory.resize(self.splitter.held()) {
            self.over = Some(over);
            let from = units.len();
            self.splitter.give_up(units);
            return refused.or(self.take_refused(from, units));
        }
        refused
    }

    /// The stream has ended.
    pub(crate) fn finish(&mut self, units: &mut Vec<SseUnit>) {
        let from = units.len();
        self.splitter.finish(units);
        self.take_refused(from, units);
    }

    /// Takes an event that was given up out of the units, in which it is the first from here on.
    fn take_refused(&mut self, from: usize, units: &mut Vec<SseUnit>) -> Option<RefusedMessage> {
        let is_given_up = matches!(units.get(from), Some(SseUnit::GivenUp(_)));
        match is_given_up.then(|| units.remove(from)) {
            Some(SseUnit::GivenUp(ends)) => {
                let over = self.over.take()?;
                Some(RefusedMessage { over, ends })
            }
            _ => None,
        }
    }
}
