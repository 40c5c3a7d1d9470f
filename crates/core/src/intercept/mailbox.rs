//! Where a lane finds its messages again that were held.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::Intercept;
use crate::link::Outgoing;
use tokio::sync::watch;

/// What a decision lets go: at most one frame each way. Neither: the message was dropped and nobody waits.
#[derive(Debug, Default)]
pub(crate) struct Released {
    /// For the side that the message was travelling to.
    pub on: Option<Outgoing>,
    /// For the side that it came from.
    pub back: Option<Outgoing>,
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
}

/// A lane's end of its mailbox: when the lane goes, what is still held can go nowhere.
pub(crate) struct LaneMailbox {
    pub mailbox: Arc<Mailbox>,
    intercept: Arc<Intercept>,
}

impl LaneMailbox {
    /// An empty one.
    pub fn new(intercept: &Arc<Intercept>) -> LaneMailbox {
        LaneMailbox {
            mailbox: Arc::default(),
            intercept: Arc::clone(intercept),
        }
    }
}

impl Drop for LaneMailbox {
    fn drop(&mut self) {
        self.mailbox.end.send_replace(true);
        if self.mailbox.awaits() {
            self.intercept.abandon(&self.mailbox);
        }
    }
}

impl Mailbox {
    /// One more message is held.
    pub fn expect(&self) {
        self.letters().expected += 1;
    }

    /// A message is decided.
    pub fn put(&self, released: Released) {
        let mut letters = self.letters();
        letters.expected = letters.expected.saturating_sub(1);
        letters.released.push_back(released);
        let reader = letters.reader.take();
        drop(letters);
        reader.into_iter().for_each(Waker::wake);
    }

    /// Something to say while a message is still held.
    pub fn tell(&self, meanwhile: Released) {
        self.letters().expected += 1;
        self.put(meanwhile);
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
