//! A socket before its user is known: who is it, and what does it show?

mod direct;

use std::borrow::Cow;

use mcp_proxy_wire::{Field, Id, Kind, Message};

pub(crate) use self::direct::late_introduction;
use crate::fault::RelayFault;
use crate::ids::is_usable_client_id;
use crate::messages;
use crate::outbox::{RelayClose, SocketOutput};
use crate::settings::{CommandIdMode, RelayAccess};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
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
    /// The access token; in direct mode it may be empty.
    pub token: String,
    /// What a browser or client calls itself.
    pub name: Option<String>,
    /// The id that it keeps across connections.
    pub client_id: Option<String>,
    /// It gave a `client_id` that cannot be part of an id.
    pub has_unusable_client_id: bool,
    /// Under which ids an extension wants its commands, if it says so.
    pub id_mode: Option<CommandIdMode>,
    /// The id of a client's handshake, if it has one.
    pub request: Option<Id>,
}

/// Why a token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenRefusal {
    /// It is not valid. The text is for the peer.
    Invalid(&'static str),
    /// It names a key that is not known, and newer keys could not be fetched.
    KeysUnavailable,
}

impl TokenRefusal {
    /// What the peer is told when it is closed.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            TokenRefusal::Invalid(why) => why,
            TokenRefusal::KeysUnavailable => "keys could not be fetched",
        }
    }
}

/// A socket before it is authenticated.
#[derive(Debug)]
pub struct SocketAuthentication {
    path: SocketPath,
    access: RelayAccess,
    /// What an extension called its browser before it was asked.
    browser: Option<String>,
}

/// What to do after a message of such a socket.
#[derive(Debug)]
pub enum AuthenticationStep {
    /// Write this, which may be nothing, and wait.
    Wait(SocketOutput),
    /// Check these.
    Check(Credentials),
    /// Check these. The message is already the first command of a client that sends no handshake.
    Begin(Credentials),
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

impl SocketAuthentication {
    /// A new socket at a path.
    pub fn new(path: SocketPath, access: RelayAccess) -> SocketAuthentication {
        SocketAuthentication {
            path,
            access,
            browser: None,
        }
    }

    /// What the relay says first: it asks extensions who they are. A client ignores the question.
    pub fn first_message(&self) -> Option<Message> {
        match self.path {
            SocketPath::Client => None,
            SocketPath::Extension | SocketPath::Any => Some(authenticate(1)),
        }
    }

    /// A message of the peer.
    pub fn message(&mut self, message: &Message) -> AuthenticationStep {
        if self.access == RelayAccess::Direct
            && let Some(step) = self.direct_message(message)
        {
            return step;
        }
        if self.path != SocketPath::Client && is_answer_to_first(message) {
            return match extension_credentials(message, self.access) {
                Ok(credentials) => AuthenticationStep::Check(credentials),
                Err(_) => {
                    AuthenticationStep::Wait(closed(RelayClose::Unauthorized("no credentials")))
                }
            };
        }
        if self.path == SocketPath::Extension {
            // An extension is passive. What it says before it is known has no meaning.
            return AuthenticationStep::Wait(SocketOutput::default());
        }
        match message.kind() {
            _ if is_handshake(message) => match client_credentials(message, self.access) {
                Ok(credentials) => AuthenticationStep::Check(credentials),
                Err(fault) => AuthenticationStep::Wait(answered(message, &fault)),
            },
            Kind::Request => {
                AuthenticationStep::Wait(answered(message, &RelayFault::NotAuthenticated))
            }
            Kind::Malformed => AuthenticationStep::Wait(answered(message, &RelayFault::NotJson)),
            Kind::Batch => {
                let fault = RelayFault::InvalidRequest("batches are not supported");
                AuthenticationStep::Wait(answered(message, &fault))
            }
            _ => AuthenticationStep::Wait(SocketOutput::default()),
        }
    }
}

impl Credentials {
    /// What a peer gets whose credentials are not good. An extension is closed without a word: it does not expect an answer.
    pub fn refusal(&self, why: TokenRefusal) -> SocketOutput {
        match why {
            TokenRefusal::Invalid(why) => {
                let fault = RelayFault::AuthenticationFailed(why.to_owned());
                self.turned_away(&fault, RelayClose::Unauthorized(why))
            }
            TokenRefusal::KeysUnavailable => {
                let close = RelayClose::TryLater(why.reason());
                self.turned_away(&RelayFault::KeysUnavailable, close)
            }
        }
    }

    /// The same for a peer that comes with too many others.
    pub fn overload(&self) -> SocketOutput {
        self.turned_away(&RelayFault::AdmissionLimit, RelayClose::OVERLOAD)
    }

    fn turned_away(&self, fault: &RelayFault, close: RelayClose) -> SocketOutput {
        let mut output = closed(close);
        if self.role == SocketRole::Client {
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
pub(crate) fn client_credentials(
    message: &Message,
    access: RelayAccess,
) -> Result<Credentials, RelayFault> {
    let request = match message.kind() {
        Kind::Notification => None,
        _ => Some(messages::client_id_of(message)?),
    };
    let mut shown = credentials(SocketRole::Client, message, message.params(), access)?;
    shown.request = request;
    Ok(shown)
}

/// An extension's answer to `authenticate`.
pub(crate) fn extension_credentials(
    message: &Message,
    access: RelayAccess,
) -> Result<Credentials, RelayFault> {
    credentials(SocketRole::Extension, message, message.result(), access)
}

fn credentials(
    role: SocketRole,
    message: &Message,
    object: Option<mcp_proxy_wire::Span>,
    access: RelayAccess,
) -> Result<Credentials, RelayFault> {
    let text = |spellings| messages::text_member(message, object, spellings);
    let token = text(["access_token", "accessToken"]);
    let token = match access {
        RelayAccess::Direct => token.ok().flatten().unwrap_or_default(),
        RelayAccess::Tokens => token
            .map_err(|()| RelayFault::InvalidParams("accessToken must be a string"))?
            .filter(|token| !token.is_empty())
            .ok_or(RelayFault::InvalidParams("accessToken is missing"))?,
    };
    let name = text(["name", "name"]).unwrap_or_default();
    let id_mode = text(["id_mode", "idMode"]).unwrap_or_default();
    let spelled = object.map(|object| message.members(object, ["client_id", "clientId"]));
    let given = spelled.unwrap_or_default().into_iter().flatten().next();
    let given = given.filter(|span| message.slice(*span) != b"null");
    let client_id = given
        .and_then(|span| message.text_at(span))
        .filter(|id| is_usable_client_id(id));
    Ok(Credentials {
        role,
        token,
        name: name.map(|name| name.chars().take(MAX_NAME).collect()),
        has_unusable_client_id: given.is_some() && client_id.is_none(),
        client_id: client_id.map(Cow::into_owned),
        id_mode: id_mode.as_deref().and_then(CommandIdMode::named),
        request: None,
    })
}

fn is_answer_to_first(message: &Message) -> bool {
    matches!(message.kind(), Kind::Response | Kind::Error)
        && message.span(Field::Id).is_some()
        && message.id().map(|id| id.key()) == Some(messages::relay_id(1).key())
}

/// The relay's question who an extension is.
pub(crate) fn authenticate(number: u64) -> Message {
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
