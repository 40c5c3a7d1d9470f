//! One held message, and what can be decided about it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_proxy_wire::{Direction, Message};

/// A hold's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldId(pub u64);

/// Who holds a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldReason {
    /// Intercept mode.
    Intercept,
    /// The breakpoint of this number.
    Breakpoint(u32),
    /// Rules, which need nobody's decision: viewers never see such a hold.
    Rules,
}

impl fmt::Display for HoldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HoldReason::Intercept => f.write_str("intercept"),
            HoldReason::Breakpoint(number) => write!(f, "breakpoint {number}"),
            HoldReason::Rules => f.write_str("rules"),
        }
    }
}

/// A message that waits for a decision.
#[derive(Clone, Debug)]
pub struct HeldMessage {
    /// The hold.
    pub hold: HoldId,
    /// The message's number in the record.
    pub sequence: u64,
    /// Its connection.
    pub connection: u32,
    /// The name of the connection's server.
    pub server: Arc<str>,
    /// The way it goes.
    pub direction: Direction,
    /// The message as it was received.
    pub message: Message,
    /// Since when, counted from the start of the run.
    pub since: Duration,
    /// Until when; `None` while the first viewer is awaited.
    pub deadline: Option<Duration>,
    /// Who holds it.
    pub by: HoldReason,
}

/// Whether a changed message is checked before it is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonCheck {
    /// It must be JSON.
    Json,
    /// It is forwarded whatever it is.
    AsIs,
}

/// What is done with a held message.
#[derive(Clone, Debug)]
pub enum InterceptAction {
    /// Forward it unchanged.
    Forward,
    /// Forward these bytes instead.
    Modify(Bytes, JsonCheck),
    /// Do not forward it.
    Drop,
    /// Do not forward it; a waiting client or server gets this error.
    Error {
        /// The error's code.
        code: i64,
        /// The error's text.
        message: String,
    },
}

impl InterceptAction {
    /// `forward`, `modify`, `drop` or `error`.
    pub const fn name(&self) -> &'static str {
        match self {
            InterceptAction::Forward => "forward",
            InterceptAction::Modify(..) => "modify",
            InterceptAction::Drop => "drop",
            InterceptAction::Error { .. } => "error",
        }
    }

    /// Refuses a change that is not JSON, unless the user asked for it.
    pub(super) fn check(&self) -> Result<(), ResolveError> {
        match self {
            InterceptAction::Modify(bytes, JsonCheck::Json)
                if !Message::parse(bytes.clone()).is_json() =>
            {
                Err(ResolveError::NotJson)
            }
            _ => Ok(()),
        }
    }
}

/// Why a decision does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// There is no such hold.
    #[error("no message is held under {}", .0.0)]
    Unknown(HoldId),
    /// Somebody was quicker.
    #[error("hold {} was resolved already: {action} by {by}", .hold.0)]
    Resolved {
        /// The hold.
        hold: HoldId,
        /// By whom.
        by: String,
        /// What was decided.
        action: &'static str,
    },
    /// The changed message is not JSON.
    #[error("the changed message is not JSON; set `as_is` to send it anyway")]
    NotJson,
}
