//! Which request does this answer belong to?
//!
//! JSON-RPC ids are chosen by their sender, so the key is (direction, connection, typed id). An entry outlives
//! its answer: a second answer is a duplicate, one after a cancel is late, and both still name their request.
//! One table per connection; its size is bounded, the oldest entries go first.

use std::collections::VecDeque;
use std::time::Duration;

use mcp_proxy_session::MessageId;
use mcp_proxy_wire::{Direction, ExchangeId, Field, Id, IdKey, Kind, Message};
use rustc_hash::FxHashMap;

/// Open requests a connection may have before the oldest is forgotten.
const OPEN_MAX: usize = 16_384;
/// Answered requests that are remembered for late and duplicate answers.
const ANSWERED_MAX: usize = 64;

/// A request that was seen, and what became of it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The record's id of the request.
    pub message: MessageId,
    /// Its sequence number.
    pub sequence: u64,
    /// When it was received, since the start of the run.
    pub at: Duration,
    /// The exchange that carried it.
    pub exchange: ExchangeId,
    /// Its id as the peer wrote it.
    pub id: Id,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Cancelled,
    Answered,
}

/// What an answer means.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The request it answers.
    pub asked: Asked,
    /// It came after the request was cancelled or given up.
    pub late: bool,
    /// The request had an answer already.
    pub duplicate: bool,
}

/// The requests of one connection.
#[derive(Default)]
pub struct Correlator {
    /// More than one entry under a key only when sessionless HTTP clients use the same id at once.
    asked: FxHashMap<(Direction, IdKey), Vec<Asked>>,
    open: usize,
    order: VecDeque<(Direction, IdKey, u64)>,
    answered: VecDeque<(Direction, IdKey, u64)>,
}

/// Where and when a message was seen.
#[derive(Clone, Copy)]
pub struct Seen {
    /// The way it goes.
    pub direction: Direction,
    /// The exchange that carries it.
    pub exchange: ExchangeId,
    /// Its sequence number.
    pub sequence: u64,
    /// Its record id.
    pub message: MessageId,
    /// When, since the start of the run.
    pub at: Duration,
}

impl Correlator {
    /// Notes one message (not a batch; its parts come one by one) and tells what it answers.
    pub fn see(&mut self, seen: Seen, message: &Message) -> Option<Answer> {
        match message.kind() {
            Kind::Request => {
                if let Some(id) = message.id() {
                    self.ask(seen, id);
                }
                None
            }
            Kind::Response | Kind::Error => {
                self.answer(seen.direction, seen.exchange, &message.id()?)
            }
            Kind::Notification => {
                self.note_cancel(seen.direction, message);
                None
            }
            Kind::Batch | Kind::Other | Kind::Malformed => None,
        }
    }

    /// Notes a request of which only the id is known (a large body).
    pub fn ask(&mut self, seen: Seen, id: Id) {
        let key = (seen.direction, id.key());
        self.order.push_back((key.0, key.1.clone(), seen.sequence));
        self.asked.entry(key).or_default().push(Asked {
            message: seen.message,
            sequence: seen.sequence,
            at: seen.at,
            exchange: seen.exchange,
            id,
            state: State::Open,
        });
        self.open += 1;
        self.forget_oldest();
    }

    /// Finds the request that an answer travelling in `direction` belongs to.
    pub fn answer(
        &mut self,
        direction: Direction,
        exchange: ExchangeId,
        id: &Id,
    ) -> Option<Answer> {
        let key = (direction.reverse(), id.key());
        let entries = self.asked.get_mut(&key)?;
        // The same exchange first; then the oldest open one; then the newest of those already answered.
        let position = entries
            .iter()
            .position(|asked| asked.exchange == exchange && asked.state == State::Open)
            .or_else(|| entries.iter().position(|asked| asked.state == State::Open))
            .or_else(|| entries.iter().rposition(|asked| asked.exchange == exchange))
            .unwrap_or(entries.len() - 1);
        let entry = &mut entries[position];
        let answer = Answer {
            late: entry.state == State::Cancelled,
            duplicate: entry.state == State::Answered,
            asked: entry.clone(),
        };
        if entry.state == State::Open {
            self.open -= 1;
        }
        if entry.state != State::Answered {
            entry.state = State::Answered;
            self.answered.push_back((key.0, key.1, entry.sequence));
        }
        while self.answered.len() > ANSWERED_MAX {
            if let Some((direction, id, sequence)) = self.answered.pop_front() {
                self.remove(direction, id, sequence);
            }
        }
        Some(answer)
    }

    /// The open requests that came in `direction`, oldest first, without taking them.
    pub fn open(&self, direction: Direction) -> Vec<Asked> {
        let mut open: Vec<Asked> = self
            .asked
            .iter()
            .filter(|((way, _), _)| *way == direction)
            .flat_map(|(_, entries)| entries.iter())
            .filter(|asked| asked.state == State::Open)
            .cloned()
            .collect();
        open.sort_by_key(|asked| asked.sequence);
        open
    }

    /// Whether a request in `direction` is open.
    pub fn has_open(&self, direction: Direction) -> bool {
        self.open > 0
            && self.asked.iter().any(|((way, _), entries)| {
                *way == direction && entries.iter().any(|asked| asked.state == State::Open)
            })
    }

    /// `notifications/cancelled` names a request of its own sender: the answer, if it comes, is late.
    fn note_cancel(&mut self, direction: Direction, message: &Message) {
        if message.method().as_deref() != Some("notifications/cancelled") {
            return;
        }
        let Some(span) = message.span(Field::RequestId) else {
            return;
        };
        let key = (direction, Id::from_token(message.slice(span)).key());
        if let Some(entries) = self.asked.get_mut(&key)
            && let Some(entry) = entries.iter_mut().rev().find(|e| e.state == State::Open)
        {
            entry.state = State::Cancelled;
            self.open -= 1;
        }
    }

    fn forget_oldest(&mut self) {
        // `order` still names requests that were answered since; it is swept when those are the majority.
        if self.order.len() > 2 * self.open + ANSWERED_MAX {
            let asked = &self.asked;
            self.order.retain(|(direction, id, sequence)| {
                asked.get(&(*direction, id.clone())).is_some_and(|entries| {
                    entries
                        .iter()
                        .any(|e| e.sequence == *sequence && e.state == State::Open)
                })
            });
        }
        while self.open > OPEN_MAX {
            let Some((direction, id, sequence)) = self.order.pop_front() else {
                return;
            };
            self.remove(direction, id, sequence);
        }
    }

    fn remove(&mut self, direction: Direction, id: IdKey, sequence: u64) {
        let key = (direction, id);
        if let Some(entries) = self.asked.get_mut(&key) {
            if let Some(position) = entries.iter().position(|asked| asked.sequence == sequence) {
                let gone = entries.remove(position);
                if gone.state == State::Open {
                    self.open -= 1;
                }
            }
            if entries.is_empty() {
                self.asked.remove(&key);
            }
        }
    }
}
