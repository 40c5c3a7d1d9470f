//! Everything that can go wrong with a call of the tool, and how the caller gets to know.
//!
//! Errors are tool results, not JSON-RPC errors: a model sees the text and can correct its call. Where the reference
//! implementation has a text for the same mistake, ours begins with it.

use bytes::Bytes;

use super::catalog_answers::SERVERS_NOT_READY;
use super::own_result::{OwnOutcome, own_result, push_text_item};
use super::{DispatchAction, DispatchParameter, MissingConnection};
use crate::proxy_tool::{ArgumentError, ToolWord};
use crate::wording::{enumerate, shorten};
use mcp_proxy_wire::json::ObjectWriter;

/// Why an operation has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DispatchToolError {
    /// The arguments do not say what to do.
    #[error(transparent)]
    Arguments(#[from] ArgumentError),
    /// No connection has this name or alias.
    #[error(
        "Unknown connection identifier '{}'.{}",
        shorten(connection),
        did_you_mean_names(near)
    )]
    UnknownConnection {
        /// What was given.
        connection: String,
        /// Aliases and names that look like it, or all if they are few.
        near: Vec<String>,
    },
    /// No server has a tool of this name.
    #[error(
        "Tool '{}' is not available on {}.{}{}",
        shorten(tool),
        on_connection(connection.as_deref()),
        did_you_mean_names(near),
        may_have_it(missing)
    )]
    ToolNotFound {
        /// The name.
        tool: String,
        /// The connection, if one was given.
        connection: Option<String>,
        /// Names that look like it.
        near: Vec<String>,
        /// Connections whose tools are not known.
        missing: Vec<MissingConnection>,
    },
    /// Several servers have a tool of this name.
    #[error(
        "Tool '{}' is available on multiple connections. Specify the 'connection' parameter.{}",
        shorten(tool),
        use_one_of(candidates)
    )]
    AmbiguousTool {
        /// The name.
        tool: String,
        /// The aliases of those that have it.
        candidates: Vec<String>,
    },
    /// The server cannot be reached.
    #[error("Connection '{}' is not available: {reason}", shorten(connection))]
    ConnectionUnavailable {
        /// Its alias or name.
        connection: String,
        /// Why, in a few words without internal details.
        reason: String,
    },
    /// The server answered with a JSON-RPC error.
    #[error("{message}")]
    ServerError {
        /// The server's code.
        code: i64,
        /// The server's text.
        message: String,
    },
    /// A result or arguments file cannot be used. The text must not tell whether some other file exists.
    #[error("{reason}")]
    FileRefused {
        /// The parameter that names it.
        parameter: DispatchParameter,
        /// Why.
        reason: String,
    },
    /// A jq filter is wrong, failed or was stopped.
    #[error("{reason}")]
    FilterFailed {
        /// Why.
        reason: String,
    },
    /// A pattern would take too much memory or time.
    #[error("{reason}")]
    PatternTooLarge {
        /// Why.
        reason: String,
    },
    /// A part of the arguments cannot be replaced by a stored result.
    #[error("{}: {reason}", shorten(place))]
    BadReference {
        /// Where it stands in the arguments.
        place: String,
        /// Why.
        reason: String,
    },
    /// An arguments file holds something else than an object.
    #[error(
        "The arguments file must contain a JSON or TOON object. For one argument, write {{\"$resultFile\":\"{}\"}} as its value in 'arguments'.",
        shorten(file)
    )]
    ArgumentsFileNotAnObject {
        /// The file.
        file: String,
    },
}

/// The tool result that reports `error`. The action is the caller's, if arguments were parsed, or else the error's.
pub fn render_error(error: &DispatchToolError, action: Option<DispatchAction>) -> Bytes {
    let text = error.to_string();
    let mut facts = ObjectWriter::new();
    if let Some(action) = action.map(DispatchAction::as_str).or(error.action()) {
        facts.text("action", action);
    }
    facts.text("error", &text);
    facts.text("code", error.code());
    if let Some(parameter) = error.parameter() {
        facts.text("parameter", parameter);
    }
    if let DispatchToolError::ServerError { code, .. } = error {
        facts.raw("serverCode", code.to_string().as_bytes());
    }
    if let DispatchToolError::ToolNotFound { missing, .. } = error
        && !missing.is_empty()
    {
        facts.array(
            SERVERS_NOT_READY,
            missing.iter().map(MissingConnection::shown),
        );
    }
    if let DispatchToolError::ArgumentsFileNotAnObject { file } = error {
        // As in the answer to a call that could be made.
        let mut from = ObjectWriter::new();
        from.text("_fromFile", file);
        facts.object("arguments", from);
    }
    if let DispatchToolError::AmbiguousTool { candidates, .. } = error {
        facts.texts("connections", candidates.iter().map(String::as_str));
    }
    let mut content = vec![b'['];
    push_text_item(&mut content, text.as_bytes());
    content.push(b']');
    own_result(&content, facts, OwnOutcome::Failed)
}

impl DispatchToolError {
    /// The word by which programs tell errors apart. It stays the same when the text changes.
    pub fn code(&self) -> &'static str {
        match self {
            DispatchToolError::Arguments(error) => error.code,
            DispatchToolError::UnknownConnection { .. } => "unknown-connection",
            DispatchToolError::ToolNotFound { .. } => "not-found",
            DispatchToolError::AmbiguousTool { .. } => "ambiguous",
            DispatchToolError::ConnectionUnavailable { .. } => "server-unavailable",
            DispatchToolError::ServerError { .. } => "server-error",
            DispatchToolError::FileRefused { .. } => "file-refused",
            DispatchToolError::FilterFailed { .. } => "filter-failed",
            DispatchToolError::PatternTooLarge { .. } => "pattern-too-large",
            DispatchToolError::ArgumentsFileNotAnObject { .. } => "invalid-arguments-file",
            DispatchToolError::BadReference { .. } => "invalid-result-reference",
        }
    }

    /// The name of the parameter that is wrong, if it is one of ours.
    pub fn parameter(&self) -> Option<&'static str> {
        let parameter = match self {
            DispatchToolError::Arguments(error) => return error.parameter,
            DispatchToolError::FileRefused { parameter, .. } => *parameter,
            DispatchToolError::ToolNotFound { .. } | DispatchToolError::AmbiguousTool { .. } => {
                DispatchParameter::Tool
            }
            DispatchToolError::BadReference { .. } => DispatchParameter::Arguments,
            DispatchToolError::FilterFailed { .. } => DispatchParameter::Filter,
            DispatchToolError::PatternTooLarge { .. } => DispatchParameter::Pattern,
            DispatchToolError::UnknownConnection { .. } => DispatchParameter::Connection,
            DispatchToolError::ArgumentsFileNotAnObject { .. } => DispatchParameter::ArgumentsFile,
            DispatchToolError::ConnectionUnavailable { .. }
            | DispatchToolError::ServerError { .. } => return None,
        };
        Some(parameter.as_str())
    }

    /// The action in which this happens, as far as the error alone says it.
    fn action(&self) -> Option<&'static str> {
        let action = match self {
            DispatchToolError::Arguments(error) => return error.action,
            DispatchToolError::UnknownConnection { .. } => return None,
            DispatchToolError::FileRefused {
                parameter: DispatchParameter::ResultFile,
                ..
            }
            | DispatchToolError::FilterFailed { .. }
            | DispatchToolError::PatternTooLarge { .. } => DispatchAction::ReadResult,
            _ => DispatchAction::Call,
        };
        Some(action.as_str())
    }
}

fn did_you_mean_names(near: &[String]) -> String {
    if near.is_empty() {
        return String::new();
    }
    let names = enumerate(near.iter().map(String::as_str), "or");
    format!(" Did you mean {names}?")
}

fn on_connection(connection: Option<&str>) -> String {
    match connection {
        Some(connection) => format!("connection '{}'", shorten(connection)),
        None => "any registered connection".to_owned(),
    }
}

/// A tool that nobody has listed may be one of these connections'.
fn may_have_it(missing: &[MissingConnection]) -> String {
    if missing.is_empty() {
        return String::new();
    }
    let names = enumerate(missing.iter().map(|one| &*one.name), "and");
    format!(
        " Not ready yet: {names}. To call a tool of such a server, name the server as 'connection'."
    )
}

fn use_one_of(candidates: &[String]) -> String {
    if candidates.is_empty() {
        return String::new();
    }
    let candidates = enumerate(candidates.iter().map(String::as_str), "or");
    format!(" It can be {candidates}.")
}
