//! What the pump writes to a session's client: each message to its stream, and into the record what no stream took.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_core::{BoxFuture, FrameWriter, LinkEnd, OutgoingFrame};
use mcp_proxy_wire::{Body, Kind, StreamId, Transport};

use super::HttpSession;
use crate::http::event_stream::StreamItem;
use crate::http::stream_queue::StreamSendError;

/// A client that takes nothing from a stream for this long loses it; its session continues.
pub(super) const STREAM_STALL: Duration = Duration::from_secs(60);
/// Log messages and progress of a server in this process, such as the hub, wait for a client this long; then they are lost.
const EVENT_PATIENCE: Duration = Duration::from_secs(1);

/// The writing half of the client link: finds each message's stream.
pub(crate) struct SessionWriter {
    session: Arc<HttpSession>,
    stall: Duration,
}

impl SessionWriter {
    /// Writes to the streams of this session.
    pub(crate) fn new(session: Arc<HttpSession>) -> SessionWriter {
        SessionWriter::with_stall(session, STREAM_STALL)
    }

    /// The same, with another deadline for a client that reads nothing.
    pub(super) fn with_stall(session: Arc<HttpSession>, stall: Duration) -> SessionWriter {
        SessionWriter { session, stall }
    }

    async fn put(&mut self, frames: &mut Vec<OutgoingFrame>) -> Result<(), LinkEnd> {
        for frame in frames.drain(..) {
            let is_event = self.may_be_lost(&frame);
            let Some(placed) = self.session.route_frame(frame) else {
                continue;
            };
            let (stream, item) = (placed.stream, placed.item);
            let message = match &item {
                StreamItem::Message(message) => Some(message.sequence),
                StreamItem::Dropped | StreamItem::Accepted | StreamItem::Ended => None,
            };
            let sent = match &placed.open {
                Some(open) if is_event => {
                    let lost = self.session.connection.lost_notifications();
                    open.sender.send_event(item, EVENT_PATIENCE, lost).await
                }
                Some(open) => open.sender.send(item, self.stall).await,
                None => Err(StreamSendError::Gone),
            };
            let Err(not_taken) = sent else { continue };
            match (stream, &placed.open) {
                _ if not_taken == StreamSendError::Lost => self.session.lose_notification(),
                (StreamId::Exchange(exchange), Some(open)) => {
                    self.session.stream_closed(exchange, open.number);
                }
                (StreamId::Exchange(_), None) => self.session.touch(),
                _ => {}
            }
            if let Some(sequence) = message {
                self.session.undelivered(sequence, &self.why(&not_taken));
            }
        }
        Ok(())
    }

    /// Whether a client that does not read is better off without it: the hub speaks for many servers, and their answers must not
    /// wait behind the log of one. What a single server says is never left out.
    fn may_be_lost(&self, frame: &OutgoingFrame) -> bool {
        let OutgoingFrame::Frame(frame) = frame else {
            return false;
        };
        let Body::Message(message) = &frame.body else {
            return false;
        };
        self.session.connection.server() == Transport::InProcess
            && message.kind() == Kind::Notification
            && matches!(
                message.method().as_deref(),
                Some("notifications/message" | "notifications/progress")
            )
    }

    /// What the record says of it.
    fn why(&self, not_taken: &StreamSendError) -> String {
        match not_taken {
            StreamSendError::Stalled => format!(
                "the client did not take a message within {} s; its stream is closed",
                self.stall.as_secs()
            ),
            StreamSendError::Lost => "the client does not read this stream".to_owned(),
            // On a legacy session it may come back for what is kept for `Last-Event-ID`.
            StreamSendError::Gone => "the client had closed its stream".to_owned(),
        }
    }
}

impl FrameWriter for SessionWriter {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(self.put(frames))
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.session.end();
        Box::pin(std::future::ready(()))
    }
}
