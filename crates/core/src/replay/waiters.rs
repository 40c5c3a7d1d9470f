//! Which of a server's messages are not the client's: answers to replays on its session, and their progress.
//!
//! The ids of replays carry a mark of the run, so what belongs to one is told apart for as long as the session lasts,
//! also when it comes twice or too late. [`ReplayWaiters`] knows who waits for an answer; [`remove_replay_answers`] takes it out of what goes to the client.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_proxy_session::NewVerdict;
use mcp_proxy_wire::{Body, Field, Id, Kind, Message};
use tokio::sync::oneshot;

use super::single_replay::ReplayError;
use crate::connection::Connection;
use crate::intercept::with_message;
use crate::link::OutgoingFrame;
use crate::message_pipeline::PipelineOutput;

/// Answers that a session may owe to others than its client.
const OWED_MAX: usize = 64;

/// The number of the answer, or why there is none.
pub(super) type AnswerResult = Result<u64, String>;

/// The answers that a connection owes to others than its client.
#[derive(Default)]
pub(crate) struct ReplayWaiters {
    /// There was a replay. Read for every message, so it needs no lock. It is set before the replay is sent, so before an
    /// answer can come.
    used: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiters: Vec<ReplayWaiter>,
    closed: bool,
}

/// An answer that is not the client's. It stays so when nobody waits for it any more.
struct ReplayWaiter {
    id: Id,
    told: oneshot::Sender<AnswerResult>,
}

impl ReplayWaiters {
    /// Whether what the server says must be looked through.
    pub(crate) fn had_replays(&self) -> bool {
        self.used.load(Ordering::Acquire)
    }

    /// An answer under this id will be told.
    pub(super) fn expect(&self, id: Id) -> Result<oneshot::Receiver<AnswerResult>, ReplayError> {
        let mut state = self.lock();
        if state.closed {
            return Err(ReplayError::NotLive(
                "its session has ended; use a fresh one",
            ));
        }
        if state.waiters.len() >= OWED_MAX {
            return Err(ReplayError::NotLive(
                "too many replays on its session were never answered; use a fresh one",
            ));
        }
        let (told, answer) = oneshot::channel();
        state.waiters.push(ReplayWaiter { id, told });
        self.used.store(true, Ordering::Release);
        Ok(answer)
    }

    /// It was not sent after all.
    pub(super) fn forget(&self, id: &Id) {
        self.lock().waiters.retain(|owed| owed.id != *id);
    }

    /// The session is over. Replays that still wait are told by dropping their waiters.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.waiters.clear();
    }

    /// Takes the error answers that say that the server is gone.
    pub(crate) fn take_failures(&self, answers: &mut Vec<OutgoingFrame>, why: &str) {
        if !self.had_replays() {
            return;
        }
        answers.retain(|answer| {
            let Body::Message(message) = &answer.frame().body else {
                return true;
            };
            !self.tell(message, Err(why.to_owned()))
        });
    }

    /// Gives the answer to the replay that waits for it. Returns false if there is none.
    fn tell(&self, message: &Message, told: AnswerResult) -> bool {
        if !matches!(message.kind(), Kind::Response | Kind::Error) {
            return false;
        }
        let Some(key) = message.id().map(|id| id.key()) else {
            return false;
        };
        let mut state = self.lock();
        let place = state.waiters.iter().position(|owed| owed.id.key() == key);
        let owed = place.map(|place| state.waiters.swap_remove(place));
        let found = owed.is_some();
        if let Some(owed) = owed {
            // Nobody has to wait that long.
            drop(owed.told.send(told));
        }
        found
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Whether a message of the server belongs to a replay and not to the client.
    pub(crate) fn is_of_replay(&self, message: &Message) -> bool {
        if !self.replay_waiters().had_replays() {
            return false;
        }
        let field = match message.kind() {
            Kind::Response | Kind::Error => Field::Id,
            Kind::Notification => Field::ProgressToken,
            _ => return false,
        };
        let span = message.span(field);
        span.is_some_and(|span| self.run.injection_queues().is_ours(message.slice(span)))
    }

    /// Somebody decided that this message goes no further; a replay that waits for it need not.
    pub(crate) fn dropped(&self, message: &Message, sequence: u64, by: &str) {
        if !self.replay_waiters().had_replays() {
            return;
        }
        let told = || Err(format!("the answer (#{sequence}) was dropped by {by}"));
        match message.parts() {
            Some(parts) => parts.iter().for_each(|part| {
                self.replay_waiters().tell(part, told());
            }),
            None => drop(self.replay_waiters().tell(message, told())),
        }
    }

    /// The parts of a batch that belong to the client, if others do not; answers are told.
    pub(crate) fn without_replays(&self, batch: &Message, sequence: u64) -> Option<Vec<Message>> {
        let mut parts = batch.parts()?;
        let all = parts.len();
        parts.retain(|part| {
            let is_clients = !self.is_of_replay(part);
            if !is_clients {
                self.replay_waiters().tell(part, Ok(sequence));
            }
            is_clients
        });
        (parts.len() < all).then_some(parts)
    }
}

/// Takes what belongs to replays out of what goes to the client.
pub fn remove_replay_answers(connection: &Connection, output: &mut PipelineOutput) {
    if !connection.replay_waiters().had_replays() {
        return;
    }
    let forward = std::mem::take(&mut output.forward);
    let kept = forward
        .into_iter()
        .filter_map(|outgoing| without_replay_answer(connection, outgoing));
    output.forward.extend(kept);
}

fn without_replay_answer(
    connection: &Connection,
    outgoing: OutgoingFrame,
) -> Option<OutgoingFrame> {
    match outgoing {
        OutgoingFrame::Frame(frame) => {
            let Body::Message(message) = &frame.body else {
                return Some(frame.into());
            };
            match take_replay_portion(connection, message, frame.sequence) {
                ReplayPortion::Nothing => Some(frame.into()),
                ReplayPortion::All => None,
                ReplayPortion::Some(rest) => Some(with_message(frame, rest).into()),
            }
        }
        OutgoingFrame::Dropped(frame) => {
            let is_of_replay =
                matches!(&frame.body, Body::Message(message) if connection.is_of_replay(message));
            (!is_of_replay).then_some(OutgoingFrame::Dropped(frame))
        }
        OutgoingFrame::Replacement { original, frame } if connection.is_of_replay(&original) => {
            if let Body::Message(message) = &frame.body {
                drop(take_replay_portion(connection, message, frame.sequence));
            }
            drop(take_replay_portion(connection, &original, frame.sequence));
            None
        }
        other => Some(other),
    }
}

/// How much of a message is not the client's.
enum ReplayPortion {
    Nothing,
    All,
    /// This is left of a batch.
    Some(Message),
}

fn take_replay_portion(
    connection: &Connection,
    message: &Message,
    sequence: Option<u64>,
) -> ReplayPortion {
    let number = sequence.unwrap_or_default();
    if message.kind() != Kind::Batch {
        if !connection.is_of_replay(message) {
            return ReplayPortion::Nothing;
        }
        connection.replay_waiters().tell(message, Ok(number));
        return ReplayPortion::All;
    }
    let Some(rest) = connection.without_replays(message, number) else {
        return ReplayPortion::Nothing;
    };
    if rest.is_empty() {
        return ReplayPortion::All;
    }
    let parts: Vec<&[u8]> = rest.iter().map(|part| part.raw().as_ref()).collect();
    let rest = Message::parse([b"[".as_slice(), &parts.join(&b","[..]), b"]"].concat());
    let run = &connection.run;
    connection.record_verdict(NewVerdict {
        time: run.wall(run.now()),
        sequence,
        message: None,
        kind: "modify",
        by: "proxy".to_owned(),
        why: "messages of a replay were removed from the batch".to_owned(),
        delay: None,
        replay_of: None,
        original_raw: Some(message.raw().clone()),
        raw: Some(rest.raw().clone()),
    });
    ReplayPortion::Some(rest)
}
