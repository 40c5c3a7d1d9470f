//! Everything that can go wrong with a call of the tool, and how the caller gets to know.
//!
//! Errors are tool results, not JSON-RPC errors: a model sees the text and can correct its call. Where the reference
//! implementation has a text for the same mistake, ours begins with it.

use bytes::Bytes;

use super::catalog_answers::SERVERS_NOT_READY;
use super::own_result::{OwnOutcome, own_result, push_text_item};
use super::{DispatchAction, DispatchParameter, MissingConnection, ReadResultOperation};
use crate::wording::{enumerate, shorten};
use mcp_proxy_wire::json::ObjectWriter;

/// Why an operation has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DispatchToolError {
    /// The arguments are something else than an object.
    #[error("The arguments must be a JSON object.")]
    ArgumentsNotAnObject,
    /// There is no `action`.
    #[error("Parameter 'action' is required. {}{}", valid_actions(), did_you_mean(*suggestion))]
    MissingAction {
        /// What the other parameters are for.
        suggestion: Option<DispatchAction>,
    },
    /// There is no such action.
    #[error(
        "Unsupported {} action '{}'. {}{}",
        shorten(tool),
        shorten(action),
        valid_actions(),
        did_you_mean(*suggestion)
    )]
    UnsupportedAction {
        /// The name of this tool.
        tool: String,
        /// The word that was given.
        action: String,
        /// What was probably meant.
        suggestion: Option<DispatchAction>,
    },
    /// There is no such parameter.
    #[error("Unknown parameter '{}' for action '{action}'. {}", shorten(name), use_instead(*action, *suggestion))]
    UnknownParameter {
        /// Its name.
        name: String,
        /// The action.
        action: DispatchAction,
        /// What was probably meant.
        suggestion: Option<DispatchParameter>,
    },
    /// The action does not take this parameter.
    #[error(
        "Parameter '{parameter}' is not for action '{action}', only for {}.",
        enumerate(parameter.actions().iter().map(|action| action.as_str()), "and")
    )]
    ParameterNotAllowed {
        /// The parameter.
        parameter: DispatchParameter,
        /// The action.
        action: DispatchAction,
    },
    /// The operation on a result does not take this parameter.
    #[error(
        "Parameter '{parameter}' is not for op='{operation}', only for {}.",
        enumerate(parameter.operations().iter().map(|operation| operation.as_str()), "and")
    )]
    ParameterNotForOperation {
        /// The parameter.
        parameter: DispatchParameter,
        /// The operation.
        operation: ReadResultOperation,
    },
    /// A parameter has a value that it cannot have.
    #[error("Parameter '{parameter}' must be {}.{}", parameter.allowed(), did_you_mean(*suggestion))]
    InvalidValue {
        /// The parameter.
        parameter: DispatchParameter,
        /// The action.
        action: Option<DispatchAction>,
        /// What was probably meant.
        suggestion: Option<&'static str>,
    },
    /// A search for nothing.
    #[error("Search action requires a non-empty 'query' value.")]
    MissingQuery,
    /// A call of nothing.
    #[error(
        "Call action requires a 'tool' name.{}",
        put_name_into_tool(instead.as_deref())
    )]
    MissingTool {
        /// A parameter that probably has the name.
        instead: Option<String>,
    },
    /// The arguments of a call are something else than an object.
    #[error("Call action requires 'arguments' to be an object when supplied.")]
    CallArgumentsNotAnObject,
    /// A call has arguments and a file of them.
    #[error("Use either 'arguments' or 'argumentsFile', not both.")]
    ArgumentsTwice,
    /// A call has parameters that are the tool's.
    #[error(
        "Call action received downstream input(s) at the proxy level: {}. Put downstream tool inputs in 'arguments', for example {{ action: 'call', tool: '{}', arguments: {{ ... }} }}.{}",
        some_names(names),
        shorten(tool),
        did_you_mean(*suggestion)
    )]
    InputsOutsideArguments {
        /// Their names.
        names: Vec<String>,
        /// The tool.
        tool: String,
        /// What one of them was probably meant to be.
        suggestion: Option<DispatchParameter>,
    },
    /// Nothing says which result to read.
    #[error("readresult requires 'resultFile' parameter with the path returned by a prior call.")]
    MissingResultFile,
    /// An operation on a result lacks what it is about.
    #[error("readresult op='{operation}' requires a '{parameter}' parameter.")]
    MissingForOperation {
        /// The operation.
        operation: ReadResultOperation,
        /// The parameter.
        parameter: DispatchParameter,
    },
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
    if let Some(action) = action.or(error.action()) {
        facts.text("action", action.as_str());
    }
    facts.text("error", &text);
    facts.text("code", error.code());
    if let Some(parameter) = error.parameter() {
        facts.text("parameter", parameter.as_str());
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
            DispatchToolError::ArgumentsNotAnObject => "invalid-arguments",
            DispatchToolError::UnsupportedAction { .. } => "unsupported-action",
            DispatchToolError::UnknownParameter { .. } => "unknown-parameter",
            DispatchToolError::ParameterNotAllowed { .. }
            | DispatchToolError::ParameterNotForOperation { .. } => "parameter-not-allowed",
            DispatchToolError::InvalidValue { .. }
            | DispatchToolError::CallArgumentsNotAnObject => "invalid-value",
            DispatchToolError::MissingAction { .. }
            | DispatchToolError::MissingQuery
            | DispatchToolError::MissingTool { .. }
            | DispatchToolError::MissingResultFile
            | DispatchToolError::MissingForOperation { .. } => "missing-parameter",
            DispatchToolError::ArgumentsTwice => "arguments-twice",
            DispatchToolError::InputsOutsideArguments { .. } => "inputs-outside-arguments",
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

    /// The parameter that is wrong, if it is one of ours.
    pub fn parameter(&self) -> Option<DispatchParameter> {
        match self {
            DispatchToolError::ParameterNotAllowed { parameter, .. }
            | DispatchToolError::ParameterNotForOperation { parameter, .. }
            | DispatchToolError::InvalidValue { parameter, .. }
            | DispatchToolError::MissingForOperation { parameter, .. }
            | DispatchToolError::FileRefused { parameter, .. } => Some(*parameter),
            DispatchToolError::MissingAction { .. }
            | DispatchToolError::UnsupportedAction { .. } => Some(DispatchParameter::Action),
            DispatchToolError::MissingQuery => Some(DispatchParameter::Query),
            DispatchToolError::MissingTool { .. }
            | DispatchToolError::ToolNotFound { .. }
            | DispatchToolError::AmbiguousTool { .. } => Some(DispatchParameter::Tool),
            DispatchToolError::CallArgumentsNotAnObject
            | DispatchToolError::BadReference { .. } => Some(DispatchParameter::Arguments),
            DispatchToolError::MissingResultFile => Some(DispatchParameter::ResultFile),
            DispatchToolError::FilterFailed { .. } => Some(DispatchParameter::Filter),
            DispatchToolError::PatternTooLarge { .. } => Some(DispatchParameter::Pattern),
            DispatchToolError::UnknownConnection { .. } => Some(DispatchParameter::Connection),
            DispatchToolError::ArgumentsFileNotAnObject { .. } => {
                Some(DispatchParameter::ArgumentsFile)
            }
            _ => None,
        }
    }

    /// The action in which this happens, as far as the error alone says it.
    fn action(&self) -> Option<DispatchAction> {
        match self {
            DispatchToolError::UnknownParameter { action, .. }
            | DispatchToolError::ParameterNotAllowed { action, .. } => Some(*action),
            DispatchToolError::InvalidValue { action, .. } => *action,
            DispatchToolError::FileRefused {
                parameter: DispatchParameter::ResultFile,
                ..
            } => Some(DispatchAction::ReadResult),
            DispatchToolError::MissingQuery => Some(DispatchAction::Search),
            DispatchToolError::MissingTool { .. }
            | DispatchToolError::CallArgumentsNotAnObject
            | DispatchToolError::ArgumentsTwice
            | DispatchToolError::InputsOutsideArguments { .. }
            | DispatchToolError::ToolNotFound { .. }
            | DispatchToolError::AmbiguousTool { .. }
            | DispatchToolError::ConnectionUnavailable { .. }
            | DispatchToolError::ServerError { .. }
            | DispatchToolError::FileRefused { .. }
            | DispatchToolError::BadReference { .. }
            | DispatchToolError::ArgumentsFileNotAnObject { .. } => Some(DispatchAction::Call),
            DispatchToolError::ParameterNotForOperation { .. }
            | DispatchToolError::MissingResultFile
            | DispatchToolError::FilterFailed { .. }
            | DispatchToolError::PatternTooLarge { .. }
            | DispatchToolError::MissingForOperation { .. } => Some(DispatchAction::ReadResult),
            _ => None,
        }
    }
}

fn valid_actions() -> String {
    let actions = DispatchAction::ALL.map(DispatchAction::as_str);
    format!("Valid actions are: {}.", actions.join(", "))
}

fn did_you_mean(suggestion: Option<impl std::fmt::Display>) -> String {
    suggestion.map_or_else(String::new, |word| format!(" Did you mean '{word}'?"))
}

fn did_you_mean_names(near: &[String]) -> String {
    if near.is_empty() {
        return String::new();
    }
    let names = enumerate(near.iter().map(String::as_str), "or");
    format!(" Did you mean {names}?")
}

fn use_instead(action: DispatchAction, suggestion: Option<DispatchParameter>) -> String {
    if let Some(parameter) = suggestion {
        return format!("Did you mean '{parameter}'?");
    }
    let taken = DispatchParameter::ALL.into_iter().filter(|parameter| {
        *parameter != DispatchParameter::Action && parameter.actions().contains(&action)
    });
    let taken = enumerate(taken.map(DispatchParameter::as_str), "and");
    format!("It takes {taken}.")
}

fn put_name_into_tool(instead: Option<&str>) -> String {
    instead.map_or_else(String::new, |name| {
        format!(" Did you mean 'tool' instead of '{}'?", shorten(name))
    })
}

/// The first names, and how many more there are.
fn some_names(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let shown: Vec<_> = names.iter().take(SHOWN).map(|name| shorten(name)).collect();
    let more = match names.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", shown.join(", "))
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
