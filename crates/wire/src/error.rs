//! JSON-RPC error codes, ours and the protocol's, and the error response that carries one.
//!
//! Revision 2026-07-28 owns -32768…-32000, so the proxy's own codes lie outside that range. [`ErrorCode::OWN`] is
//! the one list of them; documentation and help are made from it.

use std::fmt;

use crate::json::push_string;
use crate::{Id, Message};

/// The `code` of a JSON-RPC error.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct ErrorCode(pub i64);

/// One of the proxy's own codes, as documentation shows it.
#[derive(Clone, Copy, Debug)]
pub struct ProxyErrorCode {
    /// The code.
    pub code: ErrorCode,
    /// Its name.
    pub name: &'static str,
    /// What it means to the peer that receives it.
    pub meaning: &'static str,
}

impl ErrorCode {
    /// The bytes were not JSON.
    pub const PARSE_ERROR: ErrorCode = ErrorCode(-32700);
    /// JSON, but not a JSON-RPC request.
    pub const INVALID_REQUEST: ErrorCode = ErrorCode(-32600);
    /// The method does not exist.
    pub const METHOD_NOT_FOUND: ErrorCode = ErrorCode(-32601);
    /// The parameters are wrong.
    pub const INVALID_PARAMS: ErrorCode = ErrorCode(-32602);
    /// Something failed inside.
    pub const INTERNAL: ErrorCode = ErrorCode(-32603);
    /// HTTP headers and body disagree (2026-07-28).
    pub const HEADER_MISMATCH: ErrorCode = ErrorCode(-32020);
    /// The request needs a capability that the client did not declare (2026-07-28).
    pub const MISSING_CAPABILITY: ErrorCode = ErrorCode(-32021);
    /// The server does not speak that revision (2026-07-28).
    pub const UNSUPPORTED_VERSION: ErrorCode = ErrorCode(-32022);

    /// The server could not be started or reached.
    pub const SERVER_UNAVAILABLE: ErrorCode = ErrorCode(-31001);
    /// The server ended with the request open.
    pub const SERVER_EXITED: ErrorCode = ErrorCode(-31002);
    /// The server answered with an HTTP failure and no JSON-RPC body.
    pub const SERVER_HTTP: ErrorCode = ErrorCode(-31003);
    /// The message cannot be carried on the other side's transport.
    pub const CANNOT_CARRY: ErrorCode = ErrorCode(-31004);
    /// The message is larger than the proxy was told to carry.
    pub const TOO_LARGE: ErrorCode = ErrorCode(-31005);
    /// No such session, or it has ended.
    pub const SESSION_NOT_FOUND: ErrorCode = ErrorCode(-31006);
    /// As many sessions are open as the proxy was told to allow.
    pub const SESSION_LIMIT: ErrorCode = ErrorCode(-31007);
    /// The other side stopped reading or writing and was given up.
    pub const PEER_STALLED: ErrorCode = ErrorCode(-31008);
    /// The proxy's own bearer token is missing or wrong.
    pub const UNAUTHORIZED: ErrorCode = ErrorCode(-31009);
    /// The Host or Origin header names a place that the proxy does not serve.
    pub const FORBIDDEN_HOST: ErrorCode = ErrorCode(-31010);
    /// The proxy cannot forward this HTTP request.
    pub const BAD_REQUEST: ErrorCode = ErrorCode(-31011);

    /// The message was held at the proxy and not forwarded.
    pub const WITHHELD: ErrorCode = ErrorCode(-31012);

    /// A recording that plays the server has no answer to the request.
    pub const NOT_RECORDED: ErrorCode = ErrorCode(-31013);

    /// The proxy was told to stop when it cannot write its record, and it cannot.
    pub const RECORD_FAILED: ErrorCode = ErrorCode(-31014);

    /// Too many bytes of messages wait already.
    pub const MEMORY_BUDGET: ErrorCode = ErrorCode(-31015);

    /// The server wants to know who asks, and nobody has signed in to it, or not for enough.
    pub const NEEDS_SIGN_IN: ErrorCode = ErrorCode(-31016);

    /// Whether a code is one of the proxy's own.
    pub fn is_own(code: i64) -> bool {
        ErrorCode::OWN.iter().any(|own| own.code.0 == code)
    }

    /// Every code of the proxy's own.
    pub const OWN: &'static [ProxyErrorCode] = &[
        own(
            Self::SERVER_UNAVAILABLE,
            "SERVER_UNAVAILABLE",
            "the server could not be started or reached",
        ),
        own(
            Self::SERVER_EXITED,
            "SERVER_EXITED",
            "the server ended while the request was open",
        ),
        own(
            Self::SERVER_HTTP,
            "SERVER_HTTP",
            "the server answered with an HTTP failure and no JSON-RPC body",
        ),
        own(
            Self::CANNOT_CARRY,
            "CANNOT_CARRY",
            "the message cannot be carried on the other side's transport",
        ),
        own(
            Self::TOO_LARGE,
            "TOO_LARGE",
            "the message is larger than --max-message",
        ),
        own(
            Self::SESSION_NOT_FOUND,
            "SESSION_NOT_FOUND",
            "the session does not exist or has ended",
        ),
        own(
            Self::SESSION_LIMIT,
            "SESSION_LIMIT",
            "--max-sessions sessions are open already",
        ),
        own(
            Self::PEER_STALLED,
            "PEER_STALLED",
            "the other side stopped reading or writing and was given up",
        ),
        own(
            Self::UNAUTHORIZED,
            "UNAUTHORIZED",
            "the proxy's bearer token is missing or wrong",
        ),
        own(
            Self::FORBIDDEN_HOST,
            "FORBIDDEN_HOST",
            "the Host or Origin header names a place the proxy does not serve",
        ),
        own(
            Self::BAD_REQUEST,
            "BAD_REQUEST",
            "the proxy cannot forward this HTTP request",
        ),
        own(
            Self::WITHHELD,
            "WITHHELD",
            "the message was held by the proxy and not released",
        ),
        own(
            Self::NOT_RECORDED,
            "NOT_RECORDED",
            "the recording that plays the server has no answer to the request",
        ),
        own(
            Self::RECORD_FAILED,
            "RECORD_FAILED",
            "the proxy cannot write its record and was told to stop in that case",
        ),
        own(
            Self::MEMORY_BUDGET,
            "MEMORY_BUDGET",
            "waiting messages have used up --memory-budget",
        ),
        own(
            Self::NEEDS_SIGN_IN,
            "NEEDS_SIGN_IN",
            "the server asks for a sign-in, or for one with more scopes",
        ),
    ];

    /// The number itself.
    pub const fn get(self) -> i64 {
        self.0
    }
}

const fn own(code: ErrorCode, name: &'static str, meaning: &'static str) -> ProxyErrorCode {
    ProxyErrorCode {
        code,
        name,
        meaning,
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A JSON-RPC error response in one line. Without an id it says `null`, as JSON-RPC asks when the id is unknown.
/// `data` is raw JSON and is put in as it stands.
pub fn error_response(
    id: Option<&Id>,
    code: ErrorCode,
    message: &str,
    data: Option<&str>,
) -> Message {
    let mut text = Vec::with_capacity(96 + message.len() + data.map_or(0, str::len));
    text.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    text.extend_from_slice(id.map_or(b"null", Id::token));
    text.extend_from_slice(br#","error":{"code":"#);
    text.extend_from_slice(code.to_string().as_bytes());
    text.extend_from_slice(br#","message":"#);
    push_string(&mut text, message);
    if let Some(data) = data {
        text.extend_from_slice(br#","data":"#);
        text.extend_from_slice(data.as_bytes());
    }
    text.extend_from_slice(b"}}");
    Message::parse(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn own_codes_leave_the_range_of_the_protocol_alone_and_differ() {
        let mut seen = Vec::new();
        for own in ErrorCode::OWN {
            assert!(
                !(-32768..=-32000).contains(&own.code.get()),
                "{} lies in the reserved range",
                own.name
            );
            assert!(!seen.contains(&own.code), "{} is used twice", own.code);
            seen.push(own.code);
        }
    }

    #[test]
    fn an_error_response_is_one_line_of_json() {
        let id = Id::from_token(b"\"a\\n\"");
        let message = error_response(
            Some(&id),
            ErrorCode::TOO_LARGE,
            "too \"large\"\n\u{1}",
            Some("[1]"),
        );
        let expected = br#"{"jsonrpc":"2.0","id":"a\n","error":{"code":-31005,"message":"too \"large\"\n\u0001","data":[1]}}"#;
        assert_eq!(message.raw().as_ref(), expected.as_slice());
        assert_eq!(message.kind(), Kind::Error);
        assert_eq!(message.error_code(), Some(-31005));
        assert_eq!(message.id(), Some(id));
        assert!(message.fits_in_json_line());
        assert!(
            error_response(None, ErrorCode::INTERNAL, "", None)
                .id()
                .is_some_and(|id| id.is_null())
        );
    }
}
