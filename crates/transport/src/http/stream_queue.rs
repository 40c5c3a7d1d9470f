//! The queue of one stream: messages on their way to one client.
//!
//! Own code instead of tokio's channel, because time and memory matter here: every POST has one, nearly all carry a
//! single message, and a channel begins with 3 KB. Bounded by messages and by bytes: a slow client slows
//! its sender down instead of filling memory.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_proxy_core::{Connection, LaggingStream, LostNotifications};
use tokio::time::timeout;

use super::event_stream::StreamItem;

/// Messages that may wait before their sender does.
const MESSAGES_MAX: usize = 64;
/// Bytes that may wait before their sender does; one message may always.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// The feeding end.
pub(crate) struct StreamSender(Arc<Mutex<StreamQueue>>);

/// The reading end. What is unread when it is dropped is undelivered, and the connection's record says so.
pub struct StreamReceiver {
    queue: Arc<Mutex<StreamQueue>>,
    connection: Option<Arc<Connection>>,
}

#[derive(Default)]
struct StreamQueue {
    waiting: VecDeque<StreamItem>,
    bytes: usize,
    senders: usize,
    closed: bool,
    /// An event has found no room in time, and nothing was read since.
    stalled: bool,
    /// Something was lost, and what waits was not read to its end since.
    behind: Option<LaggingStream>,
    reader: Option<Waker>,
    writers: Vec<Waker>,
}

/// Why a message was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StreamSendError {
    /// Nobody reads any more.
    Gone,
    /// Nobody read in time.
    Stalled,
    /// An event for which there was no room. The stream stays.
    Lost,
}

/// A queue that begins with what is given, whatever its size.
pub(crate) fn stream_channel(
    connection: Option<Arc<Connection>>,
    first: impl IntoIterator<Item = StreamItem>,
) -> (StreamSender, StreamReceiver) {
    let mut queue = StreamQueue {
        senders: 1,
        ..StreamQueue::default()
    };
    first.into_iter().for_each(|out| queue.push(out));
    let queue = Arc::new(Mutex::new(queue));
    (
        StreamSender(Arc::clone(&queue)),
        StreamReceiver { queue, connection },
    )
}

impl StreamQueue {
    fn push(&mut self, out: StreamItem) {
        self.bytes += out.size();
        self.waiting.push_back(out);
    }

    /// What ends the stream always has room: it comes once, and other streams of the session wait behind it.
    fn has_room_for(&self, out: &StreamItem) -> bool {
        self.waiting.is_empty()
            || out.is_last()
            || (self.waiting.len() < MESSAGES_MAX && self.bytes + out.size() <= BYTES_MAX)
    }
}

fn lock(queue: &Mutex<StreamQueue>) -> MutexGuard<'_, StreamQueue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StreamSender {
    /// Puts a message on its way; waits for room, but not longer than `stall`.
    pub(crate) async fn send(
        &self,
        out: StreamItem,
        stall: Duration,
    ) -> Result<(), StreamSendError> {
        let mut out = Some(out);
        let mut send = |cx: &mut Context<'_>| self.poll_send(&mut out, cx);
        // Nearly always there is room, and then no timer is needed.
        if let Poll::Ready(sent) = send(&mut Context::from_waker(Waker::noop())) {
            return sent;
        }
        let sent = timeout(stall, poll_fn(send)).await;
        sent.unwrap_or(Err(StreamSendError::Stalled))
    }

    /// Puts a log message or the like on its way. If nobody reads for `patience`, this one is lost, and so are later ones until
    /// somebody reads: what is for other streams must not wait for them.
    pub(crate) async fn send_event(
        &self,
        out: StreamItem,
        patience: Duration,
        lost: &Arc<LostNotifications>,
    ) -> Result<(), StreamSendError> {
        let is_hopeless = {
            let queue = lock(&self.0);
            queue.stalled && !queue.has_room_for(&out)
        };
        let sent = match is_hopeless {
            true => Err(StreamSendError::Stalled),
            false => self.send(out, patience).await,
        };
        sent.map_err(|not_taken| match not_taken {
            StreamSendError::Stalled => {
                let mut queue = lock(&self.0);
                queue.stalled = true;
                if !queue.waiting.is_empty() {
                    queue.behind.get_or_insert_with(|| lost.fall_behind());
                }
                StreamSendError::Lost
            }
            other => other,
        })
    }

    /// What waits here already is not all: notifications before it were lost.
    pub(crate) fn set_behind(&self, behind: LaggingStream) {
        lock(&self.0).behind = Some(behind);
    }

    /// Puts a message on its way if there is room for it now.
    pub(crate) fn try_send(&self, out: StreamItem) {
        let mut cx = Context::from_waker(Waker::noop());
        let _ = self.poll_send(&mut Some(out), &mut cx);
    }

    fn poll_send(
        &self,
        out: &mut Option<StreamItem>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), StreamSendError>> {
        let mut queue = lock(&self.0);
        if queue.closed {
            return Poll::Ready(Err(StreamSendError::Gone));
        }
        let Some(next) = out.take() else {
            return Poll::Ready(Ok(()));
        };
        if !queue.has_room_for(&next) {
            *out = Some(next);
            if !queue
                .writers
                .iter()
                .any(|known| known.will_wake(cx.waker()))
            {
                queue.writers.push(cx.waker().clone());
            }
            return Poll::Pending;
        }
        queue.push(next);
        let reader = queue.reader.take();
        drop(queue);
        reader.into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(()))
    }
}

impl Clone for StreamSender {
    fn clone(&self) -> StreamSender {
        lock(&self.0).senders += 1;
        StreamSender(Arc::clone(&self.0))
    }
}

impl Drop for StreamSender {
    fn drop(&mut self) {
        let mut queue = lock(&self.0);
        queue.senders -= 1;
        let reader = match queue.senders {
            0 => queue.reader.take(),
            _ => None,
        };
        drop(queue);
        reader.into_iter().for_each(Waker::wake);
    }
}

impl StreamReceiver {
    /// The next message. `None`: no more will come.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<StreamItem>> {
        let mut queue = lock(&self.queue);
        if let Some(out) = queue.waiting.pop_front() {
            queue.bytes -= out.size();
            queue.stalled = false;
            let caught_up = match queue.waiting.is_empty() {
                true => queue.behind.take(),
                false => None,
            };
            let writers = std::mem::take(&mut queue.writers);
            drop((queue, caught_up));
            writers.into_iter().for_each(Waker::wake);
            return Poll::Ready(Some(out));
        }
        if queue.senders == 0 {
            return Poll::Ready(None);
        }
        queue.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The connection whose messages these are.
    pub(super) fn connection(&self) -> Option<&Arc<Connection>> {
        self.connection.as_ref()
    }

    /// The next message, awaited.
    pub async fn next(&mut self) -> Option<StreamItem> {
        poll_fn(|cx| self.poll_next(cx)).await
    }
}

impl Drop for StreamReceiver {
    fn drop(&mut self) {
        let mut queue = lock(&self.queue);
        queue.closed = true;
        let unread = std::mem::take(&mut queue.waiting);
        let writers = std::mem::take(&mut queue.writers);
        drop(queue.behind.take());
        drop(queue);
        writers.into_iter().for_each(Waker::wake);
        if let (Some(connection), false) = (&self.connection, unread.is_empty()) {
            let unread: Vec<u64> = unread.iter().filter_map(StreamItem::sequence).collect();
            connection.undelivered(&unread, "the client had closed its stream");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::event_stream::StreamMessage;
    use crate::runtimes::by_runtime;
    use bytes::Bytes;

    const STALL: Duration = Duration::from_secs(60);

    fn out(size: usize) -> StreamItem {
        StreamItem::Message(StreamMessage {
            data: Bytes::from(vec![b'x'; size]),
            event_id: None,
            last: false,
            sequence: None,
        })
    }

    /// How many messages of `size` go in before the sender has to wait.
    async fn room(size: usize) -> usize {
        let (sender, _messages) = stream_channel(None, []);
        let mut sent = 0;
        while sender.send(out(size), Duration::ZERO).await.is_ok() {
            sent += 1;
        }
        sent
    }

    on_both_runtimes!(messages_and_bytes_are_bounded);
    async fn messages_and_bytes_are_bounded() {
        assert_eq!(room(10).await, MESSAGES_MAX);
        assert_eq!(room(BYTES_MAX / 4).await, 4);
        assert_eq!(room(BYTES_MAX * 2).await, 1);
    }

    on_both_runtimes!(a_sender_goes_on_when_the_reader_does);
    async fn a_sender_goes_on_when_the_reader_does() {
        let (sender, mut messages) = stream_channel(None, []);
        let sending = tokio::spawn(async move {
            for _ in 0..1_000 {
                sender.send(out(100_000), STALL).await.unwrap();
            }
        });
        let mut read = 0;
        while messages.next().await.is_some() {
            read += 1;
        }
        assert_eq!(read, 1_000);
        sending.await.unwrap();
    }

    on_both_runtimes!(a_reader_that_stalls_or_goes_is_noticed);
    async fn a_reader_that_stalls_or_goes_is_noticed() {
        let (sender, messages) = stream_channel(None, [out(1)]);
        while sender.send(out(BYTES_MAX), Duration::ZERO).await.is_ok() {}
        let stall = by_runtime(STALL, Duration::from_millis(100));
        let unread = sender.send(out(BYTES_MAX), stall).await;
        assert_eq!(unread, Err(StreamSendError::Stalled));
        let waiting = sender.clone();
        let sending = tokio::spawn(async move { waiting.send(out(BYTES_MAX), STALL * 100).await });
        tokio::task::yield_now().await;
        drop(messages);
        assert_eq!(sending.await.unwrap(), Err(StreamSendError::Gone));
    }

    on_both_runtimes!(events_are_lost_while_nobody_reads_and_the_answer_has_room);
    async fn events_are_lost_while_nobody_reads_and_the_answer_has_room() {
        let (sender, mut messages) = stream_channel(None, []);
        for _ in 0..MESSAGES_MAX {
            sender.send(out(1), STALL).await.unwrap();
        }
        let patience = by_runtime(STALL, Duration::from_millis(50));
        let (lost, client) = (Err(StreamSendError::Lost), Arc::default());
        assert_eq!(sender.send_event(out(1), patience, &client).await, lost);
        // From now on nothing is waited for.
        assert_eq!(
            sender.send_event(out(1), STALL * 1_000, &client).await,
            lost
        );
        let last = StreamItem::Message(StreamMessage {
            data: Bytes::from(vec![b'x'; BYTES_MAX]),
            event_id: None,
            last: true,
            sequence: None,
        });
        sender.send(last, Duration::ZERO).await.unwrap();
        client.add();
        for _ in 0..=MESSAGES_MAX {
            assert!(!client.can_be_told());
            assert!(messages.next().await.is_some());
        }
        assert!(client.can_be_told());
        sender
            .send_event(out(1), Duration::ZERO, &client)
            .await
            .unwrap();
    }

    on_both_runtimes!(what_was_sent_is_read_before_the_end);
    async fn what_was_sent_is_read_before_the_end() {
        let (sender, mut messages) = stream_channel(None, [out(1)]);
        sender.send(out(2), STALL).await.unwrap();
        drop(sender);
        assert_eq!(messages.next().await.map(|out| out.size()), Some(1));
        assert_eq!(messages.next().await.map(|out| out.size()), Some(2));
        assert!(messages.next().await.is_none());
    }
}
