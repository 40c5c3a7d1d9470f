//! Direct mode: nobody needs a token, so a socket only has to show which of the two it is.
//!
//! An extension that speaks to a program on its own machine sends `{"type":"handshake","browser":…}` by itself, or answers
//! `authenticate` without a token or with an error, or says nothing at all. A client may leave its handshake out.

use mcp_proxy_wire::{Kind, Message};

use super::{
    AuthenticationStep, Credentials, MAX_NAME, SocketAuthentication, SocketPath, SocketRole,
    extension_credentials, is_answer_to_first, is_handshake,
};
use crate::messages;
use crate::outbox::SocketOutput;
use crate::settings::RelayAccess;

/// The `type` of the message with which an extension introduces itself.
const HELLO: &str = "handshake";

impl SocketAuthentication {
    /// What a message means in direct mode, if it means something else there.
    pub(super) fn direct_message(&mut self, message: &Message) -> Option<AuthenticationStep> {
        if self.path != SocketPath::Client {
            if is_answer_to_first(message) {
                return Some(AuthenticationStep::Check(
                    self.direct_extension(Some(message)),
                ));
            }
            if let Some(browser) = introduced_browser(message) {
                self.browser = Some(browser);
                // The answer to `authenticate` may still say more.
                return Some(AuthenticationStep::Wait(SocketOutput::default()));
            }
        }
        let is_command = message.kind() == Kind::Request && !is_handshake(message);
        (is_command && self.path != SocketPath::Extension)
            .then(|| AuthenticationStep::Begin(direct_peer(SocketRole::Client)))
    }

    /// Who a socket is in direct mode that has said nothing more for a while, if that is known.
    pub fn silent_peer(&self) -> Option<Credentials> {
        match self.path {
            _ if self.access == RelayAccess::Tokens => None,
            SocketPath::Client => Some(direct_peer(SocketRole::Client)),
            SocketPath::Extension => Some(self.direct_extension(None)),
            SocketPath::Any if self.browser.is_some() => Some(self.direct_extension(None)),
            SocketPath::Any => None,
        }
    }

    fn direct_extension(&self, answer: Option<&Message>) -> Credentials {
        // An error says that the extension has no token.
        let answer = answer.and_then(|answer| extension_credentials(answer, self.access).ok());
        let mut shown = answer.unwrap_or_else(|| direct_peer(SocketRole::Extension));
        shown.name = shown.name.or_else(|| self.browser.clone());
        shown
    }
}

/// What an extension says about itself in direct mode, if a message does.
pub(crate) fn late_introduction(message: &Message) -> Option<Credentials> {
    if is_answer_to_first(message) {
        let shown = extension_credentials(message, RelayAccess::Direct).ok()?;
        return (shown.name.is_some() || shown.client_id.is_some()).then_some(shown);
    }
    let mut shown = direct_peer(SocketRole::Extension);
    shown.name = Some(introduced_browser(message)?);
    Some(shown)
}

fn direct_peer(role: SocketRole) -> Credentials {
    Credentials {
        role,
        token: String::new(),
        name: None,
        client_id: None,
        has_unusable_client_id: false,
        id_mode: None,
        request: None,
    }
}

/// The browser of an extension that introduces itself.
fn introduced_browser(message: &Message) -> Option<String> {
    let root = Some(message.root()).filter(|_| message.kind() == Kind::Other)?;
    let text = |name| messages::text_member(message, Some(root), [name, name]).ok()?;
    let is_hello = text("type").as_deref() == Some(HELLO);
    let browser = is_hello.then(|| text("browser").unwrap_or_default())?;
    Some(browser.chars().take(MAX_NAME).collect())
}
