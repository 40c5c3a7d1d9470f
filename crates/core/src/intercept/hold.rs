//! One held message, and what can be decided about it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_proxy_control::HoldClock;
use mcp_proxy_wire::headers::HeaderEdits;
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
    /// Whether its time runs.
    pub clock: HoldClock,
    /// How long until the policy decides, once it runs.
    pub left: Option<Duration>,
    /// The viewers that have it open in an editor.
    pub editors: Vec<String>,
    /// Who holds it.
    pub by: HoldReason,
    /// Its HTTP head is forwarded with it.
    pub has_head: bool,
    /// The proxy makes the HTTP request that carries it on.
    pub makes_head: bool,
}

/// Whether a changed message is checked before it is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonCheck {
    /// It must be JSON.
    Json,
    /// It is forwarded whatever it is.
    AsIs,
}

/// What is forwarded in the place of a held message.
#[derive(Clone, Debug, Default)]
pub struct MessageEdit {
    /// The new message, unless it stays.
    pub body: Option<EditedBody>,
    /// Changes to its HTTP head.
    pub headers: HeaderEdits,
}

/// A new message.
#[derive(Clone, Debug)]
pub struct EditedBody {
    /// Its bytes.
    pub bytes: Bytes,
    /// Whether it must be JSON.
    pub check: JsonCheck,
    /// What the record shows, if that is not the same: values that a viewer never saw stay hidden wherever they were put.
    pub shown: Option<Bytes>,
}

impl MessageEdit {
    /// These bytes.
    pub fn new(bytes: impl Into<Bytes>, check: JsonCheck) -> MessageEdit {
        MessageEdit {
            body: Some(EditedBody {
                bytes: bytes.into(),
                check,
                shown: None,
            }),
            headers: HeaderEdits::default(),
        }
    }

    fn is_checked(&self) -> bool {
        self.body.as_ref().is_none_or(|body| {
            body.check == JsonCheck::AsIs || Message::parse(body.bytes.clone()).is_json()
        })
    }
}

/// What is done with a held message.
#[derive(Clone, Debug)]
pub enum InterceptAction {
    /// Forward it unchanged.
    Forward,
    /// Forward it changed.
    Modify(MessageEdit),
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
            InterceptAction::Modify(edit) if !edit.is_checked() => Err(ResolveError::NotJson),
            _ => Ok(()),
        }
    }
}

/// A decision that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedHold {
    /// The hold.
    pub hold: HoldId,
    /// The message's number in the record.
    pub sequence: u64,
    /// By whom.
    pub by: String,
    /// What was decided.
    pub action: &'static str,
    /// Why, unless that is the will of a viewer.
    pub why: String,
}

impl fmt::Display for ResolvedHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = match self.action {
            "forward" => "forwarded",
            "modify" => "forwarded with changes",
            "drop" => "dropped",
            _ => "answered with an error",
        };
        write!(f, "#{} was already {done} by {}", self.sequence, self.by)?;
        match self.why.as_str() {
            "" => Ok(()),
            why => write!(f, ": {why}"),
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
    #[error("{0}")]
    Resolved(ResolvedHold),
    /// Headers are to be changed where none are sent.
    #[error(
        "the message is not sent with an HTTP head of its own, so its headers cannot be changed"
    )]
    NoHead,
    /// The changed message is not JSON.
    #[error("the changed message is not JSON; set `as_is` to send it anyway")]
    NotJson,
}
