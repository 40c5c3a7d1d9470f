//! Requests about recorded messages: fetching, marking, copying and sending them again.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{ControlRequest, is_false};
use crate::{ConnectionNumber, FileResult, GetResult, Method, NoResult, ReplayResult};

/// `get`
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GetRequest {
    /// The first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// In place of both: the newest messages, this many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    /// At most this many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// With their bodies.
    #[serde(default, skip_serializing_if = "is_false")]
    pub raw: bool,
}

impl ControlRequest for GetRequest {
    const METHOD: Method = Method::Get;
    type Result = GetResult;
}

/// `replay`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayRequest {
    /// The message.
    pub sequence: u64,
    /// The session that it is sent on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<ReplaySession>,
    /// The message to send in its place: JSON of which every byte is kept, or a string with the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Box<RawValue>>,
    /// It is sent even if it is not a JSON-RPC request or notification.
    #[serde(default, skip_serializing_if = "is_false")]
    pub as_is: bool,
    /// How long it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Live: the connection whose session is used. Fresh: the connection whose server is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionNumber>,
    /// Fresh: the server that is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

impl ReplayRequest {
    /// A message that is sent in the place of the recorded one, as a string: it need not be JSON.
    pub fn text(message: &str) -> Option<Box<RawValue>> {
        // A string can always be written as JSON.
        serde_json::value::to_raw_value(message).ok()
    }
}

/// The session that a message is sent again on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplaySession {
    /// A new one.
    #[default]
    Fresh,
    /// That of the client.
    Live,
}

impl ControlRequest for ReplayRequest {
    const METHOD: Method = Method::Replay;
    type Result = ReplayResult;
}

/// `note`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoteRequest {
    /// The text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The message that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// In place of a text: what happens to the mark of that message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<MarkChange>,
}

/// What happens to the mark of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkChange {
    /// The message is marked.
    Set,
    /// The mark is removed.
    Removed,
}

impl ControlRequest for NoteRequest {
    const METHOD: Method = Method::Note;
    type Result = NoResult;
}

/// `export`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportRequest {
    /// The format, as in `mcp-proxy export --output-format`.
    pub format: String,
    /// The file's absolute path.
    pub output: String,
    /// A file that is there is overwritten.
    #[serde(default, skip_serializing_if = "is_false")]
    pub force: bool,
}

impl ControlRequest for ExportRequest {
    const METHOD: Method = Method::Export;
    type Result = FileResult;
}

/// `save`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaveRequest {
    /// The copy's absolute path.
    pub output: String,
}

impl ControlRequest for SaveRequest {
    const METHOD: Method = Method::Save;
    type Result = FileResult;
}
