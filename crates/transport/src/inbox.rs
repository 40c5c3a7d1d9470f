//! The reading half of a link that is fed by tasks: POST handlers, response streams.

use mcp_proxy_core::{BoxFuture, FrameReader, LinkEnd};
use mcp_proxy_wire::Frame;
use tokio::sync::mpsc;

/// Frames that may wait between a task and its pump.
pub const INBOX: usize = 256;

/// What a task hands over: a frame, or the end of the link.
#[derive(Debug)]
pub enum Arrival {
    /// A frame.
    Frame(Frame),
    /// No more will come, and why.
    End(LinkEnd),
}

/// Reads what tasks hand over.
pub struct InboxReader {
    arrivals: mpsc::Receiver<Arrival>,
    end: Option<LinkEnd>,
}

/// A bounded inbox: its feeding end and its reader.
pub fn inbox() -> (mpsc::Sender<Arrival>, InboxReader) {
    let (sender, arrivals) = mpsc::channel(INBOX);
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
        let mut arrival = Some(first);
        while let Some(next) = arrival {
            match next {
                Arrival::Frame(frame) => into.push(frame),
                Arrival::End(end) => {
                    self.end = Some(end.clone());
                    return if into.is_empty() { Err(end) } else { Ok(()) };
                }
            }
            arrival = self.arrivals.try_recv().ok();
        }
        Ok(())
    }
}

impl FrameReader for InboxReader {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(self.next(into))
    }
}
