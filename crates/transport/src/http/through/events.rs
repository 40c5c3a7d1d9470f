//! An SSE stream that is passed through: its events as frames, and events of ours between them.

use std::task::{Context, Poll};

use bytes::Bytes;
use mcp_proxy_core::LinkEnd;
use mcp_proxy_wire::{
    Body, Carriage, ExchangeId, Frame, Limits, Message, Side, SseSplitter, SseUnit,
};
use tokio::sync::mpsc;

/// An SSE stream on its way.
pub struct Events {
    splitter: SseSplitter,
    rewrite: Rewrite,
    /// Bytes so far of an event that is cut through.
    cutting: usize,
    max: usize,
    /// Events of ours, for the places between the server's.
    inserted: Option<mpsc::Receiver<Bytes>>,
}

/// What is done to an event after it was recorded and before it is sent.
pub type Rewrite = Option<Box<dyn FnMut(Frame) -> Result<Frame, LinkEnd> + Send>>;

impl Events {
    /// An empty stream.
    pub fn new(limits: Limits, rewrite: Rewrite) -> Events {
        Events {
            splitter: SseSplitter::new(limits),
            rewrite,
            cutting: 0,
            max: limits.max,
            inserted: None,
        }
    }

    /// What is said in between comes from here.
    pub fn insert(&mut self, inserted: mpsc::Receiver<Bytes>) {
        self.inserted = Some(inserted);
    }

    /// More bytes of the stream.
    pub fn push(&mut self, bytes: Bytes) -> Vec<SseUnit> {
        let mut units = Vec::new();
        self.splitter.push(bytes, &mut units);
        units
    }

    /// The rest of it, at its end.
    pub fn finish(&mut self) -> Vec<SseUnit> {
        let mut units = Vec::new();
        self.splitter.finish(&mut units);
        units
    }

    /// Whether the stream is not amid an event.
    pub fn is_between(&self) -> bool {
        self.cutting == 0
    }

    /// The next event of ours, if the stream is not amid one of the server's.
    pub fn poll_inserted(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        let between = self.is_between();
        let Some(inserted) = self.inserted.as_mut().filter(|_| between) else {
            return Poll::Pending;
        };
        match inserted.poll_recv(cx) {
            Poll::Ready(Some(event)) => Poll::Ready(event),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    /// What the splitter made of the bytes, as frames.
    pub fn take(
        &mut self,
        units: Vec<SseUnit>,
        exchange: ExchangeId,
        side: Side,
        into: &mut Vec<Frame>,
    ) -> Result<(), LinkEnd> {
        for unit in units {
            self.check_size(&unit, side)?;
            let (carriage, body) = match unit {
                SseUnit::Event(event) => event_frame(event),
                SseUnit::Open { head, chunk } => {
                    (Carriage::Event(Box::new(head)), Body::Open(chunk))
                }
                SseUnit::More(chunk) => (Carriage::Message, Body::More(chunk)),
                SseUnit::Close(chunk) => (Carriage::Message, Body::Close(chunk)),
                SseUnit::TooLarge { seen, .. } => {
                    return Err(crate::lines::too_large(side, seen, self.max));
                }
            };
            into.push(Frame::new(exchange, side.into(), carriage, body));
        }
        Ok(())
    }

    /// Changes an event that has been recorded, if this stream's events are changed.
    pub fn rewrite(&mut self, frame: Frame) -> Result<Frame, LinkEnd> {
        match &mut self.rewrite {
            Some(rewrite) => rewrite(frame),
            None => Ok(frame),
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
pub fn event_frame(event: mcp_proxy_wire::SseEvent) -> (Carriage, Body) {
    let is_message = event.event.as_deref().is_none_or(|name| name == "message");
    let body = match &event.data {
        Some(data) if is_message && !data.is_empty() => Body::Whole(Message::parse(data.clone())),
        _ => Body::Empty,
    };
    (Carriage::Event(Box::new(event)), body)
}
