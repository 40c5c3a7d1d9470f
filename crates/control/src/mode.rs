//! Whether messages are held: the mode of a run, and modes of its parts that differ from it.

use serde::{Deserialize, Serialize};

use crate::ConnectionNumber;

/// Whether all messages are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterceptMode {
    /// Messages are forwarded at once, unless a breakpoint holds one.
    #[default]
    Passthrough,
    /// All messages are held.
    Intercept,
}

impl InterceptMode {
    /// `passthrough` or `intercept`, as the seed spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            InterceptMode::Passthrough => "passthrough",
            InterceptMode::Intercept => "intercept",
        }
    }
}

/// What `intercept.set` does to a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModeChange {
    /// Messages pass.
    Passthrough,
    /// Messages are held.
    Intercept,
    /// A connection or a server has no mode of its own any more.
    Inherit,
}

impl From<InterceptMode> for ModeChange {
    fn from(mode: InterceptMode) -> ModeChange {
        match mode {
            InterceptMode::Passthrough => ModeChange::Passthrough,
            InterceptMode::Intercept => ModeChange::Intercept,
        }
    }
}

/// A mode that a connection or a server has instead of the run's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeOverride {
    /// The connection, if it is one's.
    #[serde(default)]
    pub connection: Option<ConnectionNumber>,
    /// The server, if it is one's.
    #[serde(default)]
    pub server: Option<String>,
    /// The mode.
    pub mode: InterceptMode,
}
