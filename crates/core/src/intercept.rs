//! Holding messages: the mode, the breakpoints, and what is held.
//!
//! So far the mode and the breakpoints are kept, and nothing is held yet.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use mcp_proxy_wire::{Direction, Message};
use tokio::sync::watch;

/// Whether messages pass by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InterceptMode {
    /// Every message passes, breakpoints aside.
    #[default]
    Passthrough,
    /// Every message is held.
    Intercept,
}

/// The number of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldId(pub u64);

impl fmt::Display for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A message that waits for a decision.
#[derive(Clone, Debug)]
pub struct HeldMessage {
    /// Its hold.
    pub hold: HoldId,
    /// Its number in the record.
    pub sequence: u64,
    /// The connection.
    pub connection: u32,
    /// The way it goes.
    pub direction: Direction,
    /// The message.
    pub message: Message,
    /// Held since, on the run's clock.
    pub since: Duration,
    /// When the policy decides, on the run's clock.
    pub deadline: Option<Duration>,
    /// What holds it.
    pub by: HeldBy,
}

/// What holds a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBy {
    /// The mode.
    Intercept,
    /// A breakpoint.
    Breakpoint(u32),
}

/// How a replacement is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// It must be JSON.
    Json,
    /// Not at all.
    AsIs,
}

/// What becomes of a held message.
#[derive(Clone, Debug)]
pub enum InterceptAction {
    /// It goes on as it is.
    Forward,
    /// These bytes go on instead.
    Modify(Bytes, Check),
    /// It goes nowhere.
    Drop,
    /// Its sender gets an error.
    Error {
        /// JSON-RPC code.
        code: i64,
        /// Text.
        message: String,
    },
}

/// The mode and what is held.
#[derive(Clone, Debug, Default)]
pub struct InterceptState {
    /// The mode.
    pub mode: InterceptMode,
    /// The oldest first.
    pub held: Vec<HeldMessage>,
}

/// A breakpoint to be set.
#[derive(Clone, Debug)]
pub struct NewBreakpoint {
    /// Which messages.
    pub filter: String,
    /// Only those that go this way.
    pub direction: Option<Direction>,
    /// Only so many; 1 is one-shot.
    pub hits: Option<u64>,
}

/// A breakpoint that is set.
#[derive(Clone, Debug)]
pub struct Breakpoint {
    /// Its number.
    pub id: u32,
    /// Which messages.
    pub filter: String,
    /// Only those that go this way.
    pub direction: Option<Direction>,
    /// How many more it holds.
    pub left: Option<u64>,
    /// How many it has held.
    pub hits: u64,
}

/// Why a hold was not resolved.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ResolveError {
    /// There never was such a hold.
    #[error("there is no hold {0}")]
    Unknown(HoldId),
    /// Somebody was first.
    #[error("hold {hold} is already resolved by {by}: {action}")]
    Resolved {
        /// The hold.
        hold: HoldId,
        /// Who.
        by: String,
        /// How.
        action: &'static str,
    },
    /// The replacement is no JSON.
    #[error("the new message is no JSON ({0}); say as_is to send it all the same")]
    NotJson(String),
}

/// A filter that cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct FilterError(String);

/// The state that all connections of a run share.
#[derive(Debug)]
pub struct Intercept {
    table: Mutex<Table>,
    changes: watch::Sender<u64>,
    viewers: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Table {
    mode: InterceptMode,
    breakpoints: Vec<Breakpoint>,
    last: u32,
}

/// A viewer that looks; gone when dropped.
#[derive(Debug)]
pub struct ViewerGuard(Arc<AtomicUsize>);

impl Default for Intercept {
    fn default() -> Intercept {
        Intercept {
            table: Mutex::default(),
            changes: watch::channel(0).0,
            viewers: Arc::default(),
        }
    }
}

impl Intercept {
    /// The mode and what is held.
    pub fn state(&self) -> InterceptState {
        InterceptState {
            mode: self.table().mode,
            held: Vec::new(),
        }
    }

    /// Sets the mode.
    pub fn set_mode(&self, mode: InterceptMode, _by: &str) {
        self.table().mode = mode;
        self.changes.send_modify(|count| *count += 1);
    }

    /// Decides about a held message.
    pub fn resolve(
        &self,
        hold: HoldId,
        _action: InterceptAction,
        _by: &str,
    ) -> Result<(), ResolveError> {
        Err(ResolveError::Unknown(hold))
    }

    /// Forwards the oldest held message and holds the next.
    pub fn step(&self, _by: &str) {}

    /// Forwards everything that is held.
    pub fn resume(&self, _by: &str) {}

    /// Sets a breakpoint.
    pub fn add_breakpoint(&self, new: NewBreakpoint) -> Result<u32, FilterError> {
        if new.filter.trim().is_empty() {
            return Err(FilterError("the filter is empty".to_owned()));
        }
        let mut table = self.table();
        table.last += 1;
        let id = table.last;
        table.breakpoints.push(Breakpoint {
            id,
            filter: new.filter,
            direction: new.direction,
            left: new.hits,
            hits: 0,
        });
        Ok(id)
    }

    /// Removes a breakpoint. False: there was none.
    pub fn remove_breakpoint(&self, id: u32) -> bool {
        let mut table = self.table();
        let before = table.breakpoints.len();
        table.breakpoints.retain(|breakpoint| breakpoint.id != id);
        table.breakpoints.len() < before
    }

    /// The breakpoints.
    pub fn breakpoints(&self) -> Vec<Breakpoint> {
        self.table().breakpoints.clone()
    }

    /// A counter that changes at every hold and every decision.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Somebody looks now.
    pub fn viewer_came(&self) -> ViewerGuard {
        self.viewers.fetch_add(1, Ordering::Relaxed);
        ViewerGuard(Arc::clone(&self.viewers))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ViewerGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
