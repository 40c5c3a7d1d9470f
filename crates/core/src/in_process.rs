//! A server that runs in this process: the hub, a mock, a test's own server.
//!
//! [`in_process`] gives both ends of a connection. One is a [`Link`] like that of any server, so listeners, record, rules,
//! holds and viewers work as they do for all others. The other is the server's: whole messages in, whole messages out.
//! Both queues are bounded. A server that reads nothing stalls its client, as a process would.

use mcp_proxy_wire::{Body, Frame, Message, Origin, StreamId};
use tokio::sync::mpsc;

use crate::link::{BoxFuture, FrameReader, FrameWriter, Link, LinkEnd, OutgoingFrame};

/// Messages that may wait in each direction.
const QUEUE: usize = 256;

/// The server's end.
pub struct InProcessServer {
    /// Messages from the client. `None` after its end.
    pub requests: InProcessReceiver,
    /// Messages to the client.
    pub answers: InProcessSender,
}

/// Messages from the client.
pub struct InProcessReceiver(mpsc::Receiver<Message>);

/// Messages to the client. The connection ends when all clones are gone.
#[derive(Clone)]
pub struct InProcessSender(mpsc::Sender<Box<Frame>>);

/// The client has gone.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the client's connection has ended")]
pub struct ClientGone;

/// Both ends of a new connection to a server in this process.
pub fn in_process() -> (Link, InProcessServer) {
    let (to_server, requests) = mpsc::channel(QUEUE);
    let (answers, from_server) = mpsc::channel(QUEUE);
    let link = Link::new(QueueReader(from_server), InProcessWriter(Some(to_server)));
    let server = InProcessServer {
        requests: InProcessReceiver(requests),
        answers: InProcessSender(answers),
    };
    (link, server)
}

impl InProcessReceiver {
    /// The next message; `None` when the client has ended.
    pub async fn next(&mut self) -> Option<Message> {
        self.0.recv().await
    }
}

impl InProcessSender {
    /// Sends a message, and waits for room.
    pub async fn send(&self, message: Message) -> Result<(), ClientGone> {
        self.send_for(message, None).await
    }

    /// The same for a message that a call caused, by that call's number in the record.
    pub async fn send_for(&self, message: Message, parent: Option<u64>) -> Result<(), ClientGone> {
        let mut frame = Frame::message(StreamId::Only, Origin::Server, message);
        frame.parent = parent;
        self.0.send(Box::new(frame)).await.map_err(|_| ClientGone)
    }
}

/// Reads what a part of this process puts into a queue. The link ends when all senders are gone.
/// Frames are boxed, because the channel makes room for 32 at once.
pub struct QueueReader(pub mpsc::Receiver<Box<Frame>>);

impl FrameReader for QueueReader {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            into.push(*self.0.recv().await.ok_or(LinkEnd::Closed)?);
            while let Ok(frame) = self.0.try_recv() {
                into.push(*frame);
            }
            Ok(())
        })
    }
}

struct InProcessWriter(Option<mpsc::Sender<Message>>);

impl FrameWriter for InProcessWriter {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            let sender = self.0.as_ref().ok_or(LinkEnd::Closed)?;
            for frame in frames.drain(..).filter_map(OutgoingFrame::into_written) {
                if let Body::Message(message) = frame.body {
                    sender.send(message).await.map_err(|_| LinkEnd::Closed)?;
                }
            }
            Ok(())
        })
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.0 = None;
        Box::pin(std::future::ready(()))
    }
}
