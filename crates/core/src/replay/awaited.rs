//! Which of a server's messages are not the client's: answers to replays on its session, and their progress.
//!
//! The ids of replays carry a mark of the run, so what belongs to one is told apart for as long as the session lasts,
//! also when it comes twice or too late. [`Awaited`] knows who waits for an answer; a [`Sieve`] takes it out of one stream.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use mcp_proxy_session::Act;
use mcp_proxy_wire::{Body, Field, Frame, Id, Kind, Message};
use tokio::sync::oneshot;

use super::once::ReplayError;
use crate::connection::Connection;
use crate::intercept::with_message;
use crate::lane::Passed;
use crate::link::Outgoing;

/// Answers that a session may owe to others than its client.
const OWED_MAX: usize = 64;

/// The number of the answer, or why there is none.
pub(super) type Told = Result<u64, String>;

/// The answers that a connection owes to others than its client.
#[derive(Default)]
pub(crate) struct Awaited {
    /// There was a replay. Read for every message, so it needs no lock. It is set before the replay is sent, so before an
    /// answer can come.
    used: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    owed: Vec<Owed>,
    closed: bool,
}

/// An answer that is not the client's. It stays so when nobody waits for it any more.
struct Owed {
    id: Id,
    told: oneshot::Sender<Told>,
}

impl Awaited {
    /// Whether what the server says must be looked through.
    pub fn used(&self) -> bool {
        self.used.load(Ordering::Acquire)
    }

    /// An answer under this id will be told.
    pub(super) fn expect(&self, id: Id) -> Result<oneshot::Receiver<Told>, ReplayError> {
        let mut state = self.lock();
        if state.closed {
            return Err(ReplayError::NotLive(
                "its session has ended; use a fresh one",
            ));
        }
        if state.owed.len() >= OWED_MAX {
            return Err(ReplayError::NotLive(
                "too many replays on its session were never answered; use a fresh one",
            ));
        }
        let (told, answer) = oneshot::channel();
        state.owed.push(Owed { id, told });
        self.used.store(true, Ordering::Release);
        Ok(answer)
    }

    /// It was not sent after all.
    pub(super) fn forget(&self, id: &Id) {
        self.lock().owed.retain(|owed| owed.id != *id);
    }

    /// The session is over: whoever waits learns it from this.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.owed.clear();
    }

    /// Takes the error answers that say that the server is gone.
    pub fn take_failures(&self, answers: &mut Vec<Outgoing>, why: &str) {
        if !self.used() {
            return;
        }
        answers.retain(|answer| {
            let Body::Whole(message) = &answer.frame().body else {
                return true;
            };
            !self.tell(message, Err(why.to_owned()))
        });
    }

    /// Tells whoever waits for this answer. False: nobody does.
    fn tell(&self, message: &Message, told: Told) -> bool {
        if !matches!(message.kind(), Kind::Response | Kind::Error) {
            return false;
        }
        let Some(key) = message.id().map(|id| id.key()) else {
            return false;
        };
        let mut state = self.lock();
        let place = state.owed.iter().position(|owed| owed.id.key() == key);
        let owed = place.map(|place| state.owed.swap_remove(place));
        let found = owed.is_some();
        if let Some(owed) = owed {
            // Nobody has to wait that long.
            drop(owed.told.send(told));
        }
        found
    }

    fn owes(&self) -> bool {
        !self.lock().owed.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Whether a message of the server belongs to a replay and not to the client.
    pub(crate) fn is_of_replay(&self, message: &Message) -> bool {
        if !self.awaited().used() {
            return false;
        }
        let field = match message.kind() {
            Kind::Response | Kind::Error => Field::Id,
            Kind::Notification => Field::ProgressToken,
            _ => return false,
        };
        let span = message.span(field);
        span.is_some_and(|span| self.pipeline.inlets().is_ours(message.slice(span)))
    }

    /// Somebody decided that this message goes no further; a replay that waits for it need not.
    pub(crate) fn dropped(&self, message: &Message, sequence: u64, by: &str) {
        if !self.awaited().used() {
            return;
        }
        let told = || Err(format!("the answer (#{sequence}) was dropped by {by}"));
        match message.parts() {
            Some(parts) => parts.iter().for_each(|part| {
                self.awaited().tell(part, told());
            }),
            None => drop(self.awaited().tell(message, told())),
        }
    }

    /// The parts of a batch that belong to the client, if others do not; answers are told.
    pub(crate) fn without_replays(&self, batch: &Message, sequence: u64) -> Option<Vec<Message>> {
        let mut parts = batch.parts()?;
        let all = parts.len();
        parts.retain(|part| {
            let is_clients = !self.is_of_replay(part);
            if !is_clients {
                self.awaited().tell(part, Ok(sequence));
            }
            is_clients
        });
        (parts.len() < all).then_some(parts)
    }
}

/// Takes what belongs to replays out of one stream to the client.
#[derive(Default)]
pub struct Sieve {
    /// A large message that may be an answer, so far.
    gathered: Vec<Frame>,
}

impl Sieve {
    /// Leaves in `passed` what is for the client.
    pub fn sift(&mut self, connection: &Connection, passed: &mut Passed) {
        if !connection.awaited().used() {
            return;
        }
        for outgoing in std::mem::take(&mut passed.on) {
            self.sift_one(connection, outgoing, &mut passed.on);
        }
    }

    fn sift_one(&mut self, connection: &Connection, outgoing: Outgoing, kept: &mut Vec<Outgoing>) {
        match outgoing {
            Outgoing::Frame(frame) => self.sift_frame(connection, frame, kept),
            Outgoing::Dropped(frame) => {
                let is_of_replay =
                    matches!(&frame.body, Body::Whole(message) if connection.is_of_replay(message));
                kept.extend((!is_of_replay).then_some(Outgoing::Dropped(frame)));
            }
            Outgoing::Replacement { original, frame } if connection.is_of_replay(&original) => {
                if let Body::Whole(message) = &frame.body {
                    drop(takes(connection, message, frame.sequence));
                }
                drop(takes(connection, &original, frame.sequence));
            }
            other => kept.push(other),
        }
    }

    fn sift_frame(&mut self, connection: &Connection, frame: Frame, kept: &mut Vec<Outgoing>) {
        match &frame.body {
            Body::Whole(message) => match takes(connection, message, frame.sequence) {
                Taken::Nothing => kept.push(frame.into()),
                Taken::All => {}
                Taken::Some(rest) => kept.push(with_message(frame, rest).into()),
            },
            Body::Open(_) if connection.awaited().owes() => self.gathered.push(frame),
            Body::More(_) if !self.gathered.is_empty() => self.gathered.push(frame),
            Body::Close(_) if !self.gathered.is_empty() => {
                let sequence = frame.sequence;
                self.gathered.push(frame);
                let gathered = std::mem::take(&mut self.gathered);
                match takes(connection, &whole(&gathered), sequence) {
                    Taken::Nothing => kept.extend(gathered.into_iter().map(Outgoing::Frame)),
                    Taken::All => {}
                    Taken::Some(rest) => {
                        let first = gathered.into_iter().next();
                        kept.extend(first.map(|mut frame| {
                            frame.sequence = sequence;
                            with_message(frame, rest).into()
                        }));
                    }
                }
            }
            _ => kept.push(frame.into()),
        }
    }
}

/// How much of a message is not the client's.
enum Taken {
    Nothing,
    All,
    /// This is left of a batch.
    Some(Message),
}

fn takes(connection: &Connection, message: &Message, sequence: Option<u64>) -> Taken {
    let number = sequence.unwrap_or_default();
    if message.kind() != Kind::Batch {
        if !connection.is_of_replay(message) {
            return Taken::Nothing;
        }
        connection.awaited().tell(message, Ok(number));
        return Taken::All;
    }
    let Some(rest) = connection.without_replays(message, number) else {
        return Taken::Nothing;
    };
    if rest.is_empty() {
        return Taken::All;
    }
    let parts: Vec<&[u8]> = rest.iter().map(|part| part.raw().as_ref()).collect();
    let rest = Message::parse([b"[".as_slice(), &parts.join(&b","[..]), b"]"].concat());
    let pipeline = &connection.pipeline;
    connection.act_on(Act {
        time: pipeline.wall(pipeline.now()),
        sequence,
        message: None,
        kind: "modify",
        by: "proxy".to_owned(),
        why: "what belongs to a replay is taken out of the batch".to_owned(),
        original_raw: Some(message.raw().clone()),
        raw: Some(rest.raw().clone()),
    });
    Taken::Some(rest)
}

fn whole(gathered: &[Frame]) -> Message {
    let mut bytes = BytesMut::new();
    for frame in gathered {
        if let Body::Open(chunk) | Body::More(chunk) | Body::Close(chunk) = &frame.body {
            bytes.extend_from_slice(&chunk.message);
        }
    }
    Message::parse(bytes.freeze())
}
