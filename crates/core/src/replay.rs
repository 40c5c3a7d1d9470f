//! The client side of a recorded session, played again to a live server.
//!
//! A [`Script`] is the record, and a [`Plan`] says which of its rows a client said, with the answers it got. [`player`] makes a link of it that stands where a
//! client would: the pumps carry it to the server as they carry any client, and record the run as any run. Several clients
//! of one record share a [`Stage`], so that each says its lines in its turn. Requests get ids
//! and progress tokens of our own; what the server asks is answered as the recorded client did. [`Outcome`] says how the
//! answers to a request compare, as [`diff`] sees it. [`fresh`] sends a single
//! message again on a session of its own, [`live`] on one that a client has open.

mod aside;
mod awaited;
pub mod diff;
mod handles;
mod inlet;
mod live;
mod once;
mod opening;
mod plan;
mod player;
mod stage;

use std::time::Duration;

use diff::Difference;

pub use aside::Aside;
pub(crate) use awaited::Awaited;
pub use awaited::Sieve;
pub(crate) use inlet::{Inlet, Inlets, OpenInlet};
pub use inlet::{Posted, Poster, Sending};
pub(crate) use live::DELIVERY;
pub use live::live;
pub(crate) use once::error_text;
pub use once::{Asked, Once, ReplayError, Replayed, fresh};
pub(crate) use opening::{INITIALIZE, Opening, needed, standard};
pub use plan::{Fills, Line, Plan, Says, Script};
pub use player::{Player, player};
pub use stage::Stage;

/// How plans are played.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Requests that may be open at once.
    pub concurrency: usize,
    /// The recorded pauses, so many times shorter; `None`: no pauses.
    pub speed: Option<f64>,
    /// A request that is not answered for this long is given up.
    pub timeout: Duration,
}

/// A request that was played, and what its answers say.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The request's number in the old record.
    pub sequence: u64,
    /// Its connection there.
    pub connection: u32,
    /// Its row there.
    pub row: usize,
    /// How the answers compare.
    pub verdict: Verdict,
    /// Whether the server itself answered: an error of ours says that it did not.
    pub is_answered: bool,
}

/// How an answer compares with the recorded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They are the same.
    Same,
    /// They are not: where.
    Different(Vec<Difference>),
    /// It is answered now, and no answer was recorded.
    New,
    /// There is none in time.
    Unanswered,
}
