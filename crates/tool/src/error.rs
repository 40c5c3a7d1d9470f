//! Everything that can go wrong with a call of the tool, and how the caller gets to know.
//!
//! Errors are tool results, not JSON-RPC errors: a model sees the text and can correct its call. The texts name the
//! parameter and what is allowed. They repeat no values but names, and those cut short.

use bytes::Bytes;
use mcp_proxy_wire::json_string;

use super::facts::Facts;
use super::{ArgumentError, CapabilityType, ProxyParameter, ToolWord};
use crate::wording::{enumerate, shorten};

/// Why an operation has no result.
///
/// ```
/// use mcp_proxy_tool::{ProxyToolError, ProxyToolOptions, parse_arguments};
///
/// let error = parse_arguments(Some(&"[]".into()), &ProxyToolOptions::default(), &[]).unwrap_err();
/// assert_eq!(ProxyToolError::from(error).code(), "invalid-arguments");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyToolError {
    /// The arguments do not say what to do.
    #[error(transparent)]
    Arguments(#[from] ArgumentError),
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
        facts.text("parameter", parameter);
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
            ProxyToolError::Arguments(error) => error.code,
            ProxyToolError::NotFound { .. } => "not-found",
            ProxyToolError::UnknownServer { .. } => "unknown-server",
            ProxyToolError::Ambiguous { .. } => "ambiguous",
            ProxyToolError::UnfilledTemplate { .. } => "unfilled-template",
            ProxyToolError::NotReadOnly { .. } => "not-read-only",
            ProxyToolError::ServerUnavailable { .. } => "server-unavailable",
            ProxyToolError::ServerError { .. } => "server-error",
        }
    }

    /// The name of the parameter that is wrong, if it is one of ours.
    pub fn parameter(&self) -> Option<&'static str> {
        match self {
            ProxyToolError::Arguments(error) => error.parameter,
            ProxyToolError::UnknownServer { .. } => Some(ProxyParameter::FilterServer.as_str()),
            _ => None,
        }
    }
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
