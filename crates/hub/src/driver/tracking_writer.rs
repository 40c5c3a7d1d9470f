//! How far the requests of a conversation have been written, for calls that are lost with their server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcp_proxy_core::{BoxFuture, FrameWriter, LinkEnd, OutgoingFrame};
use mcp_proxy_wire::Body;

use crate::server_link::request_number;

/// Writes to a server, and knows how far its requests have come.
pub(super) struct TrackingWriter {
    pub(super) inner: Box<dyn FrameWriter>,
    /// The highest number of a request that the server may have.
    pub(super) written: Arc<AtomicU64>,
}

impl FrameWriter for TrackingWriter {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        let before = self.written.load(Ordering::Acquire);
        // Noted in advance: a write that is given up halfway may have reached the server.
        let numbers: Vec<u64> = frames.iter().map(request_of_frame).collect();
        let highest = numbers.iter().copied().fold(before, u64::max);
        self.written.store(highest, Ordering::Release);
        Box::pin(async move {
            let outcome = self.inner.write(frames).await;
            if outcome.is_err() {
                let taken = numbers
                    .iter()
                    .take(numbers.len().saturating_sub(frames.len()));
                let highest = taken.copied().fold(before, u64::max);
                self.written.store(highest, Ordering::Release);
            }
            outcome
        })
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}

/// The number of the request that a frame has, or 0. One that was dropped or edited on the way counts under the number that
/// the hub gave it: somebody has decided about it.
fn request_of_frame(outgoing: &OutgoingFrame) -> u64 {
    let original = match outgoing {
        OutgoingFrame::Replacement { original, .. } => request_number(original),
        _ => None,
    };
    let sent = match &outgoing.frame().body {
        Body::Whole(message) => request_number(message),
        Body::Empty => None,
        // The hub sends whole messages. If one came in pieces, nothing could be said about any.
        Body::Open(_) | Body::More(_) | Body::Close(_) => Some(u64::MAX),
    };
    original.max(sent).unwrap_or_default()
}
