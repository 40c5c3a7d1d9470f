//! An SSE stream that is passed through: its events as frames.

use std::sync::Arc;

use bytes::Bytes;
use mcp_proxy_core::{LinkEnd, MemoryBudget};
use mcp_proxy_wire::{Body, ExchangeId, Frame, Limits, Message, Side, SseUnit, TransportEnvelope};

use crate::http::event_collector::EventCollector;
use crate::http::tool_headers::ToolHeaders;
use crate::refused_message::RefusedMessage;

/// An SSE stream on its way.
pub(super) struct RelayedEvents {
    events: EventCollector,
    /// Bytes so far of an event that is cut through.
    cutting: usize,
    max: usize,
    /// Where the tools that the stream lists are noted.
    tools: Option<Arc<ToolHeaders>>,
}

impl RelayedEvents {
    /// An empty stream.
    pub(super) fn new(
        limits: Limits,
        memory: &MemoryBudget,
        tools: Option<Arc<ToolHeaders>>,
    ) -> RelayedEvents {
        RelayedEvents {
            events: EventCollector::new(limits, memory),
            cutting: 0,
            max: limits.max,
            tools,
        }
    }

    /// More bytes of the stream, as frames. Returns the event in front of them, if there was no room for it.
    pub(super) fn push(
        &mut self,
        bytes: Bytes,
        exchange: ExchangeId,
        side: Side,
        into: &mut Vec<Frame>,
    ) -> Result<Option<Box<RefusedMessage>>, LinkEnd> {
        let mut units = Vec::new();
        let refused = self.events.push(bytes, &mut units);
        self.take(units, exchange, side, into)?;
        Ok(refused)
    }

    /// The rest of it, at its end.
    pub(super) fn finish(
        &mut self,
        exchange: ExchangeId,
        side: Side,
        into: &mut Vec<Frame>,
    ) -> Result<(), LinkEnd> {
        let mut units = Vec::new();
        self.events.finish(&mut units);
        self.take(units, exchange, side, into)
    }

    /// Whether the stream is not amid an event.
    pub(super) fn is_between_events(&self) -> bool {
        self.cutting == 0
    }

    /// What the splitter made of the bytes, as frames.
    fn take(
        &mut self,
        units: Vec<SseUnit>,
        exchange: ExchangeId,
        side: Side,
        into: &mut Vec<Frame>,
    ) -> Result<(), LinkEnd> {
        for unit in units {
            self.check_size(&unit, side)?;
            let (envelope, body) = match unit {
                SseUnit::Event(event) => event_frame(event),
                SseUnit::Open { head, chunk } => {
                    (TransportEnvelope::Event(Box::new(head)), Body::Open(chunk))
                }
                SseUnit::More(chunk) => (TransportEnvelope::Bare, Body::More(chunk)),
                SseUnit::Close(chunk) => (TransportEnvelope::Bare, Body::Close(chunk)),
                SseUnit::TooLarge { seen, .. } => {
                    return Err(crate::lines::too_large(side, seen, self.max));
                }
            };
            into.push(Frame::new(exchange, side.into(), envelope, body));
        }
        Ok(())
    }

    /// Notes the tools that an event lists.
    pub(super) fn note_tools(&self, frame: &Frame) {
        if let (Some(tools), Body::Whole(message)) = (&self.tools, &frame.body) {
            tools.note(message);
        }
    }

    /// An event that is cut through is never held, but it may not be larger than any other message.
    fn check_size(&mut self, unit: &SseUnit, side: Side) -> Result<(), LinkEnd> {
        match unit {
            SseUnit::Open { chunk, .. } => self.cutting = chunk.message.len(),
            SseUnit::More(chunk) => self.cutting += chunk.message.len(),
            _ => self.cutting = 0,
        }
        if self.cutting <= self.max {
            return Ok(());
        }
        let seen = self.cutting;
        if matches!(unit, SseUnit::Open { .. }) {
            // Nothing of it has gone on.
            self.cutting = 0;
        }
        Err(crate::lines::too_large(side, seen, self.max))
    }
}

/// An event as a frame: its data is the message, unless it is an event of the transport's own.
pub(crate) fn event_frame(event: mcp_proxy_wire::SseEvent) -> (TransportEnvelope, Body) {
    let is_message = event.event.as_deref().is_none_or(|name| name == "message");
    let body = match &event.data {
        Some(data) if is_message && !data.is_empty() => Body::Whole(Message::parse(data.clone())),
        _ => Body::Empty,
    };
    (TransportEnvelope::Event(Box::new(event)), body)
}
