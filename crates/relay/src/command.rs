//! What a client asks for.

use mcp_proxy_wire::{Field, Id, IdKey, Kind, Message, Span};

use crate::fault::RelayFault;
use crate::ids::{ExtensionId, RelayConnectionId};
use crate::messages;
use crate::tabs::MAX_DIGITS;

/// A request of a client that has shown its token.
#[derive(Debug)]
pub(crate) enum ClientRequest {
    /// `list_extensions`
    List { with_offline: bool },
    /// `connect`
    Connect(ExtensionId),
    /// `disconnect`, with the connection that it names.
    Disconnect { connection: Option<String> },
    /// Everything else, with the connection that it names.
    Forward {
        method: String,
        connection: Option<String>,
    },
}

/// A command on its way to an extension.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) connection: RelayConnectionId,
    /// What its client's side knows it by.
    pub(crate) number: u64,
    /// The id that the client gave it.
    pub(crate) id: Id,
    pub(crate) method: String,
    pub(crate) message: Message,
}

/// A message of a client that is not a request, and what to do with it.
#[derive(Debug)]
pub(crate) enum UnusableMessage {
    /// To be answered with this fault, under its id if it has one.
    Refuse(RelayFault),
    /// It needs no answer, and means nothing here.
    Ignore,
}

/// Reads a message of a client, with the id under which it is answered.
pub(crate) fn read(
    message: &Message,
) -> Result<(Id, Result<ClientRequest, RelayFault>), UnusableMessage> {
    match message.kind() {
        Kind::Request => {}
        Kind::Malformed => return Err(UnusableMessage::Refuse(RelayFault::NotJson)),
        Kind::Batch => {
            let fault = RelayFault::InvalidRequest("batches are not supported");
            return Err(UnusableMessage::Refuse(fault));
        }
        Kind::Notification | Kind::Response | Kind::Error => return Err(UnusableMessage::Ignore),
        Kind::Other => {
            let fault = RelayFault::InvalidRequest("method is missing");
            return Err(UnusableMessage::Refuse(fault));
        }
    }
    let id = messages::client_id_of(message).map_err(UnusableMessage::Refuse)?;
    Ok((id, request(message)))
}

fn request(message: &Message) -> Result<ClientRequest, RelayFault> {
    let method = message
        .method()
        .ok_or(RelayFault::InvalidRequest("method must be a string"))?;
    match &*method {
        messages::LIST_EXTENSIONS => {
            let offline = message.span(Field::Param("include_offline"));
            Ok(ClientRequest::List {
                with_offline: offline.is_some_and(|span| message.slice(span) == b"true"),
            })
        }
        messages::CONNECT => {
            let spellings = ["extension_id", "extensionId"];
            let named = messages::text_member(message, message.params(), spellings)
                .map_err(|()| RelayFault::InvalidParams("extension_id must be a string"))?
                .ok_or(RelayFault::InvalidParams("extension_id is missing"))?;
            Ok(ClientRequest::Connect(ExtensionId::named(&named)))
        }
        messages::DISCONNECT => {
            let connection = match named_connection(message, message.root())? {
                None => message
                    .params()
                    .map(|params| named_connection(message, params))
                    .transpose()?
                    .flatten(),
                named => named,
            };
            Ok(ClientRequest::Disconnect { connection })
        }
        name if messages::is_reserved(name) => Err(RelayFault::ReservedMethod(name.to_owned())),
        name => {
            let connection = named_connection(message, message.root())?;
            if let Some(params) = message.params()
                && !message.slice(params).starts_with(b"{")
            {
                return Err(RelayFault::InvalidParams("params must be an object"));
            }
            Ok(ClientRequest::Forward {
                method: name.to_owned(),
                connection,
            })
        }
    }
}

/// The connection that a member of `object` names.
fn named_connection(message: &Message, object: Span) -> Result<Option<String>, RelayFault> {
    let spellings = ["connectionId", "connection_id"];
    messages::text_member(message, Some(object), spellings)
        .map_err(|()| RelayFault::WrongConnection)
}

/// Whether an extension can be given this id of a client as it is, and will answer with the same. Zero means "no id" to some, and
/// JavaScript rounds long numbers.
pub(crate) fn is_preservable(id: &Id) -> bool {
    match id.key() {
        IdKey::String(text) => !text.is_empty() && !text.contains(&b':'),
        IdKey::Number(digits) => {
            digits.len() <= MAX_DIGITS
                && digits.iter().all(u8::is_ascii_digit)
                && !digits.starts_with(b"0")
        }
        IdKey::Null | IdKey::Other(_) => false,
    }
}

/// The part of a mapped id that comes from the client: a string's text, or a number's digits.
pub(crate) fn id_text(id: &Id) -> String {
    match id.key() {
        IdKey::String(text) => String::from_utf8_lossy(&text).into_owned(),
        _ => String::from_utf8_lossy(id.token()).into_owned(),
    }
}
