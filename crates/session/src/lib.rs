//! The record of a session: what crossed the proxy, kept on disk as it was.
//!
//! A record is an append-only file of JSON lines (`docs/record-format.md`). [`Recorder`] writes one, [`Session`] reads one,
//! through a row index that makes a million messages open at once; exporters turn it into the seed's JSON, JSONL, HAR or
//! Markdown, importers make a record of the seed's JSON, and [`store`] looks after the folder where records live.
//!
//! This crate knows messages (`mcp-proxy-wire`) and files. It must never know sockets, the terminal, or what a verdict means.

mod budget;
mod change;
mod copy;
mod entry;
mod envelope;
mod error;
pub mod export;
pub mod filter;
mod header;
mod id;
pub mod import;
mod index;
mod jq;
mod json;
mod lines;
mod lock;
mod mask;
mod message;
mod options;
mod place;
mod recorder;
pub mod redact;
mod repair;
mod session;
mod stamp;
pub mod store;

pub use budget::{Budget, Stopwatch};
pub use change::{Change, ChangeError, ChangePart};
pub use copy::copy_record;
pub use entry::{Act, Answers, Io, Mark, NewBody, NewMessage, Origin, PartAnswer};
pub use error::Error;
pub use export::{SessionExporter, exporters};
pub use filter::{AskedFacts, Carried, Facts, Filter, FilterError, Marks};
pub use header::{ProxySession, SessionHeader};
pub use id::{MessageId, new_salt, new_session_id};
pub use import::import;
pub use index::Row;
pub use jq::RunError;
pub use lock::is_live;
pub use mask::{MASKED, Masks};
pub use message::{Asked, Bodies, Http, Part, ProxyMessage, Raw, Sse, Told, Verdict, raw_member};
pub use options::{Durability, OnRecordError, RecordOptions};
pub use place::Place;
pub use recorder::{
    DiskSync, Keeper, Recorder, Ring, SIDE_LIMIT, SideFile, SideName, name_of, side_folder,
};
pub use redact::{Redacted, Redaction, RedactionFacts, RedactionRules};
pub use repair::{Cut, repair};
pub use session::{Ending, Record, Records, Session};
pub use stamp::{parse as time_from_text, to_text as time_text};

/// The record format this build writes. Older ones are read, newer ones are refused with a clear text.
pub const FORMAT: u32 = 1;
