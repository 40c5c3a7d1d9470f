//! The client side of a recorded session, played again to a live server.
//!
//! A [`ReplayScript`] is the record, and a [`ReplayPlan`] says which of its rows a client said, with the answers it got. `player` makes a link of it that stands where a
//! client would: the pumps carry it to the server as they carry any client, and record the run as any run. Several clients
//! of one record share a [`ReplaySchedule`], so that each says its lines in its turn. Requests get ids
//! and progress tokens of our own; what the server asks is answered as the recorded client did. [`ReplayOutcome`] says how the
//! answers to a request compare, as `diff` sees it. [`replay_on_new_session`] sends a single
//! message again on a session of its own, `client_session_replay` on one that a client has open.

mod client_replies;
mod client_session_replay;
mod diff;
mod handshake;
mod injection_queue;
mod plan;
mod player;
mod response_reader;
mod schedule;
mod server_handles;
mod single_replay;
mod waiters;

use std::time::Duration;

pub(crate) use client_session_replay::DELIVERY;
pub use client_session_replay::replay_on_client_session;
pub use diff::{Difference, IgnoredPath};
pub(crate) use handshake::{Handshake, INITIALIZE, needed_handshake_messages, standard_handshake};
pub(crate) use injection_queue::{InjectionQueue, InjectionQueues};
pub use injection_queue::{MessageInjector, PendingInjection, SendFuture};
pub use plan::{MessagePurpose, PlannedMessage, RedactionFills, ReplayPlan, ReplayScript};
pub use player::{ReplayPlayer, player_link};
pub use response_reader::ReplayResponseReader;
pub use schedule::ReplaySchedule;
pub(crate) use single_replay::error_text;
pub use single_replay::{
    ReplayError, ReplayOrder, ReplayReceipt, ReplayedAnswer, SingleReplay, replay_on_new_session,
};
pub(crate) use waiters::ReplayWaiters;
pub use waiters::remove_replay_answers;

/// How plans are played.
#[derive(Clone, Copy, Debug)]
pub struct PlaybackOptions {
    /// Requests that may be open at once.
    pub concurrency: usize,
    /// The recorded pauses are divided by this; `None` for no pauses.
    pub speed: Option<f64>,
    /// A request that is not answered for this long is given up.
    pub timeout: Duration,
}

/// A request that was played, and what its answers say.
#[derive(Clone, Debug)]
pub struct ReplayOutcome {
    /// The request's number in the old record.
    pub sequence: u64,
    /// Its connection there.
    pub connection: u32,
    /// Its row there.
    pub row: usize,
    /// How the answers compare.
    pub comparison: AnswerComparison,
    /// Whether the server itself answered: an error of ours says that it did not.
    pub is_answered: bool,
}

/// How an answer compares with the recorded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerComparison {
    /// They are the same.
    Same,
    /// They are not: where.
    Different(Vec<Difference>),
    /// It is answered now, and no answer was recorded.
    New,
    /// There is none in time.
    Unanswered,
}
