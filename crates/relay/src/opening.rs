//! A socket before its user is known: who is it, and what does it show?

use bytes::Bytes;
use mcp_proxy_wire::{Field, Id, Kind, Message};

use crate::fault::RelayFault;
use crate::ids::is_usable_client_id;
use crate::messages;
use crate::outbox::{RelayClose, SocketOutput};

/// The longest name of a browser or client that is kept.
const MAX_NAME: usize = 128;

/// The path that a socket was opened at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketPath {
    /// `/extension`
    Extension,
    /// `/mcp`
    Client,
    /// `/`: tokens may carry one URL for both.
    Any,
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketRole {
    /// An MCP client.
    Client,
    /// A browser extension.
    Extension,
}

/// What a peer shows to prove who it is.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Who it says it is.
    pub role: SocketRole,
    /// The access token.
    pub token: String,
    /// What a browser or client calls itself.
    pub name: Option<String>,
    /// The id that it keeps across connections.
    pub client_id: Option<String>,
    /// The id of a client's handshake, if it has one.
    pub request: Option<Id>,
}

/// A socket before it is authenticated.
#[derive(Debug)]
pub struct Opening {
    path: SocketPath,
}

/// What to do after a message of such a socket.
#[derive(Debug, PartialEq, Eq)]
pub enum OpeningStep {
    /// Write this, which may be nothing, and wait.
    Wait(SocketOutput),
    /// Check these.
    Check(Credentials),
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the token: this ends up in logs.
        f.debug_struct("Credentials")
            .field("role", &self.role)
            .field("name", &self.name)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

impl Opening {
    /// A new socket at a path.
    pub fn new(path: SocketPath) -> Opening {
        Opening { path }
    }

    /// What the relay says first: it asks extensions who they are. A client ignores the question.
    pub fn first_message(&self) -> Option<Bytes> {
        match self.path {
            SocketPath::Client => None,
            SocketPath::Extension | SocketPath::Any => Some(authenticate(1)),
        }
    }

    /// A message of the peer.
    pub fn message(&mut self, message: &Message) -> OpeningStep {
        if self.path != SocketPath::Client && is_answer_to_first(message) {
            return match extension_credentials(message) {
                Ok(credentials) => OpeningStep::Check(credentials),
                Err(_) => OpeningStep::Wait(closed(RelayClose::Unauthorized("no credentials"))),
            };
        }
        if self.path == SocketPath::Extension {
            // An extension is passive. What it says before it is known has no meaning.
            return OpeningStep::Wait(SocketOutput::default());
        }
        match message.kind() {
            _ if is_handshake(message) => match client_credentials(message) {
                Ok(credentials) => OpeningStep::Check(credentials),
                Err(fault) => OpeningStep::Wait(answered(message, &fault)),
            },
            Kind::Request => OpeningStep::Wait(answered(message, &RelayFault::NotAuthenticated)),
            Kind::Malformed => OpeningStep::Wait(answered(message, &RelayFault::NotJson)),
            Kind::Batch => {
                let fault = RelayFault::InvalidRequest("batches are not supported");
                OpeningStep::Wait(answered(message, &fault))
            }
            _ => OpeningStep::Wait(SocketOutput::default()),
        }
    }
}

impl Credentials {
    /// What a peer gets whose credentials are not good. An extension is closed without a word: it does not expect an answer.
    pub fn refusal(&self, why: &'static str) -> SocketOutput {
        let mut output = closed(RelayClose::Unauthorized(why));
        if self.role == SocketRole::Client {
            let fault = RelayFault::AuthenticationFailed(why.to_owned());
            output.messages.push(fault.answer(self.request.as_ref()));
        }
        output
    }
}

/// Whether a message is a client's handshake.
pub(crate) fn is_handshake(message: &Message) -> bool {
    matches!(message.kind(), Kind::Request | Kind::Notification)
        && message.method().as_deref() == Some(messages::HANDSHAKE)
}

/// The handshake of a client that may be connected already.
pub(crate) fn client_credentials(message: &Message) -> Result<Credentials, RelayFault> {
    let request = match message.kind() {
        Kind::Notification => None,
        _ => Some(messages::client_id_of(message)?),
    };
    credentials(SocketRole::Client, message, message.params(), request)
}

/// An extension's answer to `authenticate`.
pub(crate) fn extension_credentials(message: &Message) -> Result<Credentials, RelayFault> {
    credentials(SocketRole::Extension, message, message.result(), None)
}

fn credentials(
    role: SocketRole,
    message: &Message,
    object: Option<mcp_proxy_wire::Span>,
    request: Option<Id>,
) -> Result<Credentials, RelayFault> {
    let text = |spellings| messages::text_member(message, object, spellings);
    let token = text(["access_token", "accessToken"])
        .map_err(|()| RelayFault::InvalidParams("accessToken must be a string"))?
        .filter(|token| !token.is_empty())
        .ok_or(RelayFault::InvalidParams("accessToken is missing"))?;
    let name = text(["name", "name"]).unwrap_or_default();
    let client_id = text(["client_id", "clientId"]).unwrap_or_default();
    Ok(Credentials {
        role,
        token,
        name: name.map(|name| name.chars().take(MAX_NAME).collect()),
        client_id: client_id.filter(|id| is_usable_client_id(id)),
        request,
    })
}

fn is_answer_to_first(message: &Message) -> bool {
    matches!(message.kind(), Kind::Response | Kind::Error)
        && message.span(Field::Id).is_some()
        && message.id().map(|id| id.key()) == Some(messages::relay_id(1).key())
}

/// The relay's question who an extension is.
pub(crate) fn authenticate(number: u64) -> Bytes {
    let id = messages::relay_id(number);
    messages::request(&id, messages::AUTHENTICATE, Some(b"{}"))
}

fn closed(close: RelayClose) -> SocketOutput {
    SocketOutput {
        close: Some(close),
        ..SocketOutput::default()
    }
}

fn answered(message: &Message, fault: &RelayFault) -> SocketOutput {
    SocketOutput {
        messages: vec![fault.answer(message.id().as_ref())],
        ..SocketOutput::default()
    }
}
