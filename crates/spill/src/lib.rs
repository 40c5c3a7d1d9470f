//! Large results of tools: kept in private files, read back in parts, used as arguments of other tools.
//!
//! A [`SpillStore`] writes each result to a file of its own and gives out a random handle, which only its owner can use and
//! only for a time. Spilled JSON is laid out in lines, so that parts of it are worth reading.
//!
//! It must not know MCP messages or clients: results are JSON bytes, and an owner is an opaque key. It blocks, so callers
//! run it where blocking is allowed.

#![warn(unreachable_pub)]

mod error;
mod handle;
mod jq_worker;
mod layout;
mod line_index;
mod payload;
mod read;
mod read_answer;
mod read_request;
mod roots;
mod run_directory;
mod spilled_result;
mod store;
mod toon;
mod writer;

pub use error::SpillError;
pub use handle::is_handle;
pub use jq_worker::{JQ_WORKER_WORD, JqRunner, jq_worker_main};
pub use read::MAX_ANSWER;
pub use read_answer::{PatternReading, ReadAnswer, ReadFacts};
pub use read_request::{ReadLimit, ReadRequest};
pub use run_directory::sweep_after;
pub use spilled_result::{PREVIEW_CHARS, ResultShape, SpillFormat, SpilledResult};
pub use store::{SpillOptions, SpillOwner, SpillStore};
