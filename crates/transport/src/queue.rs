//! A queue between two tasks, bounded by number and by bytes: what does not fit waits with its sender.
//!
//! A queue has places. A message takes one of them, a large one several, so that messages of any size take no more than
//! [`BYTES_MAX`] while they wait. A large message gets all its places at once and in its turn: two senders cannot each hold
//! half of what they need, and small messages cannot starve a large one.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

/// Bytes that may wait in a queue. A single message that is larger may wait in it alone.
pub(crate) const BYTES_MAX: usize = 64 << 20;

/// What can wait in a queue.
pub trait ByteSize {
    /// How much memory it keeps.
    fn bytes(&self) -> usize;
}

/// It was not queued: nobody reads the queue any more, or not in time.
#[derive(Debug)]
pub struct QueueSendError;

/// The feeding end.
pub struct QueueSender<T> {
    /// `None` keeps one more place for the message before it.
    places: mpsc::Sender<Option<T>>,
}

/// The reading end.
pub(crate) struct QueueReceiver<T> {
    places: mpsc::Receiver<Option<T>>,
}

/// A queue with this many places.
pub(crate) fn queue<T>(places: usize) -> (QueueSender<T>, QueueReceiver<T>) {
    let (sender, receiver) = mpsc::channel(places);
    (
        QueueSender { places: sender },
        QueueReceiver { places: receiver },
    )
}

impl<T> Clone for QueueSender<T> {
    fn clone(&self) -> Self {
        let places = self.places.clone();
        QueueSender { places }
    }
}

impl<T: ByteSize> QueueSender<T> {
    /// Queues it, when there is room.
    pub async fn send(&self, item: T) -> Result<(), QueueSendError> {
        let places = self.places.reserve_many(self.needed(&item)).await;
        fill(places.map_err(|_| QueueSendError)?, item);
        Ok(())
    }

    /// Queues it, unless there is no room for so long.
    pub async fn send_timeout(&self, item: T, limit: Duration) -> Result<(), QueueSendError> {
        let sent = timeout(limit, self.send(item)).await;
        sent.unwrap_or(Err(QueueSendError))
    }

    /// Queues it if there is room now.
    pub fn try_send(&self, item: T) -> Result<(), QueueSendError> {
        let places = self.places.try_reserve_many(self.needed(&item));
        fill(places.map_err(|_| QueueSendError)?, item);
        Ok(())
    }

    /// Whether nobody reads it any more.
    pub fn is_closed(&self) -> bool {
        self.places.is_closed()
    }

    /// One place for each part of [`BYTES_MAX`] that it takes, and never more than there are.
    fn needed(&self, item: &T) -> usize {
        let all = self.places.max_capacity();
        item.bytes().div_ceil(BYTES_MAX / all).clamp(1, all)
    }
}

fn fill<T>(mut places: mpsc::PermitIterator<'_, Option<T>>, item: T) {
    if let Some(first) = places.next() {
        first.send(Some(item));
    }
    for place in places {
        place.send(None);
    }
}

impl<T> QueueReceiver<T> {
    /// The next message; `None` when there will be none.
    pub(crate) async fn recv(&mut self) -> Option<T> {
        loop {
            if let Some(item) = self.places.recv().await? {
                return Some(item);
            }
        }
    }

    /// The next message if it is there already.
    pub(crate) fn try_recv(&mut self) -> Option<T> {
        loop {
            if let Some(item) = self.places.try_recv().ok()? {
                return Some(item);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::by_runtime;

    const MIB: usize = 1 << 20;
    const PLACES: usize = 64;

    /// A length in bytes, without the bytes.
    #[derive(Debug, PartialEq)]
    struct Parcel(usize);

    impl ByteSize for Parcel {
        fn bytes(&self) -> usize {
            self.0
        }
    }

    /// Paused time moves on only when nothing else can: who is not done by then waits for somebody.
    async fn waits(sending: impl Future<Output = Result<(), QueueSendError>>) -> bool {
        let limit = by_runtime(Duration::from_secs(1), Duration::from_millis(100));
        timeout(limit, sending).await.is_err()
    }

    on_both_runtimes!(small_messages_are_bounded_by_their_number);
    async fn small_messages_are_bounded_by_their_number() {
        let (sender, mut receiver) = queue(PLACES);
        for _ in 0..PLACES {
            sender.send(Parcel(MIB)).await.unwrap();
        }
        assert!(waits(sender.send(Parcel(0))).await);
        assert!(sender.try_send(Parcel(0)).is_err());
        assert_eq!(receiver.recv().await, Some(Parcel(MIB)));
        assert!(!waits(sender.send(Parcel(0))).await);
    }

    on_both_runtimes!(large_messages_are_bounded_by_their_bytes);
    async fn large_messages_are_bounded_by_their_bytes() {
        let (sender, mut receiver) = queue(PLACES);
        for _ in 0..6 {
            sender.send(Parcel(10 * MIB)).await.unwrap();
        }
        assert!(waits(sender.send(Parcel(10 * MIB))).await);
        sender.send(Parcel(4 * MIB)).await.unwrap();
        assert!(waits(sender.send(Parcel(0))).await, "64 MiB wait");
        for expected in [10, 10, 10, 10, 10, 10, 4] {
            assert_eq!(receiver.recv().await, Some(Parcel(expected * MIB)));
        }
        assert_eq!(receiver.try_recv(), None);
        assert!(!waits(sender.send(Parcel(64 * MIB))).await);
    }

    on_both_runtimes!(a_message_larger_than_the_queue_waits_until_it_is_alone);
    async fn a_message_larger_than_the_queue_waits_until_it_is_alone() {
        let (sender, mut receiver) = queue(PLACES);
        sender.send(Parcel(1)).await.unwrap();
        assert!(waits(sender.send(Parcel(200 * MIB))).await);
        assert_eq!(receiver.recv().await, Some(Parcel(1)));
        sender.send(Parcel(200 * MIB)).await.unwrap();
        assert!(waits(sender.send(Parcel(1))).await);
        assert_eq!(receiver.recv().await, Some(Parcel(200 * MIB)));
    }

    on_both_runtimes!(two_large_senders_do_not_wait_for_each_other);
    async fn two_large_senders_do_not_wait_for_each_other() {
        let (sender, mut receiver) = queue(PLACES);
        let sending = [0, 1].map(|_| {
            let sender = sender.clone();
            tokio::spawn(async move {
                for _ in 0..10 {
                    sender.send(Parcel(40 * MIB)).await.unwrap();
                }
            })
        });
        for _ in 0..20 {
            assert_eq!(receiver.recv().await, Some(Parcel(40 * MIB)));
        }
        for sending in sending {
            sending.await.unwrap();
        }
    }

    on_both_runtimes!(who_gives_up_or_is_left_alone_keeps_no_place);
    async fn who_gives_up_or_is_left_alone_keeps_no_place() {
        let (sender, mut receiver) = queue(PLACES);
        sender.send(Parcel(40 * MIB)).await.unwrap();
        let limit = by_runtime(Duration::from_secs(60), Duration::from_millis(100));
        assert!(sender.send_timeout(Parcel(40 * MIB), limit).await.is_err());
        assert!(!waits(sender.send(Parcel(24 * MIB))).await);
        assert_eq!(receiver.recv().await, Some(Parcel(40 * MIB)));
        drop(receiver);
        assert!(sender.send(Parcel(40 * MIB)).await.is_err());
    }
}
