//! The last events of a session, for clients that come back with `Last-Event-ID`. Bounded by bytes.

use std::collections::VecDeque;

use bytes::Bytes;
use mcp_proxy_wire::{ExchangeId, StreamId};
use rustc_hash::FxHashSet;

/// Bytes of events that a session keeps.
const KEPT_MAX: usize = 1024 * 1024;

/// Events sent, oldest first.
#[derive(Default)]
pub(crate) struct ResumeBuffer {
    events: VecDeque<SentEvent>,
    bytes: usize,
    next: u64,
    /// Streams that an event was sent on, and that have not ended.
    begun: FxHashSet<StreamId>,
}

/// One event as it was sent.
#[derive(Clone, Debug)]
pub(crate) struct SentEvent {
    /// Its place in the session.
    pub number: u64,
    /// The stream it was sent on.
    pub stream: StreamId,
    /// Its data.
    pub data: Bytes,
    /// It ended its stream.
    pub last: bool,
}

impl ResumeBuffer {
    /// Keeps an event and gives it its id. The only event of a stream is not kept: a client that missed it knows no id to come
    /// back with.
    pub(crate) fn push(&mut self, stream: StreamId, data: Bytes, last: bool) -> String {
        self.next += 1;
        let number = self.next;
        let is_only_one = match last {
            true => !self.begun.remove(&stream),
            false => {
                self.begun.insert(stream);
                false
            }
        };
        if is_only_one {
            return event_id(stream, number);
        }
        self.bytes += data.len();
        self.events.push_back(SentEvent {
            number,
            stream,
            data,
            last,
        });
        while self.bytes > KEPT_MAX {
            let Some(oldest) = self.events.pop_front() else {
                break;
            };
            self.bytes -= oldest.data.len();
        }
        event_id(stream, number)
    }

    /// Begins a stream before its first message: its client can come back for all of them. The id of its first event.
    pub(crate) fn begin(&mut self, stream: StreamId) -> String {
        self.next += 1;
        self.begun.insert(stream);
        event_id(stream, self.next)
    }

    /// What came on the same stream after the event that `last_event_id` names.
    pub(crate) fn events_after(&self, last_event_id: &str) -> Option<(StreamId, Vec<SentEvent>)> {
        let (stream, number) = last_event_id.split_once('-')?;
        let stream = match stream.parse().ok()? {
            0 => StreamId::Standing,
            exchange => StreamId::Exchange(ExchangeId(exchange)),
        };
        let number: u64 = number.parse().ok()?;
        let events = self
            .events
            .iter()
            .filter(|sent| sent.stream == stream && sent.number > number)
            .cloned()
            .collect();
        Some((stream, events))
    }
}

/// `stream-number`: opaque to clients, unique within the session. Exchanges are numbered from 1, so 0 is the standing
/// stream.
pub(crate) fn event_id(stream: StreamId, number: u64) -> String {
    let stream = stream.exchange().map_or(0, |exchange| exchange.0);
    format!("{stream}-{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_stream_is_replayed() {
        let mut replay = ResumeBuffer::default();
        let first = replay.push(ExchangeId(3).into(), Bytes::from_static(b"a"), false);
        replay.push(StreamId::Standing, Bytes::from_static(b"b"), false);
        replay.push(ExchangeId(3).into(), Bytes::from_static(b"c"), true);
        let (stream, events) = replay.events_after(&first).unwrap();
        assert_eq!(stream, ExchangeId(3).into());
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].data, "c");
        assert!(replay.events_after("nonsense").is_none());
    }

    #[test]
    fn a_single_answer_is_not_kept() {
        let mut replay = ResumeBuffer::default();
        replay.push(ExchangeId(1).into(), Bytes::from_static(b"only"), true);
        assert_eq!(replay.bytes, 0);
        replay.push(ExchangeId(2).into(), Bytes::from_static(b"a"), false);
        replay.push(ExchangeId(2).into(), Bytes::from_static(b"b"), true);
        assert_eq!(replay.bytes, 2);
    }

    #[test]
    fn a_stream_that_was_begun_keeps_its_only_answer() {
        let mut replay = ResumeBuffer::default();
        let first = replay.begin(ExchangeId(1).into());
        replay.push(ExchangeId(1).into(), Bytes::from_static(b"answer"), true);
        let (_, events) = replay.events_after(&first).unwrap();
        assert_eq!(events.len(), 1);
        assert!(replay.begun.is_empty());
    }

    #[test]
    fn the_oldest_go_when_it_is_full() {
        let mut replay = ResumeBuffer::default();
        let first = replay.push(
            StreamId::Standing,
            Bytes::from(vec![b'x'; KEPT_MAX / 2]),
            false,
        );
        replay.push(StreamId::Standing, Bytes::from(vec![b'x'; KEPT_MAX]), false);
        assert_eq!(replay.events_after(&first).unwrap().1.len(), 1);
        assert!(replay.bytes <= KEPT_MAX);
    }
}
