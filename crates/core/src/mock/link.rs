//! A mock at the end of a link, before a real server or none.

use mcp_proxy_wire::{Body, Frame, Origin, StreamId};
use tokio::sync::mpsc;

use super::{MockReply, MockServer};
use crate::link::{BoxFuture, FrameReader, FrameWriter, Link, LinkEnd, OutgoingFrame};

/// Messages that may wait for the client.
const SAID: usize = 256;

/// A link to `mock`. What it cannot answer goes to `beyond`, if there is one, and is refused if not.
pub fn link(mock: MockServer, beyond: Option<Link>) -> Link {
    let (say, said) = mpsc::channel(SAID);
    let (reader, writer, finish) = match beyond {
        Some(link) => (Some(link.reader), Some(link.writer), link.finish),
        None => (None, None, None),
    };
    let writer = MockWriter {
        mock,
        say: Some(say),
        beyond: writer,
    };
    let mut link = Link::new(
        MockReader {
            said,
            beyond: reader,
        },
        writer,
    );
    link.finish = finish;
    link
}

struct MockWriter {
    mock: MockServer,
    say: Option<mpsc::Sender<Frame>>,
    beyond: Option<Box<dyn FrameWriter>>,
}

impl MockWriter {
    async fn put(&mut self, frames: &mut Vec<OutgoingFrame>) -> Result<(), LinkEnd> {
        let say = self.say.clone().ok_or(LinkEnd::Closed)?;
        let mut onward = Vec::new();
        for frame in frames.drain(..).filter_map(OutgoingFrame::into_written) {
            let Body::Message(message) = &frame.body else {
                continue;
            };
            // A real server has to be greeted, and told what it is to know.
            if self.beyond.is_some() && !self.mock.can_answer(message) {
                onward.push(frame.into());
                continue;
            }
            let messages = match self.mock.answer_message(message) {
                MockReply::Messages(messages) => messages,
                MockReply::Unmatched(_) if self.beyond.is_some() => {
                    onward.push(frame.into());
                    continue;
                }
                MockReply::Unmatched(lack) => vec![self.mock.unmatched(message, lack)],
            };
            for message in messages {
                let frame = Frame::message(StreamId::Only, Origin::Server, message);
                let said = say.send(frame).await;
                said.map_err(|_| LinkEnd::Closed)?;
            }
        }
        match &mut self.beyond {
            Some(beyond) if !onward.is_empty() => beyond.write(&mut onward).await,
            _ => Ok(()),
        }
    }
}

impl FrameWriter for MockWriter {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(self.put(frames))
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.say = None;
        Box::pin(async move {
            if let Some(beyond) = &mut self.beyond {
                beyond.close().await;
            }
        })
    }
}

struct MockReader {
    said: mpsc::Receiver<Frame>,
    beyond: Option<Box<dyn FrameReader>>,
}

impl MockReader {
    fn take_ready(&mut self, into: &mut Vec<Frame>) {
        while let Ok(frame) = self.said.try_recv() {
            into.push(frame);
        }
    }
}

impl FrameReader for MockReader {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            let Some(beyond) = &mut self.beyond else {
                into.push(self.said.recv().await.ok_or(LinkEnd::Closed)?);
                self.take_ready(into);
                return Ok(());
            };
            tokio::select! {
                Some(frame) = self.said.recv() => into.push(frame),
                read = beyond.read(into) => return read,
            }
            self.take_ready(into);
            Ok(())
        })
    }
}
