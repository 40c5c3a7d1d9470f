//! Why something was not spilled or not read.

use std::io;

use rustix::io::Errno;

/// An error of the spill store. The texts are for clients: they name no path of this machine.
#[derive(Debug, thiserror::Error)]
pub enum SpillError {
    /// The one answer to a handle or path that may not be read, whatever the reason, so that nothing can be probed.
    #[error("No such result file. Use a resultFile that an earlier call returned.")]
    NoSuchFile,
    /// What should be the arguments of a tool is something else.
    #[error("The arguments file must contain a JSON or TOON object.")]
    NotAnObject,
    /// The quota is used up, and what could be removed would not make enough room.
    #[error("The result does not fit into the {quota} bytes that results may take up on disk.")]
    QuotaExceeded {
        /// What all results together may take up.
        quota: u64,
    },
    /// The file is larger than this operation takes.
    #[error("The file is {size} bytes; {operation} accepts at most {limit}.")]
    TooLarge {
        /// What was asked for.
        operation: &'static str,
        /// The size of the file.
        size: u64,
        /// The largest size that would be accepted.
        limit: u64,
    },
    /// A regular expression would take too much memory or time.
    #[error("The pattern is too large. Use a shorter one, or smaller repetitions.")]
    PatternTooLarge,
    /// A jq filter is wrong, failed, or was stopped.
    #[error("The jq filter failed: {0}")]
    BadFilter(String),
    /// `jq` was asked of something that is not JSON.
    #[error("The file is not JSON, so jq cannot read it.")]
    NotJson,
    /// A value was asked of something that has none.
    #[error("The file is not JSON, so it is not a value.")]
    NotValue,
    /// A filter for one value gave none or several.
    #[error("The jq filter must give one value, but it gave {}.", if *.several { "several; collect them with [...]" } else { "none" })]
    NotOneValue {
        /// Whether there were more.
        several: bool,
    },
    /// The directory for spilled results belongs to somebody else, or others may write to it.
    #[error(
        "The directory for spilled results must belong to this user, and nobody else may write to it."
    )]
    NotPrivate,
    /// The operating system refused.
    #[error("The result file cannot be used: {0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for SpillError {
    fn from(error: Errno) -> SpillError {
        SpillError::Io(error.into())
    }
}
