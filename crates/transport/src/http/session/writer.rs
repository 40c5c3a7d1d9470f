//! What the pump writes to a session's client: each message to its stream, and into the record what no stream took.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_core::{BoxFuture, FrameWriter, LinkEnd, Outgoing};
use mcp_proxy_wire::StreamId;

use super::Session;
use crate::http::outlet::NotTaken;
use crate::http::stream::StreamItem;

/// A client that takes nothing from a stream for this long loses it; its session goes on.
pub(super) const STREAM_STALL: Duration = Duration::from_secs(60);

/// The writing half of the client link: finds each message's stream.
pub struct SessionWriter(pub Arc<Session>);

impl SessionWriter {
    async fn put(&mut self, frames: &mut Vec<Outgoing>) -> Result<(), LinkEnd> {
        for frame in frames.drain(..) {
            let Some(placed) = self.0.place(frame) else {
                continue;
            };
            let (stream, item) = (placed.stream, placed.item);
            let message = match &item {
                StreamItem::Message(message) => Some(message.sequence),
                StreamItem::Dropped | StreamItem::Accepted => None,
            };
            let sent = match placed.outlet {
                Some(outlet) => outlet.send(item, STREAM_STALL).await,
                None => Err(NotTaken::Gone),
            };
            let Err(not_taken) = sent else { continue };
            if let StreamId::Exchange(exchange) = stream {
                self.0.stream_closed(exchange);
            }
            if let Some(sequence) = message {
                self.0.undelivered(sequence, why(&not_taken));
            }
        }
        Ok(())
    }
}

/// What the record says of it.
fn why(not_taken: &NotTaken) -> &'static str {
    match not_taken {
        NotTaken::Stalled => "the client did not take a message within 60 s; its stream is closed",
        // On a legacy session it may come back for what is kept for `Last-Event-ID`.
        NotTaken::Gone => "the client had closed its stream",
    }
}

impl FrameWriter for SessionWriter {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<Outgoing>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(self.put(frames))
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.0.end();
        Box::pin(std::future::ready(()))
    }
}
