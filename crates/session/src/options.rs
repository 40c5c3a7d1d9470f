//! How a record is kept: durability, what happens when the disk fails, and what is masked.

use crate::{CredentialRedaction, Redaction};
use std::str::FromStr;

/// When written lines are forced onto the disk. A `kill -9` of the proxy loses nothing in any of them; these matter when the machine dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Never: the system writes when it likes.
    None,
    /// At most a second later.
    #[default]
    Interval,
    /// Before each flush returns.
    Fsync,
}

/// What a failing record does to the traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecordErrorPolicy {
    /// Recording errors are returned, so that the caller stops.
    Stop,
    /// One warning; traffic continues, lines are lost and counted, and recording resumes when writing works again.
    #[default]
    Warn,
}

impl FromStr for Durability {
    type Err = String;

    fn from_str(text: &str) -> Result<Durability, String> {
        match text {
            "none" => Ok(Durability::None),
            "interval" => Ok(Durability::Interval),
            "fsync" => Ok(Durability::Fsync),
            other => Err(format!(
                "{other} is not a durability: use none, interval or fsync"
            )),
        }
    }
}

impl FromStr for RecordErrorPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<RecordErrorPolicy, String> {
        match text {
            "stop" => Ok(RecordErrorPolicy::Stop),
            "warn" => Ok(RecordErrorPolicy::Warn),
            other => Err(format!("{other} is not a policy: use stop or warn")),
        }
    }
}

/// Everything about how a record is kept, except where.
#[derive(Debug, Clone, Default)]
pub struct RecordOptions {
    /// When lines are forced onto the disk.
    pub durability: Durability,
    /// What happens when writing fails.
    pub on_error: RecordErrorPolicy,
    /// What is masked wherever it appears outside message bodies.
    pub credentials: CredentialRedaction,
    /// What is hidden in message bodies and other text before it is stored.
    pub redaction: Option<Redaction>,
    /// How many bytes a file of the record may have before the record continues in another.
    pub max_size: Option<u64>,
}
