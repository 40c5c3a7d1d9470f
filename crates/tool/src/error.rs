//! Everything that can go wrong with a call of the tool, and how the caller gets to know.
//!
//! Errors are tool results, not JSON-RPC errors: a model sees the text and can correct its call. The texts name the
//! parameter and what is allowed. They repeat no values but names, and those cut short.

use bytes::Bytes;
use mcp_proxy_wire::json_string;

use super::facts::Facts;
use super::{CapabilityType, ProxyAction, ProxyParameter};
use crate::wording::{enumerate, shorten};

/// Why an operation has no result.
///
/// ```
/// use mcp_proxy_tool::ProxyToolError;
///
/// assert_eq!(ProxyToolError::ArgumentsNotAnObject.code(), "invalid-arguments");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyToolError {
    /// The arguments are something else than an object.
    #[error("The arguments must be a JSON object")]
    ArgumentsNotAnObject,
    /// An operation of a batch is something else than an object.
    #[error("Parameter 'operations[{index}]' must be a JSON object")]
    OperationNotAnObject {
        /// Its place, counted from 0.
        index: usize,
    },
    /// There is no such parameter.
    #[error("Unknown parameter '{}'{}", shorten(name), suggest_parameter(*suggestion))]
    UnknownParameter {
        /// Its name.
        name: String,
        /// What was probably meant.
        suggestion: Option<ProxyParameter>,
    },
    /// A parameter that the action needs is missing.
    #[error("Parameter '{parameter}' is required{}: {}", for_action(*action), parameter.allowed())]
    MissingParameter {
        /// The parameter.
        parameter: ProxyParameter,
        /// The action, if it is known.
        action: Option<ProxyAction>,
    },
    /// A parameter has a value that it cannot have.
    #[error("Parameter '{parameter}' must be {}{}", parameter.allowed(), suggest_value(*suggestion))]
    InvalidValue {
        /// The parameter.
        parameter: ProxyParameter,
        /// What was probably meant.
        suggestion: Option<&'static str>,
    },
    /// The action is missing or unknown, in a call of a tool that has one action more than this one.
    #[error("Parameter 'action' {}{}", or_action(more, *is_missing), suggest_value(*suggestion))]
    NoSuchActionOr {
        /// The action that the other tool has.
        more: &'static str,
        /// Whether none was given.
        is_missing: bool,
        /// What was probably meant.
        suggestion: Option<&'static str>,
    },
    /// The action does not take this parameter.
    #[error(
        "Parameter '{parameter}' should not be provided for action '{action}'; it is only for {}",
        enumerate(parameter.actions().iter().map(|action| action.as_str()), "and")
    )]
    ParameterNotAllowed {
        /// The parameter.
        parameter: ProxyParameter,
        /// The action.
        action: ProxyAction,
    },
    /// An operation of a batch is a batch.
    #[error("Action 'batch' is not allowed inside a batch; use 'search', 'list', 'info' or 'call'")]
    NestedBatch,
    /// An operation of a batch has an action that is not of this tool.
    #[error(
        "Action '{}' is not allowed inside a batch; use 'search', 'list', 'info' or 'call'",
        shorten(action)
    )]
    NotInBatch {
        /// The action.
        action: String,
    },
    /// Nothing has this name or URI.
    #[error("{} '{}' not found{}", capitalised(*kind), shorten(path), suggest_names(near))]
    NotFound {
        /// What was looked for.
        kind: CapabilityType,
        /// The name or URI.
        path: String,
        /// Names or URIs that look like it.
        near: Vec<String>,
    },
    /// No server has this name, and nothing begins with it.
    #[error("There is no server '{}'; the servers are {}", shorten(server), enumerate(servers.iter().map(String::as_str), "and"))]
    UnknownServer {
        /// The name.
        server: String,
        /// The names of the servers that there are.
        servers: Vec<String>,
    },
    /// Several servers have something of this name.
    #[error(
        "{} '{}' is ambiguous; use {}",
        capitalised(*kind),
        shorten(path),
        enumerate(candidates.iter().map(String::as_str), "or")
    )]
    Ambiguous {
        /// What was looked for.
        kind: CapabilityType,
        /// The name.
        path: String,
        /// The full names or URIs that it could stand for.
        candidates: Vec<String>,
    },
    /// The path is a URI template where a URI is needed.
    #[error(
        "Resource '{}' is a template; replace each {{…}} with a value",
        shorten(path)
    )]
    UnfilledTemplate {
        /// The template.
        path: String,
    },
    /// A tool that may change something was called through the tool that only reads.
    #[error("Tool '{}' is not marked read-only{}", shorten(path), use_other(other.as_deref()))]
    NotReadOnly {
        /// The tool's name.
        path: String,
        /// The name of the tool that can call it, if there is one.
        other: Option<String>,
    },
    /// The server cannot be reached.
    #[error("Server '{}' is not available: {reason}", shorten(server))]
    ServerUnavailable {
        /// Its name in the configuration.
        server: String,
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
}

/// The tool result that reports `error`. Its `_meta` has the code, and the parameter if there is one.
pub fn render_error(error: &ProxyToolError) -> Bytes {
    let mut facts = Facts::default();
    facts.text("error", error.code());
    if let Some(parameter) = error.parameter() {
        facts.text("parameter", parameter.as_str());
    }
    if let ProxyToolError::ServerError { code, .. } = error {
        facts.raw("serverCode", code.to_string());
    }
    let text = json_string(&error.to_string());
    let meta = facts.meta();
    format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":true,"_meta":{{{meta}}}}}"#)
        .into()
}

impl ProxyToolError {
    /// The word by which programs tell errors apart. It stays the same when the text changes.
    pub fn code(&self) -> &'static str {
        match self {
            ProxyToolError::ArgumentsNotAnObject => "invalid-arguments",
            ProxyToolError::UnknownParameter { .. } => "unknown-parameter",
            ProxyToolError::OperationNotAnObject { .. } => "invalid-value",
            ProxyToolError::MissingParameter { .. } => "missing-parameter",
            ProxyToolError::InvalidValue { .. } => "invalid-value",
            ProxyToolError::NoSuchActionOr {
                is_missing: true, ..
            } => "missing-parameter",
            ProxyToolError::NoSuchActionOr { .. } => "invalid-value",
            ProxyToolError::ParameterNotAllowed { .. } => "parameter-not-allowed",
            ProxyToolError::NestedBatch => "nested-batch",
            ProxyToolError::NotInBatch { .. } => "not-in-batch",
            ProxyToolError::NotFound { .. } => "not-found",
            ProxyToolError::UnknownServer { .. } => "unknown-server",
            ProxyToolError::Ambiguous { .. } => "ambiguous",
            ProxyToolError::UnfilledTemplate { .. } => "unfilled-template",
            ProxyToolError::NotReadOnly { .. } => "not-read-only",
            ProxyToolError::ServerUnavailable { .. } => "server-unavailable",
            ProxyToolError::ServerError { .. } => "server-error",
        }
    }

    /// The same error for a tool that has one action more than this one.
    #[must_use]
    pub fn with_action(self, more: &'static str) -> ProxyToolError {
        let (is_missing, suggestion) = match self {
            ProxyToolError::MissingParameter {
                parameter: ProxyParameter::Action,
                ..
            } => (true, None),
            ProxyToolError::InvalidValue {
                parameter: ProxyParameter::Action,
                suggestion,
            } => (false, suggestion),
            other => return other,
        };
        ProxyToolError::NoSuchActionOr {
            more,
            is_missing,
            suggestion,
        }
    }

    /// The parameter that is wrong, if it is one of ours.
    pub fn parameter(&self) -> Option<ProxyParameter> {
        match self {
            ProxyToolError::MissingParameter { parameter, .. }
            | ProxyToolError::InvalidValue { parameter, .. }
            | ProxyToolError::ParameterNotAllowed { parameter, .. } => Some(*parameter),
            ProxyToolError::NoSuchActionOr { .. } | ProxyToolError::NotInBatch { .. } => {
                Some(ProxyParameter::Action)
            }
            ProxyToolError::OperationNotAnObject { .. } => Some(ProxyParameter::Operations),
            ProxyToolError::UnknownServer { .. } => Some(ProxyParameter::FilterServer),
            _ => None,
        }
    }
}

fn or_action(more: &str, is_missing: bool) -> String {
    let actions = ProxyAction::ALL.map(ProxyAction::as_str);
    let actions = enumerate(actions.into_iter().chain([more]), "or");
    match is_missing {
        true => format!("is required: {actions}"),
        false => format!("must be {actions}"),
    }
}

fn for_action(action: Option<ProxyAction>) -> String {
    action.map_or_else(String::new, |action| format!(" for action '{action}'"))
}

fn suggest_parameter(suggestion: Option<ProxyParameter>) -> String {
    match suggestion {
        Some(parameter) => format!("; did you mean '{parameter}'?"),
        None => format!(
            "; use {}",
            enumerate(
                ProxyParameter::ALL
                    .iter()
                    .map(|parameter| parameter.as_str()),
                "or"
            )
        ),
    }
}

fn suggest_value(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |value| format!("; did you mean '{value}'?"))
}

fn use_other(other: Option<&str>) -> String {
    match other {
        Some(tool) => format!("; call it with '{tool}'"),
        None => {
            ", and this tool only reads; it can be called where the hub exposes 'proxy'".to_owned()
        }
    }
}

fn suggest_names(near: &[String]) -> String {
    if near.is_empty() {
        return String::new();
    }
    format!(
        "; did you mean {}?",
        enumerate(near.iter().map(String::as_str), "or")
    )
}

fn capitalised(kind: CapabilityType) -> &'static str {
    match kind {
        CapabilityType::Tool => "Tool",
        CapabilityType::Resource => "Resource",
        CapabilityType::Prompt => "Prompt",
    }
}
