//! Which request does this answer belong to?
//!
//! JSON-RPC ids are chosen by their sender, so the key is (direction, connection, typed id). An entry outlives
//! its answer: a second answer is a duplicate, one after a cancel is late, and both still name their request.
//! One table per connection; its size is bounded, the oldest entries go first.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_session::{MessageId, subject_name};
use mcp_proxy_wire::{Direction, Field, Id, IdKey, Kind, Message, StreamId};
use rustc_hash::FxHashMap;

/// Open requests a connection may have before the oldest is forgotten.
const OPEN_MAX: usize = 16_384;
/// How many of the oldest are forgotten when there are more.
const FORGOTTEN_AT_ONCE: usize = 1_024;
/// Requests that are over and still remembered, for late and duplicate answers.
const OVER_MAX: usize = 64;

/// A request that was seen.
#[derive(Clone, Debug)]
pub struct TrackedRequest {
    /// The record's id of the request.
    pub message: MessageId,
    /// Its sequence number.
    pub sequence: u64,
    /// When it was received, since the start of the run.
    pub at: Duration,
    /// How long it was held or delayed before it was forwarded.
    pub held: Duration,
    /// The stream it came on.
    pub stream: StreamId,
    /// Its id as the peer wrote it.
    pub id: Id,
    /// The call that caused it, which caused its answer too.
    pub parent: Option<u64>,
    /// What it asks.
    pub subject: RequestSubject,
}

impl TrackedRequest {
    /// How long its receiver has had it at `now`.
    pub fn latency(&self, now: Duration) -> Duration {
        now.saturating_sub(self.at).saturating_sub(self.held)
    }
}

/// What a request asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestSubject {
    /// Its method.
    pub method: Arc<str>,
    /// The tool, prompt or resource that it names.
    pub name: Option<Arc<str>>,
}

impl RequestSubject {
    /// What this request asks. Copied, because the message may lie in a large buffer that would be kept with it.
    pub fn of(request: &Message) -> RequestSubject {
        RequestSubject {
            method: Arc::from(&*request.method().unwrap_or_default()),
            name: subject_name(request).map(|name| Arc::from(&*name)),
        }
    }
}

/// What an answer means.
#[derive(Clone, Debug)]
pub struct Correlation {
    /// The request it answers.
    pub request: TrackedRequest,
    /// It came after the request was cancelled or given up.
    pub late: bool,
    /// The request had an answer already.
    pub duplicate: bool,
}

type RequestKey = (Direction, IdKey);

/// How a request that is over ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestEnd {
    Answered,
    Cancelled,
    /// Its sender has left.
    Left,
}

/// The requests of one connection.
#[derive(Default)]
pub struct Correlator {
    /// Oldest first. One request a key, except when sessionless HTTP clients use the same id at once.
    open: FxHashMap<RequestKey, Vec<TrackedRequest>>,
    count: usize,
    /// Newest last.
    finished: VecDeque<(RequestKey, TrackedRequest, RequestEnd)>,
}

/// Where and when a message was seen.
#[derive(Clone, Copy)]
pub struct Observation {
    /// The way it goes.
    pub direction: Direction,
    /// The stream that carries it.
    pub stream: StreamId,
    /// Its sequence number.
    pub sequence: u64,
    /// Its record id.
    pub message: MessageId,
    /// When, since the start of the run.
    pub at: Duration,
    /// The call that caused it.
    pub parent: Option<u64>,
}

impl Correlator {
    /// Notes one message (not a batch; its parts come one by one) and tells what it answers.
    pub fn observe(&mut self, seen: Observation, message: &Message) -> Option<Correlation> {
        match message.kind() {
            _ if message.expects_answer() => {
                if let Some(id) = message.id() {
                    self.track_request(seen, id, message);
                }
                None
            }
            _ if message.is_answer() => match message.id() {
                Some(id) if !id.is_null() => self.match_answer(seen.direction, seen.stream, &id),
                null => {
                    let named =
                        null.and_then(|null| self.match_answer(seen.direction, seen.stream, &null));
                    named.or_else(|| self.match_only_request(seen.direction, seen.stream))
                }
            },
            Kind::Notification => {
                self.note_cancel(seen.direction, message);
                None
            }
            _ => None,
        }
    }

    fn track_request(&mut self, seen: Observation, id: Id, request: &Message) {
        let asked = TrackedRequest {
            message: seen.message,
            sequence: seen.sequence,
            at: seen.at,
            held: Duration::ZERO,
            stream: seen.stream,
            id,
            parent: seen.parent,
            subject: RequestSubject::of(request),
        };
        self.insert(seen.direction, asked);
    }

    fn insert(&mut self, direction: Direction, asked: TrackedRequest) {
        let key = (direction, asked.id.key());
        self.open.entry(key).or_default().push(asked);
        self.count += 1;
        if self.count > OPEN_MAX {
            self.forget_oldest();
        }
    }

    /// Finds the request that an answer travelling in `direction` belongs to.
    pub fn match_answer(
        &mut self,
        direction: Direction,
        stream: StreamId,
        id: &Id,
    ) -> Option<Correlation> {
        let key = (direction.reverse(), id.key());
        if let Some(asked) = self.take(&key, stream) {
            self.remember(key, asked.clone(), RequestEnd::Answered);
            return Some(Correlation {
                request: asked,
                late: false,
                duplicate: false,
            });
        }
        // On the same stream if there is one.
        let found = self.match_finished(&key, |asked| asked.stream == stream);
        found.or_else(|| self.match_finished(&key, |_| true))
    }

    /// Finds the newest such request that is over.
    fn match_finished(
        &mut self,
        key: &RequestKey,
        is_meant: impl Fn(&TrackedRequest) -> bool,
    ) -> Option<Correlation> {
        let mut newest_first = self.finished.iter_mut().rev();
        let (_, asked, over) =
            newest_first.find(|(known, asked, _)| known == key && is_meant(asked))?;
        let was = std::mem::replace(over, RequestEnd::Answered);
        Some(Correlation {
            request: asked.clone(),
            late: was != RequestEnd::Answered,
            duplicate: was == RequestEnd::Answered,
        })
    }

    /// An answer that names no request, such as an error with a null id, answers the only open request of its HTTP exchange.
    fn match_only_request(
        &mut self,
        direction: Direction,
        stream: StreamId,
    ) -> Option<Correlation> {
        stream.exchange()?;
        let open = self.open_requests(direction.reverse());
        let mut of_stream = open.iter().filter(|asked| asked.stream == stream);
        let only = of_stream.next().filter(|_| of_stream.next().is_none())?;
        self.match_answer(direction, stream, &only.id)
    }

    /// Finds the request on this stream that an answer belongs to, open or over. Requests of other streams may have the
    /// same id.
    pub fn match_answer_on(
        &mut self,
        direction: Direction,
        stream: StreamId,
        id: &Id,
    ) -> Option<Correlation> {
        if self.is_open_on(direction.reverse(), stream, id) {
            return self.match_answer(direction, stream, id);
        }
        let key = (direction.reverse(), id.key());
        self.match_finished(&key, |asked| asked.stream == stream)
    }

    /// The request on this stream was cancelled: it is not open any more, and an answer would be late.
    pub fn cancel_request(&mut self, direction: Direction, stream: StreamId, id: &Id) {
        if self.is_open_on(direction, stream, id) {
            self.give_up(direction, stream, id);
        }
    }

    fn is_open_on(&self, direction: Direction, stream: StreamId, id: &Id) -> bool {
        self.all_open(direction, id)
            .any(|asked| asked.stream == stream)
    }

    /// A request was not passed on: it is not open any more, and an answer would be late.
    pub fn give_up(&mut self, direction: Direction, stream: StreamId, id: &Id) {
        let key = (direction, id.key());
        if let Some(asked) = self.take(&key, stream) {
            self.remember(key, asked, RequestEnd::Cancelled);
        }
    }

    /// A request was forwarded as another message, whose id the answer will name, if it still expects one.
    pub fn replace_request(
        &mut self,
        direction: Direction,
        stream: StreamId,
        was: &Id,
        now: &Message,
    ) {
        let key = (direction, was.key());
        let Some(mut asked) = self.take(&key, stream) else {
            return;
        };
        let Some(id) = now.id().filter(|_| now.expects_answer()) else {
            self.remember(key, asked, RequestEnd::Cancelled);
            return;
        };
        asked.subject = RequestSubject::of(now);
        asked.id = id;
        self.insert(direction, asked);
    }

    /// A request that was held or delayed is forwarded, or answered here: what follows is not waiting here any more.
    pub fn note_released(&mut self, direction: Direction, id: &Id, sequence: u64, now: Duration) {
        let mut open = self
            .open
            .get_mut(&(direction, id.key()))
            .into_iter()
            .flatten();
        if let Some(asked) = open.find(|asked| asked.sequence == sequence) {
            asked.held = now.saturating_sub(asked.at);
        }
    }

    /// The sender of a request on this stream has left, so an answer would be late. Returns whether it was still open.
    pub fn abandon_request(&mut self, direction: Direction, stream: StreamId, id: &Id) -> bool {
        if !self.is_open_on(direction, stream, id) {
            return false;
        }
        let key = (direction, id.key());
        if let Some(asked) = self.take(&key, stream) {
            self.remember(key, asked, RequestEnd::Left);
        }
        true
    }

    /// Whether the sender of the request of this number has left a short time ago.
    pub fn has_left(&self, sequence: u64) -> bool {
        let is_it = |(_, asked, over): &(RequestKey, TrackedRequest, RequestEnd)| {
            *over == RequestEnd::Left && asked.sequence == sequence
        };
        self.finished.iter().any(is_it)
    }

    /// Whether this request is open: not answered, cancelled or given up.
    pub fn is_open(&self, direction: Direction, id: &Id, sequence: u64) -> bool {
        self.all_open(direction, id)
            .any(|asked| asked.sequence == sequence)
    }

    fn all_open(&self, direction: Direction, id: &Id) -> impl Iterator<Item = &TrackedRequest> {
        let open = self.open.get(&(direction, id.key()));
        open.into_iter().flatten()
    }

    /// The open requests that came in `direction`, oldest first, without taking them.
    pub fn open_requests(&self, direction: Direction) -> Vec<TrackedRequest> {
        let of_direction = self.open.iter().filter(|((way, _), _)| *way == direction);
        let mut open: Vec<TrackedRequest> =
            of_direction.flat_map(|(_, open)| open).cloned().collect();
        open.sort_by_key(|asked| asked.sequence);
        open
    }

    /// Whether a request in `direction` is open.
    pub fn has_open(&self, direction: Direction) -> bool {
        self.open.keys().any(|(way, _)| *way == direction)
    }

    /// `notifications/cancelled` names a request of its own sender: the answer, if it comes, is late. If that could be a
    /// request of another client, nothing is noted.
    fn note_cancel(&mut self, direction: Direction, message: &Message) {
        if message.method().as_deref() != Some("notifications/cancelled") {
            return;
        }
        let Some(span) = message.span(Field::RequestId) else {
            return;
        };
        let key = (direction, Id::from_token(message.slice(span)).key());
        if self.names_one_request(&key)
            && let Some(asked) = self.take(&key, StreamId::Only)
        {
            self.remember(key, asked, RequestEnd::Cancelled);
        }
    }

    /// Whether an id says whose request is meant. HTTP clients without a session share a connection, and many count from 1.
    fn names_one_request(&self, key: &RequestKey) -> bool {
        let Some(open) = self.open.get(key) else {
            return false;
        };
        let was_used = || self.finished.iter().any(|(known, ..)| known == key);
        let is_of_exchange = |asked: &TrackedRequest| asked.stream.exchange().is_some();
        !open.first().is_some_and(is_of_exchange) || (open.len() == 1 && !was_used())
    }

    /// Takes the open request of the same stream, else the oldest.
    fn take(&mut self, key: &RequestKey, stream: StreamId) -> Option<TrackedRequest> {
        let open = self.open.get_mut(key)?;
        let place = open.iter().position(|asked| asked.stream == stream);
        let taken = open.remove(place.unwrap_or(0));
        if open.is_empty() {
            self.open.remove(key);
        }
        self.count -= 1;
        Some(taken)
    }

    fn remember(&mut self, key: RequestKey, asked: TrackedRequest, over: RequestEnd) {
        if self.finished.len() == OVER_MAX {
            self.finished.pop_front();
        }
        self.finished.push_back((key, asked, over));
    }

    /// Forgets the oldest requests. Many at once, because all are looked at: while messages are held, every new request may be
    /// one too many.
    fn forget_oldest(&mut self) {
        let open = self.open.values().flatten();
        let mut sequences: Vec<u64> = open.map(|asked| asked.sequence).collect();
        let (_, last, _) = sequences.select_nth_unstable(FORGOTTEN_AT_ONCE - 1);
        let last = *last;
        self.open.retain(|_, open| {
            open.retain(|asked| asked.sequence > last);
            !open.is_empty()
        });
        self.count = self.open.values().map(Vec::len).sum();
    }
}
