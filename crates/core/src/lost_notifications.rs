//! Notifications that a client does not get, because it does not read as fast as its server writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Notify;

/// What the client of a connection has lost, wherever that was: in the queue of a server in this process, or on a stream.
#[derive(Debug, Default)]
pub struct LostNotifications {
    /// Of all clients of the run.
    total: Arc<AtomicU64>,
    /// Of this one, since it was last told.
    untold: AtomicU64,
    has_lost: AtomicBool,
    /// Its streams that have lost some and were not read to their end since.
    streams_behind: AtomicUsize,
    news: Notify,
}

/// A stream that has lost notifications, until its client has read what waits on it, or it is closed.
#[derive(Debug)]
pub struct LaggingStream(Arc<LostNotifications>);

impl LostNotifications {
    /// Nothing is lost yet. `total` counts what all clients lose.
    pub fn new(total: Arc<AtomicU64>) -> LostNotifications {
        LostNotifications {
            total,
            ..LostNotifications::default()
        }
    }

    /// One more is lost. Whether it is the client's first.
    pub fn add(&self) -> bool {
        self.total.fetch_add(1, Ordering::Relaxed);
        self.untold.fetch_add(1, Ordering::Relaxed);
        self.news.notify_one();
        !self.has_lost.swap(true, Ordering::Relaxed)
    }

    /// A stream of the client has lost some.
    pub fn fall_behind(self: &Arc<Self>) -> LaggingStream {
        self.streams_behind.fetch_add(1, Ordering::Relaxed);
        LaggingStream(Arc::clone(self))
    }

    /// How many the client has not been told of.
    pub fn untold(&self) -> u64 {
        self.untold.load(Ordering::Relaxed)
    }

    /// Whether the client would get a warning now: it would only be lost too on a stream that has no room.
    pub fn can_be_told(&self) -> bool {
        self.untold() > 0 && self.streams_behind.load(Ordering::Relaxed) == 0
    }

    /// How many to tell the client of, now that it can be told.
    pub fn take(&self) -> u64 {
        match self.can_be_told() {
            true => self.untold.swap(0, Ordering::Relaxed),
            false => 0,
        }
    }

    /// Waits until something is lost, or the client reads again.
    pub async fn changed(&self) {
        self.news.notified().await;
    }
}

impl Drop for LaggingStream {
    fn drop(&mut self) {
        self.0.streams_behind.fetch_sub(1, Ordering::Relaxed);
        self.0.news.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a2_a_client_is_told_once_all_its_streams_are_read() {
        let total = Arc::<AtomicU64>::default();
        let lost = Arc::new(LostNotifications::new(Arc::clone(&total)));
        assert!(lost.add());
        let (first, second) = (lost.fall_behind(), lost.fall_behind());
        assert!(!lost.add());
        drop(first);
        assert_eq!((lost.untold(), lost.take()), (2, 0));
        drop(second);
        assert_eq!((lost.take(), lost.take()), (2, 0));
        assert!(!lost.add());
        assert_eq!((lost.take(), total.load(Ordering::Relaxed)), (1, 3));
    }
}
