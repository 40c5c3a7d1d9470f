//! Where a lane finds its messages again that were held.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::watch;

use crate::connection::Connection;
use crate::link::Outgoing;

/// What a decision lets go: at most one frame each way. Neither: the message was dropped and nobody waits.
#[derive(Debug, Default)]
pub(crate) struct Released {
    /// For the side that the message was travelling to.
    pub on: Option<Outgoing>,
    /// For the side that it came from.
    pub back: Option<Outgoing>,
}

impl Released {
    /// It came too late for its lane: what it would have written is undelivered.
    pub fn note(self, connection: &Connection) {
        let frames = self.on.into_iter().chain(self.back);
        let written = frames.filter_map(Outgoing::into_written);
        let sequences: Vec<u64> = written.filter_map(|frame| frame.sequence).collect();
        connection.undelivered(&sequences, "the connection ended before it was sent");
    }
}

/// The messages of one lane that are decided, and how many are not.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    letters: Mutex<Letters>,
    /// True when nobody reads it any more.
    end: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Letters {
    expected: usize,
    released: VecDeque<Released>,
    reader: Option<Waker>,
    /// Nobody reads it any more.
    closed: bool,
}

/// A lane's end of its mailbox: when the lane ends, what is still held can go nowhere.
pub(crate) struct LaneMailbox {
    pub mailbox: Arc<Mailbox>,
    connection: Arc<Connection>,
}

impl LaneMailbox {
    /// An empty one.
    pub fn new(connection: &Arc<Connection>) -> LaneMailbox {
        LaneMailbox {
            mailbox: Arc::default(),
            connection: Arc::clone(connection),
        }
    }
}

impl Drop for LaneMailbox {
    fn drop(&mut self) {
        // Closed first: another thread may be deciding right now.
        let (unread, expected) = self.mailbox.close();
        for released in unread {
            released.note(&self.connection);
        }
        if expected > 0 {
            self.connection.pipeline.intercept().abandon(&self.mailbox);
        }
    }
}

impl Mailbox {
    /// One more message is held.
    pub fn expect(&self) {
        self.letters().expected += 1;
    }

    /// A message is decided. It is returned if nobody reads the mailbox any more.
    #[must_use]
    pub fn put(&self, released: Released) -> Option<Released> {
        let mut letters = self.letters();
        letters.expected = letters.expected.saturating_sub(1);
        self.deliver(letters, released)
    }

    /// Something to say while a message is still held. It is returned if nobody reads the mailbox any more.
    #[must_use]
    pub fn tell(&self, meanwhile: Released) -> Option<Released> {
        self.deliver(self.letters(), meanwhile)
    }

    fn deliver(
        &self,
        mut letters: MutexGuard<'_, Letters>,
        released: Released,
    ) -> Option<Released> {
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
    fn close(&self) -> (VecDeque<Released>, usize) {
        let mut letters = self.letters();
        letters.closed = true;
        let rest = (std::mem::take(&mut letters.released), letters.expected);
        drop(letters);
        self.end.send_replace(true);
        rest
    }

    /// Waits until nobody reads it any more.
    pub async fn closed(&self) {
        // The sender is here: there is always an end to wait for.
        let _ = self.end.subscribe().wait_for(|ended| *ended).await;
    }

    /// Whether something is here or will come.
    pub fn awaits(&self) -> bool {
        let letters = self.letters();
        letters.expected > 0 || !letters.released.is_empty()
    }

    /// What is here.
    pub fn take(&self) -> VecDeque<Released> {
        std::mem::take(&mut self.letters().released)
    }

    /// Waits until something is here. Safe to cancel.
    pub async fn came(&self) {
        std::future::poll_fn(|cx| self.poll_came(cx)).await;
    }

    /// The same, polled. A mailbox has one reader.
    pub fn poll_came(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut letters = self.letters();
        if !letters.released.is_empty() {
            return Poll::Ready(());
        }
        letters.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
