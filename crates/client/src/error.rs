//! Everything that can go wrong with a call.

use std::time::Duration;

use mcp_proxy_tool::ProxyToolError;
use rmcp::ServiceError;
use rmcp::model::CallToolResult;
use serde_json::Value;

use crate::response_info::ProxyResponseInfo;

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server cannot be reached or started, or refused the conversation.
    #[error("cannot connect to {target}: {reason}")]
    Connect {
        /// The URL, or the program.
        target: String,
        /// Why, with its causes.
        reason: String,
    },
    /// The server offers no `proxy` tool.
    #[error(
        "the server offers no proxy tool (looked for {name}); fall_back_to_native uses its own methods instead"
    )]
    NoProxyTool {
        /// The name that was looked for.
        name: String,
    },
    /// The server offers no `proxy-dispatch` tool.
    #[error("the server offers no proxy-dispatch tool")]
    NoDispatchTool,
    /// The call is not valid. Nothing was sent.
    #[error(transparent)]
    InvalidArguments(#[from] ProxyToolError),
    /// The proxy tool reports that the operation failed.
    #[error("{text}")]
    ToolFailed {
        /// The word by which programs tell errors apart, such as `not-found`, if the server sends one.
        code: Option<String>,
        /// The server's text.
        text: String,
        /// The whole result.
        result: Box<CallToolResult>,
    },
    /// The server answered with a JSON-RPC error.
    #[error("{message} ({code})")]
    Protocol {
        /// Its code.
        code: i64,
        /// Its text.
        message: String,
        /// What else it says.
        data: Option<Value>,
    },
    /// There was no answer in time. The server was told that the call is cancelled.
    #[error("no answer within {} s", .after.as_secs_f64())]
    Timeout {
        /// The time that was waited.
        after: Duration,
    },
    /// The answer is not what the call asked for.
    #[error("cannot decode {what}: {reason}")]
    Decode {
        /// What was expected.
        what: String,
        /// What is wrong.
        reason: String,
    },
    /// The conversation has ended.
    #[error("the connection to the server is closed{}", reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}")))]
    Closed {
        /// Why, if it is known.
        reason: Option<String>,
    },
}

impl ClientError {
    pub(crate) fn decode(what: impl Into<String>, reason: impl ToString) -> ClientError {
        ClientError::Decode {
            what: what.into(),
            reason: reason.to_string(),
        }
    }

    pub(crate) fn connect(target: &str, error: &(dyn std::error::Error + 'static)) -> ClientError {
        ClientError::Connect {
            target: target.to_owned(),
            reason: with_causes(error),
        }
    }

    /// The error that a failed result of the proxy tool stands for. A server's JSON-RPC error that the tool passed on
    /// is one again.
    pub(crate) fn from_failed_result(result: CallToolResult) -> ClientError {
        let info = ProxyResponseInfo::of_result(&result);
        let text = text_of(&result);
        let info = info.unwrap_or_default();
        match (info.error.as_deref(), info.server_code) {
            (Some("server-error"), Some(code)) => ClientError::Protocol {
                code,
                message: text,
                data: None,
            },
            _ => ClientError::ToolFailed {
                code: info.error,
                text,
                result: Box::new(result),
            },
        }
    }
}

impl From<ServiceError> for ClientError {
    fn from(error: ServiceError) -> ClientError {
        match error {
            ServiceError::McpError(error) => ClientError::Protocol {
                code: i64::from(error.code.0),
                message: error.message.into_owned(),
                data: error.data,
            },
            ServiceError::TransportClosed => ClientError::Closed { reason: None },
            ServiceError::TransportSend(error) => ClientError::Closed {
                reason: Some(with_causes(error.error.as_ref())),
            },
            ServiceError::Timeout { timeout } => ClientError::Timeout { after: timeout },
            error => ClientError::decode("the server's answer", error),
        }
    }
}

/// The texts of a result, one after the other.
fn text_of(result: &CallToolResult) -> String {
    let texts: Vec<&str> = result
        .content
        .iter()
        .filter_map(|item| Some(item.as_text()?.text.as_str()))
        .collect();
    if texts.is_empty() {
        return "the operation failed".to_owned();
    }
    texts.join("\n")
}

/// `error: cause: cause of the cause`, without repetitions.
pub(crate) fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}
