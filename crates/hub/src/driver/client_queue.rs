//! Messages on their way to one client.
//!
//! A client that does not keep up loses notifications, never its session: answers and servers' questions always have room.
//! When it has caught up, it is told how many notifications it has lost, and that lists and resources have changed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use mcp_proxy_core::{BoxFuture, FrameReader, LinkEnd, LostNotifications};
use mcp_proxy_wire::{Frame, Kind, Message, Origin, StreamId};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout_at};

use super::HubDriver;
use crate::server_link::ClientId;

/// Messages that may wait before notifications are lost.
const NOTIFICATIONS_UP_TO: usize = 4_096;
/// Messages that may wait at all. A client that leaves so many answers unread has stopped.
const ALL: usize = 16_384;
/// Notices of change that are kept for a client that has fallen behind.
const CHANGES_MAX: usize = 256;
/// A client that falls behind again and again is told so at most this often.
const WARN_EVERY: Duration = Duration::from_secs(5);

/// The feeding end.
pub(super) struct ClientQueue {
    sender: mpsc::Sender<Box<Frame>>,
    missed: Arc<MissedMessages>,
}

/// The reading end.
pub(super) struct ClientQueueReader {
    receiver: mpsc::Receiver<Box<Frame>>,
    missed: Arc<MissedMessages>,
    driver: Weak<HubDriver>,
    client: ClientId,
    /// No further warning before this.
    quiet_until: Option<Instant>,
}

/// What became of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Queued {
    /// It waits for the client.
    Waits,
    /// It is not delivered: the client is behind.
    Lost {
        /// The client has lost nothing before.
        is_first: bool,
    },
    /// The client has stopped reading.
    Refused,
}

/// What a client has missed, known to both ends.
#[derive(Debug)]
struct MissedMessages {
    lost: Arc<LostNotifications>,
    /// Lists and resources that have changed since the client was last told, each once.
    changes: Mutex<Vec<Message>>,
    /// There is a change to tell. The client may be idle.
    news: Notify,
}

/// A queue for this client.
pub(super) fn client_queue(
    driver: Weak<HubDriver>,
    client: ClientId,
    lost: Arc<LostNotifications>,
) -> (ClientQueue, ClientQueueReader) {
    let (sender, receiver) = mpsc::channel(ALL);
    let missed = Arc::new(MissedMessages {
        lost,
        changes: Mutex::default(),
        news: Notify::new(),
    });
    let reader = ClientQueueReader {
        receiver,
        missed: Arc::clone(&missed),
        driver,
        client,
        quiet_until: None,
    };
    (ClientQueue { sender, missed }, reader)
}

impl ClientQueue {
    /// Queues a message, if there is room for its kind.
    pub(super) fn push(&self, message: Message) -> Queued {
        let waiting = self.sender.max_capacity() - self.sender.capacity();
        if waiting >= NOTIFICATIONS_UP_TO
            && let Some(kind) = losable_kind(&message)
        {
            return self.miss(kind, message);
        }
        match self.sender.try_send(frame(message)) {
            Ok(()) => Queued::Waits,
            Err(_) => Queued::Refused,
        }
    }

    /// There is no room for a notification.
    pub(super) fn miss(&self, kind: LosableKind, message: Message) -> Queued {
        match self.missed.keep_change(kind, message) {
            true => Queued::Waits,
            false => Queued::Lost {
                is_first: self.missed.lost.add(),
            },
        }
    }

    /// Whether the client has missed something that it has not been told of.
    pub(super) fn is_behind(&self) -> bool {
        self.missed.lost.untold() > 0 || !self.missed.changes().is_empty()
    }
}

/// Notifications that a client can do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LosableKind {
    /// It says something once.
    Event,
    /// It says that something is not as it was, and is as true later.
    Change,
}

pub(super) fn losable_kind(message: &Message) -> Option<LosableKind> {
    if message.kind() != Kind::Notification {
        return None;
    }
    match message.method()?.as_ref() {
        "notifications/message" | "notifications/progress" | "notifications/tasks/status" => {
            Some(LosableKind::Event)
        }
        "notifications/tools/list_changed"
        | "notifications/prompts/list_changed"
        | "notifications/resources/list_changed"
        | "notifications/resources/updated" => Some(LosableKind::Change),
        _ => None,
    }
}

impl MissedMessages {
    fn changes(&self) -> MutexGuard<'_, Vec<Message>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a notice of change, if there is room for it.
    fn keep_change(&self, kind: LosableKind, message: Message) -> bool {
        if kind != LosableKind::Change {
            return false;
        }
        let mut changes = self.changes();
        let is_known = changes.iter().any(|kept| kept.raw() == message.raw());
        if !is_known {
            if changes.len() == CHANGES_MAX {
                return false;
            }
            changes.push(message);
        }
        drop(changes);
        self.news.notify_one();
        true
    }

    /// Whether there is something to tell, and the client would get it.
    fn can_be_told(&self) -> bool {
        self.lost.can_be_told() || !self.changes().is_empty()
    }
}

impl ClientQueueReader {
    /// What a client that has caught up is told about what it missed.
    fn take_missed(&mut self, into: &mut Vec<Frame>) {
        let lost = self.missed.lost.take();
        let changes = std::mem::take(&mut *self.missed.changes());
        self.quiet_until = Some(Instant::now() + WARN_EVERY);
        let warning = self
            .driver
            .upgrade()
            .filter(|_| lost > 0)
            .and_then(|driver| driver.lock().hub.loss_warning(self.client, lost));
        let told = warning.into_iter().chain(changes);
        into.extend(told.map(|message| *frame(message)));
    }

    async fn next(&mut self, into: &mut Vec<Frame>) -> Result<(), LinkEnd> {
        loop {
            while let Ok(frame) = self.receiver.try_recv() {
                into.push(*frame);
            }
            if !into.is_empty() {
                return Ok(());
            }
            let next = match self.missed.can_be_told() {
                false => tokio::select! {
                    next = self.receiver.recv() => next,
                    () = self.missed.news.notified() => continue,
                    () = self.missed.lost.changed() => continue,
                },
                true => {
                    let quiet_until = self.quiet_until.unwrap_or_else(Instant::now);
                    match timeout_at(quiet_until, self.receiver.recv()).await {
                        Ok(next) => next,
                        Err(_) => {
                            self.take_missed(into);
                            continue;
                        }
                    }
                }
            };
            into.push(*next.ok_or(LinkEnd::Closed)?);
        }
    }
}

impl FrameReader for ClientQueueReader {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(self.next(into))
    }
}

fn frame(message: Message) -> Box<Frame> {
    Box::new(Frame::message(StreamId::Only, Origin::Server, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
    const TOOLS: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    const QUESTION: &str = r#"{"jsonrpc":"2.0","id":"s1-1","method":"roots/list"}"#;

    fn message(text: &'static str) -> Message {
        Message::parse(text)
    }

    async fn read(reader: &mut ClientQueueReader) -> Vec<Frame> {
        let mut frames = Vec::new();
        reader.read(&mut frames).await.unwrap();
        frames
    }

    #[tokio::test(start_paused = true)]
    async fn a2_a_client_that_falls_behind_loses_notifications_and_nothing_else() {
        let (queue, mut reader) = client_queue(Weak::new(), ClientId(1), Arc::default());
        let mut lost = 0;
        for _ in 0..50_000 {
            let queued = queue.push(message(LOG));
            let is_first = lost == 0;
            match queued {
                Queued::Waits => {}
                other => {
                    assert_eq!(other, Queued::Lost { is_first });
                    lost += 1;
                }
            }
        }
        assert_eq!(lost, 50_000 - NOTIFICATIONS_UP_TO);
        assert!(queue.is_behind());
        assert_eq!(queue.missed.lost.untold(), lost as u64);
        assert_eq!(queue.push(message(ANSWER)), Queued::Waits);
        assert_eq!(queue.push(message(QUESTION)), Queued::Waits);
        // Lists that have changed are told when there is room again, once each.
        assert_eq!(queue.push(message(TOOLS)), Queued::Waits);
        assert_eq!(queue.push(message(TOOLS)), Queued::Waits);
        assert_eq!(read(&mut reader).await.len(), NOTIFICATIONS_UP_TO + 2);
        assert_eq!(read(&mut reader).await.len(), 1);
        assert!(!queue.is_behind());
        assert_eq!(queue.push(message(LOG)), Queued::Waits);
    }

    #[tokio::test(start_paused = true)]
    async fn a5_an_idle_client_is_told_of_what_there_was_no_memory_for() {
        let (queue, mut reader) = client_queue(Weak::new(), ClientId(1), Arc::default());
        let idle = tokio::spawn(async move { read(&mut reader).await });
        tokio::task::yield_now().await;
        assert_eq!(
            queue.miss(LosableKind::Change, message(TOOLS)),
            Queued::Waits
        );
        assert_eq!(idle.await.unwrap().len(), 1);
        assert!(!queue.is_behind());
    }

    #[tokio::test(start_paused = true)]
    async fn a2_a_client_that_reads_no_answers_is_refused_in_the_end() {
        let (queue, _reader) = client_queue(Weak::new(), ClientId(1), Arc::default());
        for _ in 0..ALL {
            assert_eq!(queue.push(message(ANSWER)), Queued::Waits);
        }
        assert_eq!(queue.push(message(ANSWER)), Queued::Refused);
    }
}
