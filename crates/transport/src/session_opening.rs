//! How a client opened its session with a server, so that the proxy can open another one like it.
//!
//! A server that was restarted has forgotten its sessions. Its client has not, and over stdio it has no way to hear of it.

use mcp_proxy_wire::{Field, Message};

/// Subscriptions that are remembered.
const SUBSCRIPTIONS_MAX: usize = 1024;

/// What happens when a server has forgotten a session, or has closed the stream that was one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionLoss {
    /// The proxy opens another session as the client opened the first.
    Reopen,
    /// The link ends. Its user opens another one.
    EndLink,
}

/// What a link to an HTTP server is made with.
#[derive(Clone, Copy, Debug)]
pub struct RemoteLinkOptions {
    /// The largest message.
    pub max: usize,
    /// What happens when the session is lost.
    pub on_loss: SessionLoss,
}

/// The messages of a client that made its session what it is.
#[derive(Default)]
pub(crate) struct SessionOpening {
    initialize: Option<Message>,
    initialized: Option<Message>,
    log_level: Option<Message>,
    /// By the resource's URI.
    subscriptions: Vec<(String, Message)>,
    /// Ids of ours that were used.
    ids: u64,
}

impl SessionOpening {
    /// Whether a message of this method is one that [`SessionOpening::observe`] looks at.
    pub(crate) fn needs(method: Option<&str>) -> bool {
        matches!(
            method,
            Some(
                "initialize"
                    | "notifications/initialized"
                    | "logging/setLevel"
                    | "resources/subscribe"
                    | "resources/unsubscribe"
            )
        )
    }

    /// Looks at the next message of the client.
    pub(crate) fn observe(&mut self, method: Option<&str>, message: &Message) {
        match method {
            Some("initialize") => {
                *self = SessionOpening {
                    initialize: Some(copy(message)),
                    ids: self.ids,
                    ..SessionOpening::default()
                };
            }
            Some("notifications/initialized") => self.initialized = Some(copy(message)),
            Some("logging/setLevel") => self.log_level = Some(copy(message)),
            Some("resources/subscribe") => {
                if let Some(uri) = resource(message) {
                    self.subscriptions.retain(|(known, _)| *known != uri);
                    if self.subscriptions.len() < SUBSCRIPTIONS_MAX {
                        self.subscriptions.push((uri, copy(message)));
                    }
                }
            }
            Some("resources/unsubscribe") => {
                let uri = resource(message);
                self.subscriptions
                    .retain(|(known, _)| Some(known) != uri.as_ref());
            }
            _ => {}
        }
    }

    /// Whether the client has opened a session.
    pub(crate) fn is_complete(&self) -> bool {
        self.initialize.is_some() && self.initialized.is_some()
    }

    /// The client's `initialize`, under an id of ours.
    pub(crate) fn initialize(&mut self) -> Option<Message> {
        let message = self.initialize.clone()?;
        self.under_own_id(&message)
    }

    /// The client's `notifications/initialized`.
    pub(crate) fn initialized(&self) -> Option<Message> {
        self.initialized.clone()
    }

    /// The requests that give a new session the log level and the subscriptions of the old one, under ids of ours.
    pub(crate) fn settings(&mut self) -> Vec<Message> {
        let subscriptions = self.subscriptions.iter().map(|(_, message)| message);
        let messages: Vec<Message> = self
            .log_level
            .iter()
            .chain(subscriptions)
            .cloned()
            .collect();
        messages
            .iter()
            .filter_map(|message| self.under_own_id(message))
            .collect()
    }

    fn under_own_id(&mut self, message: &Message) -> Option<Message> {
        self.ids += 1;
        let token = format!("\"mcp-proxy-{}\"", self.ids);
        let span = message.span(Field::Id)?;
        message.splice(&[(span, token.as_bytes())]).ok()
    }
}

/// Whether an answer to `initialize` opens a session like the one that was lost.
pub(crate) fn check_reopened(answer: &Message, agreed: Option<&str>) -> Result<(), String> {
    let Some(version) = answer.text(Field::ResultField("protocolVersion")) else {
        return Err("the server refused `initialize`".to_owned());
    };
    match agreed {
        Some(agreed) if agreed != version => Err(format!(
            "the server now speaks revision {version}, and the client {agreed}"
        )),
        _ => Ok(()),
    }
}

/// A message may lie in a large buffer, which would be kept with it.
fn copy(message: &Message) -> Message {
    Message::parse(message.raw().to_vec())
}

fn resource(message: &Message) -> Option<String> {
    let uri = message.member(message.params()?, "uri")?;
    message.text_at(uri).map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(messages: &[&'static str]) -> SessionOpening {
        let mut opening = SessionOpening::default();
        for text in messages {
            let message = Message::parse(*text);
            opening.observe(message.method().as_deref(), &message);
        }
        opening
    }

    fn texts(messages: Vec<Message>) -> Vec<String> {
        let texts = messages.iter().map(|it| it.raw().to_vec());
        texts.map(|text| String::from_utf8(text).unwrap()).collect()
    }

    #[test]
    fn a_session_is_opened_again_as_the_client_left_it() {
        let mut opening = observed(&[
            r#"{"id":1,"method":"initialize","params":{"x":1}}"#,
            r#"{"method":"notifications/initialized"}"#,
            r#"{"id":2,"method":"logging/setLevel","params":{"level":"info"}}"#,
            r#"{"id":3,"method":"logging/setLevel","params":{"level":"debug"}}"#,
            r#"{"id":4,"method":"resources/subscribe","params":{"uri":"a"}}"#,
            r#"{"id":5,"method":"resources/subscribe","params":{"uri":"b"}}"#,
            r#"{"id":6,"method":"resources/unsubscribe","params":{"uri":"a"}}"#,
        ]);
        assert!(opening.is_complete());
        let initialize = opening.initialize().into_iter().collect();
        assert_eq!(
            texts(initialize),
            [r#"{"id":"mcp-proxy-1","method":"initialize","params":{"x":1}}"#]
        );
        assert_eq!(
            texts(opening.settings()),
            [
                r#"{"id":"mcp-proxy-2","method":"logging/setLevel","params":{"level":"debug"}}"#,
                r#"{"id":"mcp-proxy-3","method":"resources/subscribe","params":{"uri":"b"}}"#,
            ]
        );
    }

    #[test]
    fn a_session_that_was_never_open_is_not_opened_again() {
        assert!(!observed(&[r#"{"id":1,"method":"initialize"}"#]).is_complete());
        assert!(!observed(&[r#"{"method":"notifications/initialized"}"#]).is_complete());
    }

    #[test]
    fn another_revision_is_another_session() {
        let answer = Message::parse(r#"{"id":1,"result":{"protocolVersion":"2025-06-18"}}"#);
        assert!(check_reopened(&answer, Some("2025-06-18")).is_ok());
        assert!(check_reopened(&answer, None).is_ok());
        assert!(check_reopened(&answer, Some("2025-11-25")).is_err());
        let refusal = Message::parse(r#"{"id":1,"error":{"code":-32600,"message":"no"}}"#);
        assert!(check_reopened(&refusal, None).is_err());
    }
}
