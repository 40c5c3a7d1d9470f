//! How a command fails: what to say, and the exit code.

use mcp_proxy_client::ClientError;

/// Why a command did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandFailure {
    /// The server says that it failed, or did not answer. The text is empty if the result was printed already.
    Server(String),
    /// The mistake was found before anything was sent.
    Mistake(String),
    /// The result arrived, and could not be written.
    Unwritten(String),
    /// There is no conversation with the server.
    Unreachable(String),
    /// Nobody reads the results any more, as with `| head`.
    OutputClosed,
    /// The user stopped it.
    Cancelled,
}

impl CommandFailure {
    /// The exit code of a command that ends with it.
    pub fn exit_code(&self) -> u8 {
        match self {
            CommandFailure::OutputClosed => 0,
            CommandFailure::Server(_) | CommandFailure::Unwritten(_) => 1,
            CommandFailure::Mistake(_) => 2,
            CommandFailure::Unreachable(_) => 3,
            CommandFailure::Cancelled => 130,
        }
    }

    /// What to say, which may be nothing.
    pub fn text(&self) -> &str {
        match self {
            CommandFailure::Server(text)
            | CommandFailure::Mistake(text)
            | CommandFailure::Unwritten(text)
            | CommandFailure::Unreachable(text) => text,
            CommandFailure::OutputClosed => "",
            CommandFailure::Cancelled => "cancelled",
        }
    }
}

impl From<ClientError> for CommandFailure {
    fn from(error: ClientError) -> CommandFailure {
        let text = error.with_causes();
        match error {
            ClientError::Connect { .. } | ClientError::Closed => CommandFailure::Unreachable(text),
            ClientError::InvalidArguments(_)
            | ClientError::NoProxyTool { .. }
            | ClientError::NoDispatchTool => CommandFailure::Mistake(text),
            _ => CommandFailure::Server(text),
        }
    }
}

/// A reason without what was said already: that there is no connection, and to which server.
pub(crate) fn without_repetition<'a>(reason: &'a str, server: &str) -> &'a str {
    let named = reason
        .strip_prefix("the server at ")
        .or(reason.strip_prefix("cannot connect to "));
    let rest = named.and_then(|named| named.split_once(": "));
    let reason = match rest {
        Some((name, rest)) if server.contains(name) => rest,
        _ => reason,
    };
    let inner = reason.strip_prefix("cannot connect (");
    inner
        .and_then(|inner| inner.strip_suffix(')'))
        .unwrap_or(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_named_once() {
        let server = "http://127.0.0.1:1/mcp";
        for (reason, rest) in [
            (
                "the server at http://127.0.0.1:1: cannot connect (Connection refused (os error 111))",
                "Connection refused (os error 111)",
            ),
            (
                "cannot connect to http://127.0.0.1:1/mcp: HTTP 401",
                "HTTP 401",
            ),
            (
                "the server at http://other: gone",
                "the server at http://other: gone",
            ),
            ("it ended", "it ended"),
        ] {
            assert_eq!(without_repetition(reason, server), rest);
        }
    }
}
