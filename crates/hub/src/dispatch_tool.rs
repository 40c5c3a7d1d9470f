//! The `proxy-dispatch` tool: find a tool by what it does, call it, and read a large result in parts.
//!
//! Here are its definition, the meaning of its arguments, and the form of its answers. All of it is functions on bytes:
//! the caller resolves names, searches, calls servers, and stores results.

mod arguments;
mod call_answers;
mod catalog_answers;
mod definition;
mod error;
mod own_result;
mod parameter;
mod read_answer;
mod references;
mod search_answer;
mod summary;

use bytes::Bytes;
use mcp_proxy_spill::{ReadLimit, ReadRequest};

use crate::proxy_tool::{CapabilityType, ToolWord};

pub use arguments::parse_arguments;
pub use call_answers::{
    DispatchSpillReason, DispatchSpilledCall, DispatchedCall, call_edits, render_call,
    render_spilled_call,
};
pub use catalog_answers::{
    ConnectionProblem, DispatchConnection, DispatchStatus, DispatchTool, MissingConnection,
    render_list, render_status,
};
pub use definition::definition;
pub(crate) use definition::parameter_schema;
pub use error::{DispatchToolError, render_error};
pub use parameter::DispatchParameter;
pub use read_answer::{ReadResultFacts, ReadResultView, render_read_result};
pub use references::{ResultReference, find_references, may_have_references};
pub use search_answer::{DispatchHit, render_search};

/// The largest `limit`. A larger one counts as this.
pub const MAX_SEARCH_LIMIT: u32 = 100;

/// How many tools a `list` as text has when the call does not say, and the most.
pub const DEFAULT_LIST_LIMIT: u64 = 100;
const MAX_LIST_LIMIT: u64 = 1000;

/// How many lines `head` and `tail` return when the call does not say.
pub const DEFAULT_LINES: u64 = 50;

/// What an administrator can choose about the tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DispatchToolOptions {
    /// The tool's name: `proxy-dispatch`, or another.
    pub name: String,
    /// How many items `search` returns when the call does not say, from 1 to [`MAX_SEARCH_LIMIT`].
    pub default_search_limit: u32,
}

/// The values of `action`.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    strum::Display,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "lowercase")]
pub enum DispatchAction {
    /// Show how many tools each connection has.
    Status,
    /// Show connections and their tools.
    List,
    /// Find tools.
    Search,
    /// Call a tool.
    Call,
    /// Read part of a stored result.
    ReadResult,
}

/// The values of `op`.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    strum::Display,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "lowercase")]
pub enum ReadResultOperation {
    /// Size and number of lines.
    Stat,
    /// The whole, or its beginning.
    Read,
    /// The first lines.
    Head,
    /// The last lines.
    Tail,
    /// Some lines.
    Slice,
    /// The lines that match.
    Grep,
    /// The output of a filter.
    Jq,
}

/// The values of `format`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "lowercase")]
pub enum DispatchFormat {
    /// One line for each item.
    #[default]
    Text,
    /// What is needed to choose a tool, as JSON.
    Compact,
    /// Whole descriptions and what is known about the server.
    Detail,
}

/// Which annotations are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnnotationUse {
    /// None of them.
    None,
    /// Those that say something: hints that are not at their defaults, and a title where there is no description.
    Notable,
    /// All of them.
    All,
}

/// Whether servers are asked for their lists again before the operation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refresh {
    /// What is known is good enough.
    No,
    /// The selected connection is asked, or all of them if none is selected.
    Yes,
}

/// What a call of the tool asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DispatchOperation {
    /// How the connections are.
    Status {
        /// The only one to show.
        connection: Option<String>,
    },
    /// Connections and their tools.
    List(DispatchListQuery),
    /// Tools that match a description.
    Search(DispatchSearchQuery),
    /// A call of a tool.
    Call(DispatchCall),
    /// A part of a stored result.
    ReadResult {
        /// The handle that an earlier call returned.
        file: String,
        /// Which part.
        request: ReadRequest,
        /// How much of it, if the call says so.
        limit: Option<ReadLimit>,
    },
}

/// What a list shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DispatchListQuery {
    /// The only connection to show.
    pub connection: Option<String>,
    /// Whether the tools are listed or only counted.
    pub include_tools: bool,
    /// Whether tools have their `inputSchema`.
    pub include_input_schema: bool,
    /// Which of their `annotations` tools have.
    pub include_annotations: AnnotationUse,
    /// How much is said about each.
    pub format: DispatchFormat,
    /// The most tools to show. Only text has pages.
    pub limit: u64,
    /// How many tools to skip.
    pub offset: u64,
}

/// What is searched for, and how it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DispatchSearchQuery {
    /// The words; not empty.
    pub query: String,
    /// The only connection to search.
    pub connection: Option<String>,
    /// What is searched.
    pub kind: CapabilityType,
    /// The most items to return, from 1 to [`MAX_SEARCH_LIMIT`].
    pub limit: u32,
    /// Whether items have their `inputSchema`.
    pub include_input_schema: bool,
    /// Which of their `annotations` items have.
    pub include_annotations: AnnotationUse,
    /// How much is said about each.
    pub format: DispatchFormat,
}

/// A call of a server's tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DispatchCall {
    /// The name that its server knows, or its public name.
    pub tool: String,
    /// The connection it is on.
    pub connection: Option<String>,
    /// What it is called with.
    pub arguments: DispatchArguments,
    /// A JSON object on one line for the request's `_meta`.
    pub meta: Option<Bytes>,
    /// When the result is stored instead of returned.
    pub spill: DispatchSpill,
}

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DispatchArguments {
    /// There are none.
    None,
    /// A JSON object on one line.
    Inline(Bytes),
    /// The handle or path of a file that holds an object.
    File(String),
}

/// When a result is stored and only described in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DispatchSpill {
    /// When it is larger than the configured threshold.
    Configured,
    /// Always.
    Always,
    /// When it is larger than this many bytes.
    Above(u64),
    /// Never.
    Never,
}

impl Default for DispatchToolOptions {
    fn default() -> DispatchToolOptions {
        DispatchToolOptions {
            name: "proxy-dispatch".to_owned(),
            default_search_limit: 10,
        }
    }
}

impl ToolWord for DispatchAction {
    const SYNONYMS: &'static [(&'static str, DispatchAction)] = &[
        ("ls", DispatchAction::List),
        ("tools", DispatchAction::List),
        ("find", DispatchAction::Search),
        ("query", DispatchAction::Search),
        ("discover", DispatchAction::Search),
        ("run", DispatchAction::Call),
        ("use", DispatchAction::Call),
        ("invoke", DispatchAction::Call),
        ("exec", DispatchAction::Call),
        ("execute", DispatchAction::Call),
        ("shell", DispatchAction::Call),
        ("bash", DispatchAction::Call),
        ("read", DispatchAction::ReadResult),
        ("result", DispatchAction::ReadResult),
        ("health", DispatchAction::Status),
        ("info", DispatchAction::List),
    ];
}

impl ToolWord for ReadResultOperation {
    const SYNONYMS: &'static [(&'static str, ReadResultOperation)] = &[
        ("info", ReadResultOperation::Stat),
        ("size", ReadResultOperation::Stat),
        ("cat", ReadResultOperation::Read),
        ("range", ReadResultOperation::Slice),
        ("lines", ReadResultOperation::Slice),
        ("search", ReadResultOperation::Grep),
        ("find", ReadResultOperation::Grep),
        ("filter", ReadResultOperation::Jq),
        ("query", ReadResultOperation::Jq),
    ];
}

impl ToolWord for DispatchFormat {
    const SYNONYMS: &'static [(&'static str, DispatchFormat)] = &[
        ("full", DispatchFormat::Detail),
        ("verbose", DispatchFormat::Detail),
        ("short", DispatchFormat::Compact),
        ("brief", DispatchFormat::Compact),
    ];
}

impl DispatchOperation {
    /// The action that asked for it.
    pub fn action(&self) -> DispatchAction {
        match self {
            DispatchOperation::Status { .. } => DispatchAction::Status,
            DispatchOperation::List(_) => DispatchAction::List,
            DispatchOperation::Search(_) => DispatchAction::Search,
            DispatchOperation::Call(_) => DispatchAction::Call,
            DispatchOperation::ReadResult { .. } => DispatchAction::ReadResult,
        }
    }

    /// The connection that is selected.
    pub fn connection(&self) -> Option<&str> {
        match self {
            DispatchOperation::Status { connection } => connection.as_deref(),
            DispatchOperation::List(query) => query.connection.as_deref(),
            DispatchOperation::Search(query) => query.connection.as_deref(),
            DispatchOperation::Call(call) => call.connection.as_deref(),
            DispatchOperation::ReadResult { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
