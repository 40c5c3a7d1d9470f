//! The record of a session: what crossed the proxy, kept on disk as it was.
//!
//! A record is an append-only file of JSON lines (`docs/record-format.md`). [`Recorder`] writes one, [`SessionRecord`] reads one,
//! through a row index that makes a million messages open at once; exporters turn it into the seed's JSON, JSONL, HAR or
//! Markdown, importers make a record of the seed's JSON, and [`store`] looks after the folder where records live.
//!
//! This crate knows messages (`mcp-proxy-wire`) and files. It must never know sockets, the terminal, or what a verdict means.

#![warn(unreachable_pub)]

mod amounts;
mod change;
mod copy;
mod credential_redaction;
mod error;
pub mod export;
pub mod filter;
mod header;
mod id;
pub mod import;
mod index;
mod jq;
mod json;
mod line_members;
mod lines;
mod lock;
mod message;
mod options;
mod peer;
mod private_files;
mod program_thread;
mod query;
mod record_file;
mod record_input;
mod record_location;
mod recorder;
pub mod redact;
mod repair;
mod session_record;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod timestamp;

pub use amounts::duration_text;
pub use change::{Change, ChangeError, ChangePart};
pub use copy::copy_record;
pub use credential_redaction::{CredentialRedaction, REDACTED_CREDENTIAL};
pub use error::Error;
pub use export::{SessionExporter, exporters};
pub use filter::{EnvelopeFacts, Filter, FilterError, MessageFacts, MessageFlags, RequestFacts};
pub use header::{ProxySession, SessionHeader};
pub use id::{MessageId, new_salt, new_session_id};
pub use import::import;
pub use index::Row;
pub use jq::JqError;
pub use lock::is_live;
pub use message::{
    BatchPart, BodyInclusion, HttpHead, MessageProblem, MessageWithContext, ProxyMessage, RawBody,
    RequestSummary, SseFields, Verdict, raw_member, remark_words,
};
pub use options::{Durability, RecordErrorPolicy, RecordOptions};
pub use peer::{CallerInfo, ConnectionInfo, PeerInfo, UNNAMED_SERVER};
pub use query::{JqAnswer, JqQuery, JqRoom};
pub use record_input::{
    AnsweredRequest, MarkOperation, NewBatchPart, NewBody, NewMessage, NewVerdict, RecordEvent,
    ReplayOrigin,
};
pub use record_location::{RecordLocation, numbered_record};
pub use recorder::{DiskSync, Recorder, subject_name};
pub use redact::{RedactedMessage, Redaction, RedactionFacts, RedactionRules};
pub use repair::{TornTail, repair};
pub use session_record::{RecordedLine, RecordedLines, SessionEnd, SessionNote, SessionRecord};
pub use timestamp::{parse as time_from_text, to_text as time_text};

/// The record format that this build writes.
pub const FORMAT: u32 = 3;

/// The oldest format that this build reads. It had large bodies in files of their own, which are shown as not stored.
pub(crate) const OLDEST_FORMAT: u32 = 2;
