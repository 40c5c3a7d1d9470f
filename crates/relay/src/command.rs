//! What a client asks for.

use std::time::Duration;

use mcp_proxy_wire::{Field, Id, IdKey, Kind, Message};

use crate::fault::RelayFault;
use crate::ids::{ExtensionId, RelayConnectionId};
use crate::messages;

/// A request of a client that has shown its token.
#[derive(Debug)]
pub(crate) enum ClientRequest {
    /// `list_extensions`
    List { with_offline: bool },
    /// `connect`
    Connect(ExtensionId),
    /// `disconnect`
    Disconnect,
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
    pub(crate) deadline: Duration,
}

/// What became of a message that is not a request.
#[derive(Debug)]
pub(crate) enum NotRequest {
    /// To be answered with this fault, under its id if it has one.
    Refuse(RelayFault),
    /// It needs no answer, and means nothing here.
    Ignore,
}

/// Reads a message of a client, with the id under which it is answered.
pub(crate) fn read(
    message: &Message,
) -> Result<(Id, Result<ClientRequest, RelayFault>), NotRequest> {
    match message.kind() {
        Kind::Request => {}
        Kind::Malformed => return Err(NotRequest::Refuse(RelayFault::NotJson)),
        Kind::Batch => {
            let fault = RelayFault::InvalidRequest("batches are not supported");
            return Err(NotRequest::Refuse(fault));
        }
        Kind::Notification | Kind::Response | Kind::Error => return Err(NotRequest::Ignore),
        Kind::Other => {
            let fault = RelayFault::InvalidRequest("method is missing");
            return Err(NotRequest::Refuse(fault));
        }
    }
    let id = messages::client_id_of(message).map_err(NotRequest::Refuse)?;
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
        messages::DISCONNECT => Ok(ClientRequest::Disconnect),
        name if messages::is_reserved(name) => Err(RelayFault::ReservedMethod(name.to_owned())),
        name => {
            let root = Some(message.root());
            let spellings = ["connectionId", "connection_id"];
            let connection = messages::text_member(message, root, spellings)
                .map_err(|()| RelayFault::WrongConnection)?;
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

/// The part of a mapped id that comes from the client: a string's text, or a number's digits.
pub(crate) fn id_text(id: &Id) -> String {
    match id.key() {
        IdKey::String(text) => String::from_utf8_lossy(&text).into_owned(),
        _ => String::from_utf8_lossy(id.token()).into_owned(),
    }
}
