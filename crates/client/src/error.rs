//! Everything that can go wrong with a call.

use std::time::Duration;

use mcp_proxy_tool::ProxyToolError;
use rmcp::ServiceError;
use rmcp::model::{CallToolResult, ErrorData};
use serde_json::Value;

use crate::connect_error::ConnectError;
use crate::response_info::ProxyResponseInfo;
use crate::transport::{WrittenError, written_error};

/// Why a call has no result.
///
/// `Display` says what failed; the causes are [sources](std::error::Error::source), and
/// [`with_causes`](ClientError::with_causes) shows all of it.
///
/// ```no_run
/// # async fn example(client: mcp_proxy_client::ProxyClient) {
/// use mcp_proxy_client::ClientError;
///
/// match client.call_tool("add", ()).await {
///     Ok(result) => println!("{:?}", result.content),
///     Err(ClientError::Protocol { code, message, .. }) => eprintln!("{code}: {message}"),
///     Err(ClientError::Timeout { after, .. }) => eprintln!("nothing for {after:?}"),
///     Err(error) => eprintln!("{}", error.with_causes()),
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server cannot be reached or started, or refused the conversation.
    #[error("cannot connect to {target}")]
    #[non_exhaustive]
    Connect {
        /// The URL, or the program.
        target: String,
        /// Why.
        source: ConnectError,
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
    /// The request could not be sent, or its answer was lost on the way. The conversation may still be open.
    #[error("the request failed")]
    Transport(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The conversation has ended.
    #[error("the connection to the server is closed")]
    Closed,
}

impl ClientError {
    /// The error and its causes on one line, for people. `Display` shows the error alone.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use mcp_proxy_client::ProxyClient;
    ///
    /// let error = ProxyClient::connect("no-such-program").await.unwrap_err();
    /// let text = error.with_causes();
    /// assert!(text.starts_with("cannot connect to no-such-program: the program cannot be started: "), "{text}");
    /// # }
    /// ```
    pub fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let next = error.to_string();
            // Errors of other crates often repeat their cause.
            if !text.ends_with(&next) {
                text = format!("{text}: {next}");
            }
            cause = error.source();
        }
        text
    }

    pub(crate) fn decode(what: impl Into<String>, reason: impl ToString) -> ClientError {
        ClientError::Decode {
            what: what.into(),
            reason: reason.to_string(),
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
            ServiceError::McpError(error) => of_json_rpc_error(error),
            ServiceError::TransportClosed => ClientError::Closed,
            ServiceError::TransportSend(error) => of_transport(error.error),
            ServiceError::Timeout { timeout } => ClientError::Timeout { after: timeout },
            error => ClientError::decode("the server's answer", error),
        }
    }
}

fn of_json_rpc_error(error: ErrorData) -> ClientError {
    let message = error.message.clone().into_owned();
    match written_error(&error) {
        Some(WrittenError::Undecodable { reason }) => {
            ClientError::decode("the server's answer", reason)
        }
        Some(WrittenError::WideCode { code, data }) => ClientError::Protocol {
            code,
            message,
            data,
        },
        None => ClientError::Protocol {
            code: i64::from(error.code.0),
            message,
            data: error.data,
        },
    }
}

/// Pipes fail when the server has ended; one HTTP request can fail without the next.
fn of_transport(error: Box<dyn std::error::Error + Send + Sync>) -> ClientError {
    if error.is::<std::io::Error>() {
        return ClientError::Closed;
    }
    #[cfg(feature = "http")]
    return match crate::transport::http_cause(error) {
        Some(error) => ClientError::Transport(error),
        None => ClientError::Closed,
    };
    #[cfg(not(feature = "http"))]
    ClientError::Transport(error)
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
