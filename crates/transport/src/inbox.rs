//! The reading half of a link that is fed by tasks: POST handlers, response streams.

use std::time::Duration;

use mcp_proxy_core::{BoxFuture, FrameReader, LinkEnd};
use mcp_proxy_wire::{Body, Frame};

use crate::queue::{ByteSize, QueueReceiver, QueueSender, queue};

/// Frames that may wait between a task and its pump; fewer if they are large.
const PLACES: usize = 256;
/// A server that takes no message for this long stalls its client.
pub(crate) const SEND_DEADLINE: Duration = Duration::from_secs(60);

/// What a task hands over: a frame, or the end of the link.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all items are frames, and the end comes once"
)]
pub enum InboxItem {
    /// A frame.
    Frame(Frame),
    /// No more will come, and why.
    End(LinkEnd),
}

impl ByteSize for InboxItem {
    fn bytes(&self) -> usize {
        match self {
            InboxItem::Frame(Frame {
                body: Body::Message(message),
                ..
            }) => message.len(),
            InboxItem::Frame(_) | InboxItem::End(_) => 0,
        }
    }
}

/// Hands over.
pub(crate) type InboxSender = QueueSender<InboxItem>;

/// Reads what tasks hand over.
pub(crate) struct InboxReader {
    arrivals: QueueReceiver<InboxItem>,
    end: Option<LinkEnd>,
}

/// A bounded inbox: its feeding end and its reader.
pub(crate) fn inbox() -> (InboxSender, InboxReader) {
    let (sender, arrivals) = queue(PLACES);
    let end = None;
    (sender, InboxReader { arrivals, end })
}

impl InboxReader {
    async fn next(&mut self, into: &mut Vec<Frame>) -> Result<(), LinkEnd> {
        if let Some(end) = &self.end {
            return Err(end.clone());
        }
        let Some(first) = self.arrivals.recv().await else {
            return Err(LinkEnd::Closed);
        };
        self.take(first, into);
        match &self.end {
            Some(end) if into.is_empty() => Err(end.clone()),
            _ => Ok(()),
        }
    }

    /// This one and all that are there, up to the end.
    fn take(&mut self, first: InboxItem, into: &mut Vec<Frame>) {
        let mut arrival = Some(first);
        while let Some(next) = arrival {
            match next {
                InboxItem::Frame(frame) => into.push(frame),
                InboxItem::End(end) => {
                    self.end = Some(end);
                    return;
                }
            }
            arrival = self.arrivals.try_recv();
        }
    }
}

impl FrameReader for InboxReader {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(self.next(into))
    }
}

#[cfg(test)]
mod tests {
    use mcp_proxy_wire::{Message, Origin, StreamId};
    use tokio::time::timeout;

    use super::*;
    use crate::runtimes::by_runtime;

    fn frame(message: &Message) -> InboxItem {
        let message = message.clone();
        InboxItem::Frame(Frame::message(StreamId::Only, Origin::Client, message))
    }

    on_both_runtimes!(large_frames_wait_with_their_sender_until_the_pump_reads);
    async fn large_frames_wait_with_their_sender_until_the_pump_reads() {
        let (sender, mut reader) = inbox();
        let large = Message::parse(vec![b' '; 8 << 20]);
        for _ in 0..8 {
            sender.send(frame(&large)).await.unwrap();
        }
        // Paused time moves on only when nothing else can: the ninth is stuck.
        let limit = by_runtime(Duration::from_secs(1), Duration::from_millis(100));
        let ninth = timeout(limit, sender.send(frame(&large)));
        assert!(ninth.await.is_err(), "64 MiB wait already");
        let mut read = Vec::new();
        reader.read(&mut read).await.unwrap();
        assert_eq!(read.len(), 8);
        sender.send(frame(&large)).await.unwrap();
        sender.send(InboxItem::End(LinkEnd::Closed)).await.unwrap();
        reader.read(&mut read).await.unwrap();
        assert_eq!(read.len(), 9);
        let end = reader.read(&mut read).await;
        assert!(matches!(end, Err(LinkEnd::Closed)));
    }
}
