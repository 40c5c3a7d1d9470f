//! How far the requests of a conversation have come, for calls that are lost with their server.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_proxy_core::{BoxFuture, FrameWriter, LinkEnd, OutgoingFrame};
use mcp_proxy_wire::Body;

use crate::server_link::request_number;

/// Bytes of the messages that are remembered: more than waits in any pipe.
const REMEMBERED: u64 = 2 << 20;

/// Writes to a server, and knows how far its requests have come.
pub(super) struct TrackingWriter {
    tracker: Arc<WriteTracker>,
    /// The numbers of the requests that are being written, and their bytes.
    sent: Vec<(u64, u64)>,
}

/// What was written to a server.
pub(super) struct WriteTracker {
    /// Locked while something is being written. `None` after the end: a server's stdin must not stay open.
    writer: tokio::sync::Mutex<Option<Box<dyn FrameWriter>>>,
    progress: Mutex<WriteProgress>,
}

#[derive(Default)]
struct WriteProgress {
    /// The highest number of a request that was written, or may have been.
    highest: u64,
    /// The last messages, oldest first: the highest request number up to each, and its bytes.
    last: VecDeque<(u64, u64)>,
    remembered: u64,
    /// The highest number up to the messages that are not remembered any more.
    forgotten: u64,
}

impl TrackingWriter {
    pub(super) fn new(tracker: Arc<WriteTracker>) -> TrackingWriter {
        let sent = Vec::new();
        TrackingWriter { tracker, sent }
    }
}

impl WriteTracker {
    pub(super) fn new(writer: Box<dyn FrameWriter>) -> Arc<WriteTracker> {
        Arc::new(WriteTracker {
            writer: tokio::sync::Mutex::new(Some(writer)),
            progress: Mutex::default(),
        })
    }

    /// The highest number of a request that the server may have read.
    pub(super) fn highest_read(&self) -> u64 {
        let writer = self.writer.try_lock().ok();
        let unread = writer.and_then(|writer| writer.as_ref()?.unread());
        self.progress().highest_read(unread.unwrap_or_default())
    }

    /// Remembers what is unread now, because it cannot be asked for after the end.
    fn note_unread(&self) {
        let highest = self.highest_read();
        self.progress().stop_at(highest);
    }

    fn progress(&self) -> MutexGuard<'_, WriteProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WriteProgress {
    fn note(&mut self, number: u64, bytes: u64) {
        self.highest = self.highest.max(number);
        self.last.push_back((self.highest, bytes));
        self.remembered += bytes;
        while self.remembered > REMEMBERED
            && self.last.len() > 1
            && let Some((highest, bytes)) = self.last.pop_front()
        {
            self.remembered -= bytes;
            self.forgotten = highest;
        }
    }

    /// Nothing can be said about the order of messages up to this number any more.
    fn stop_at(&mut self, highest: u64) {
        *self = WriteProgress {
            highest,
            forgotten: highest,
            ..WriteProgress::default()
        };
    }

    /// Requests behind this one are still in the pipe, as a whole: nobody has read them, and nobody will when the
    /// server has gone.
    fn highest_read(&self, mut unread: u64) -> u64 {
        for (highest, bytes) in self.last.iter().rev() {
            match unread.checked_sub(*bytes) {
                Some(rest) => unread = rest,
                None => return *highest,
            }
        }
        self.forgotten
    }
}

impl FrameWriter for TrackingWriter {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        let TrackingWriter { tracker, sent } = self;
        sent.clear();
        sent.extend(frames.iter().map(number_and_bytes));
        let before = {
            let mut progress = tracker.progress();
            let before = progress.highest;
            // Noted in advance: a write that is given up halfway may have reached the server.
            for (number, bytes) in &*sent {
                progress.note(*number, *bytes);
            }
            before
        };
        Box::pin(async move {
            let mut writer = tracker.writer.lock().await;
            let outcome = match writer.as_mut() {
                Some(writer) => writer.write(frames).await,
                None => Err(LinkEnd::Closed),
            };
            if outcome.is_err() {
                let taken = sent.iter().take(sent.len().saturating_sub(frames.len()));
                let highest = taken.fold(before, |highest, (number, _)| highest.max(*number));
                tracker.progress().stop_at(highest);
            }
            outcome
        })
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.tracker.note_unread();
        Box::pin(async move {
            if let Some(writer) = self.tracker.writer.lock().await.as_mut() {
                writer.close().await;
            }
        })
    }
}

impl Drop for TrackingWriter {
    fn drop(&mut self) {
        self.tracker.note_unread();
        if let Ok(mut writer) = self.tracker.writer.try_lock() {
            *writer = None;
        }
    }
}

/// The number of the request that a frame has, or 0, and how many bytes it is in a pipe. One that was dropped or edited on the
/// way counts under the number that the hub gave it: somebody has decided about it.
fn number_and_bytes(outgoing: &OutgoingFrame) -> (u64, u64) {
    let original = match outgoing {
        OutgoingFrame::Replacement { original, .. } => request_number(original),
        _ => None,
    };
    let (sent, bytes) = match &outgoing.frame().body {
        Body::Message(message) => (request_number(message), message.len() + 1),
        Body::Empty => (None, 0),
    };
    (original.max(sent).unwrap_or_default(), bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_still_in_the_pipe_was_not_read() {
        let mut progress = WriteProgress::default();
        for (number, bytes) in [(1, 10), (2, 20), (0, 5), (3, 30)] {
            progress.note(number, bytes);
        }
        for (unread, highest) in [
            (0, 3),
            (29, 3),
            (30, 2),
            (34, 2),
            (35, 2),
            (54, 2),
            (55, 1),
            (65, 0),
        ] {
            assert_eq!(
                progress.highest_read(unread),
                highest,
                "{unread} bytes unread"
            );
        }
    }
}
