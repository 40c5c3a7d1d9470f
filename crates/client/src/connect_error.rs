//! Why there is no conversation with a server.

use std::error::Error;
use std::time::Duration;

use rmcp::service::ClientInitializeError;

use crate::transport::{WrittenError, written_error};

/// Why a client could not connect.
///
/// ```no_run
/// # async fn example() {
/// use mcp_proxy_client::{ClientError, ConnectError, ProxyClient};
///
/// match ProxyClient::connect("https://example.com/mcp").await {
///     Err(ClientError::Connect { source: ConnectError::Http { status: 401, .. }, .. }) => {
///         eprintln!("log in first");
///     }
///     Err(error) => eprintln!("{}", error.with_causes()),
///     Ok(_client) => {}
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The program cannot be started.
    #[error("the program cannot be started")]
    Start(#[source] std::io::Error),
    /// A header has a name or a value that HTTP does not allow.
    #[error("the header {name} is not valid")]
    Header {
        /// Its name.
        name: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Nothing answers at the URL, or the connection failed.
    #[error("the server cannot be reached")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    /// The server answers with an HTTP status that says no.
    #[error("HTTP {status}: {}", advice(*.status))]
    #[non_exhaustive]
    Http {
        /// The status.
        status: u16,
    },
    /// The URL is that of a web page.
    #[error("the answer is a web page (HTML) and not MCP; check the URL, whose path is often /mcp")]
    WebPage,
    /// The answer is of a type that MCP does not use.
    #[error(
        "the answer is {} and not MCP; check the URL, whose path is often /mcp",
        .content_type.as_deref().unwrap_or("of no stated type")
    )]
    #[non_exhaustive]
    NotMcp {
        /// The type that the answer has.
        content_type: Option<String>,
    },
    /// The server answers the opening with a JSON-RPC error.
    #[error("the server refuses: {message} ({code})")]
    #[non_exhaustive]
    Refused {
        /// Its code.
        code: i64,
        /// Its text.
        message: String,
    },
    /// The answer to the opening is not one.
    #[error("cannot decode the server's first answer: {reason}")]
    #[non_exhaustive]
    Decode {
        /// What is wrong.
        reason: String,
    },
    /// The server ended, or closed the connection, before it answered.
    #[error("the server closed the connection before it answered")]
    Closed,
    /// The server does not answer.
    #[error("no answer within {} s", .after.as_secs_f64())]
    #[non_exhaustive]
    NoAnswer {
        /// The time that was waited.
        after: Duration,
    },
    /// The library was built without the feature `http`.
    #[error("this program was built without the feature http")]
    NoHttp,
    /// Another failure of the opening.
    #[error("the conversation could not be opened")]
    Opening(#[source] Box<dyn Error + Send + Sync>),
}

/// A proxy says with this code that the server behind it asks for a sign-in.
const NEEDS_SIGN_IN: i32 = -31016;

impl From<ClientInitializeError> for ConnectError {
    fn from(error: ClientInitializeError) -> ConnectError {
        match error {
            ClientInitializeError::LegacyFallbackFailed { discover, .. }
                if needs_sign_in(&discover) =>
            {
                (*discover).into()
            }
            // Why a legacy server refuses the modern opening does not matter.
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => (*fallback).into(),
            ClientInitializeError::TransportError { error, .. } => of_transport(error.error),
            ClientInitializeError::JsonRpcError(error) => match written_error(&error) {
                Some(WrittenError::Undecodable { reason }) => ConnectError::Decode { reason },
                Some(WrittenError::WideCode { code, .. }) => ConnectError::Refused {
                    code,
                    message: error.message.into_owned(),
                },
                None => ConnectError::Refused {
                    code: i64::from(error.code.0),
                    message: error.message.into_owned(),
                },
            },
            ClientInitializeError::ExpectedInitResult(_) => ConnectError::Decode {
                reason: "its result is not that of an opening".to_owned(),
            },
            ClientInitializeError::ConnectionClosed(_) => ConnectError::Closed,
            error => ConnectError::Opening(error.into()),
        }
    }
}

/// Such a server may be a modern one, whatever it says to a legacy opening.
fn needs_sign_in(error: &ClientInitializeError) -> bool {
    matches!(error, ClientInitializeError::JsonRpcError(error) if error.code.0 == NEEDS_SIGN_IN)
}

#[cfg(feature = "http")]
fn of_transport(error: Box<dyn Error + Send + Sync>) -> ConnectError {
    use crate::transport::{HttpError, refused_status};
    use rmcp::transport::streamable_http_client::StreamableHttpError;

    let error = match error.downcast::<StreamableHttpError<HttpError>>() {
        Ok(error) => *error,
        Err(error) => return of_stream(error),
    };
    match (refused_status(&error), error) {
        (Some(status), _) => HttpError::Status(status).into(),
        (None, StreamableHttpError::Client(error)) => error.into(),
        (None, error) => ConnectError::Opening(error.into()),
    }
}

#[cfg(not(feature = "http"))]
fn of_transport(error: Box<dyn Error + Send + Sync>) -> ConnectError {
    of_stream(error)
}

/// A server that has ended takes no messages.
fn of_stream(error: Box<dyn Error + Send + Sync>) -> ConnectError {
    match error.downcast::<std::io::Error>() {
        Ok(_) => ConnectError::Closed,
        Err(error) => ConnectError::Opening(error),
    }
}

/// What a user can do about a status.
fn advice(status: u16) -> &'static str {
    match status {
        401 => {
            "authentication needed; send a token with a header, such as Authorization: Bearer TOKEN"
        }
        403 => {
            "the server refuses this client or its token; send another token with a header, such as Authorization: Bearer TOKEN"
        }
        404 => "there is no MCP server at this path; it is often /mcp",
        405 => {
            "this path does not take POST; check the URL, whose path is often /mcp. An older server may speak HTTP+SSE only"
        }
        407 => "a network proxy on the way wants credentials",
        429 => "the server gets too many requests; try again later",
        500..=599 => "the server, or a gateway in front of it, failed; try again later",
        _ => "the server refused the request",
    }
}

#[cfg(test)]
mod tests {
    use rmcp::ErrorData;
    use rmcp::model::ErrorCode;

    use super::*;

    #[test]
    fn a_sign_in_that_is_needed_is_not_lost_in_the_legacy_opening() {
        let refused = |code| {
            let error = ErrorData::new(ErrorCode(code), "refused", None);
            Box::new(ClientInitializeError::JsonRpcError(error))
        };
        for (discover, fallback, told) in [
            (NEEDS_SIGN_IN, -32020, i64::from(NEEDS_SIGN_IN)),
            (-32601, -32000, -32000),
        ] {
            let error = ClientInitializeError::LegacyFallbackFailed {
                discover: refused(discover),
                fallback: refused(fallback),
            };
            let ConnectError::Refused { code, .. } = ConnectError::from(error) else {
                panic!("it was refused");
            };
            assert_eq!(code, told);
        }
    }
}
