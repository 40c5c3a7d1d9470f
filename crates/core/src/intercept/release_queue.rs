//! Where a pipeline finds its messages again that were held.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::watch;

use crate::connection::Connection;
use crate::link::OutgoingFrame;

/// What a decision lets go: at most one frame each way. Neither: the message was dropped and nobody waits.
#[derive(Debug, Default)]
pub(crate) struct HoldOutcome {
    /// For the side that the message was travelling to.
    pub forward: Option<OutgoingFrame>,
    /// For the side that it came from.
    pub reply: Option<OutgoingFrame>,
}

impl HoldOutcome {
    /// It came too late for its pipeline: what it would have written is undelivered.
    pub(crate) fn note(self, connection: &Connection) {
        let frames = self.forward.into_iter().chain(self.reply);
        let written = frames.filter_map(OutgoingFrame::into_written);
        let sequences: Vec<u64> = written.filter_map(|frame| frame.sequence).collect();
        connection.undelivered(&sequences, "the connection ended before it was sent");
    }
}

/// The messages of one pipeline that are decided, and how many are not.
#[derive(Debug, Default)]
pub(crate) struct ReleaseQueue {
    letters: Mutex<ReleaseQueueState>,
    /// True when nobody reads it any more.
    end: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct ReleaseQueueState {
    expected: usize,
    released: VecDeque<HoldOutcome>,
    reader: Option<Waker>,
    /// Nobody reads it any more.
    closed: bool,
}

/// A pipeline's end of its release_queue: when the pipeline ends, what is still held can go nowhere.
pub(crate) struct ReleaseQueueReader {
    pub release_queue: Arc<ReleaseQueue>,
    connection: Arc<Connection>,
}

impl ReleaseQueueReader {
    /// An empty one.
    pub(crate) fn new(connection: &Arc<Connection>) -> ReleaseQueueReader {
        ReleaseQueueReader {
            release_queue: Arc::default(),
            connection: Arc::clone(connection),
        }
    }
}

impl Drop for ReleaseQueueReader {
    fn drop(&mut self) {
        // Closed first: another thread may be deciding right now.
        let (unread, expected) = self.release_queue.close();
        for released in unread {
            released.note(&self.connection);
        }
        if expected > 0 {
            self.connection.run.intercept().abandon(&self.release_queue);
        }
    }
}

impl ReleaseQueue {
    /// One more message is held.
    pub(crate) fn expect(&self) {
        self.letters().expected += 1;
    }

    /// A message is decided. It is returned if nobody reads the release_queue any more.
    #[must_use]
    pub(crate) fn put(&self, released: HoldOutcome) -> Option<HoldOutcome> {
        let mut letters = self.letters();
        letters.expected = letters.expected.saturating_sub(1);
        self.deliver(letters, released)
    }

    /// Something to say while a message is still held. It is returned if nobody reads the release_queue any more.
    #[must_use]
    pub(crate) fn put_progress(&self, meanwhile: HoldOutcome) -> Option<HoldOutcome> {
        self.deliver(self.letters(), meanwhile)
    }

    fn deliver(
        &self,
        mut letters: MutexGuard<'_, ReleaseQueueState>,
        released: HoldOutcome,
    ) -> Option<HoldOutcome> {
        if letters.closed {
            return Some(released);
        }
        letters.released.push_back(released);
        let reader = letters.reader.take();
        drop(letters);
        reader.into_iter().for_each(Waker::wake);
        None
    }

    /// Nobody reads it any more: what is unread, and how many messages are still undecided.
    fn close(&self) -> (VecDeque<HoldOutcome>, usize) {
        let mut letters = self.letters();
        letters.closed = true;
        let rest = (std::mem::take(&mut letters.released), letters.expected);
        drop(letters);
        self.end.send_replace(true);
        rest
    }

    /// Waits until nobody reads it any more.
    pub(crate) async fn closed(&self) {
        // The sender is here: there is always an end to wait for.
        let _ = self.end.subscribe().wait_for(|ended| *ended).await;
    }

    /// Whether something is here or will come.
    pub(crate) fn has_pending(&self) -> bool {
        let letters = self.letters();
        letters.expected > 0 || !letters.released.is_empty()
    }

    /// What is here.
    pub(crate) fn take(&self) -> VecDeque<HoldOutcome> {
        std::mem::take(&mut self.letters().released)
    }

    /// Waits until something is here. Safe to cancel.
    pub(crate) async fn wait_ready(&self) {
        std::future::poll_fn(|cx| self.poll_ready(cx)).await;
    }

    /// The same, polled. A release_queue has one reader.
    pub(crate) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut letters = self.letters();
        if !letters.released.is_empty() {
            return Poll::Ready(());
        }
        letters.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    fn letters(&self) -> MutexGuard<'_, ReleaseQueueState> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
