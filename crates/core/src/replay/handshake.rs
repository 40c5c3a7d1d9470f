//! How a session is opened, so that a server listens to one message on it: what of a handshake it takes, and which.

use mcp_proxy_wire::Message;
use mcp_proxy_wire::revision::request_era;

/// The first request of a legacy session.
pub(crate) const INITIALIZE: &str = "initialize";
/// And what follows its answer.
pub(crate) const INITIALIZED: &str = "notifications/initialized";

/// The opening of a client that was not seen to open.
const STANDARD: [&str; 2] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"mcp-proxy","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
];

/// A client's handshake, or where it is found: the last `initialize`, and the first `initialized` that follows.
#[derive(Clone, Debug)]
pub(crate) struct Handshake<T> {
    initialize: Option<T>,
    initialized: Option<T>,
}

impl<T> Default for Handshake<T> {
    fn default() -> Self {
        Handshake {
            initialize: None,
            initialized: None,
        }
    }
}

impl<T> Handshake<T> {
    /// Looks at the next message of the client. All that are not of a handshake are passed over.
    pub(crate) fn observe(&mut self, method: Option<&str>, place: impl FnOnce() -> T) {
        match method {
            Some(INITIALIZE) => {
                self.initialize = Some(place());
                self.initialized = None;
            }
            Some(INITIALIZED) if self.initialize.is_some() && self.initialized.is_none() => {
                self.initialized = Some(place());
            }
            _ => {}
        }
    }

    /// All of it, in order.
    pub(crate) fn all(self) -> impl Iterator<Item = T> {
        self.initialize.into_iter().chain(self.initialized)
    }
}

/// What is said before a message when the client's own opening is not known.
pub(crate) fn standard_handshake(message: &Message) -> Vec<Message> {
    let needed = STANDARD.iter().take(needed_handshake_messages(message));
    needed.map(|text| Message::parse(*text)).collect()
}

/// How much of a handshake a message needs: a modern one nothing, nor does the handshake's own beginning.
pub(crate) fn needed_handshake_messages(message: &Message) -> usize {
    match message.method().as_deref() {
        _ if request_era(message).is_some() => 0,
        Some(INITIALIZED) => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_said_after_what_it_needs() {
        let mut opening = Handshake::default();
        let said = [
            "ping",
            INITIALIZED,
            INITIALIZE,
            "ping",
            INITIALIZED,
            INITIALIZED,
        ];
        for (place, method) in said.into_iter().enumerate() {
            opening.observe(Some(method), || place);
        }
        let before = |text: &'static str| {
            let message = Message::parse(text);
            let known: Vec<usize> = opening
                .clone()
                .all()
                .take(needed_handshake_messages(&message))
                .collect();
            assert_eq!(standard_handshake(&message).len(), known.len(), "{text}");
            known
        };
        assert_eq!(before(r#"{"id":1,"method":"tools/list"}"#), [2, 4]);
        assert_eq!(before(r#"{"method":"notifications/initialized"}"#), [2]);
        assert!(before(r#"{"id":1,"method":"initialize"}"#).is_empty());
        let modern = r#"{"id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        assert!(before(modern).is_empty());
    }
}
