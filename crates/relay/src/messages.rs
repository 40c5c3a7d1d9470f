//! The messages that the relay itself writes, and the names that it reserves.

use std::sync::LazyLock;

use mcp_proxy_wire::{Id, IdKey, Message, Span, fold_name, json_string};
use memchr::memmem::Finder;
use serde_json::{Value, json};

use crate::fault::RelayFault;
use crate::time::RelayTime;

/// What the relay asks an extension: who it is.
pub(crate) const AUTHENTICATE: &str = "authenticate";
pub(crate) const HANDSHAKE: &str = "mcp_handshake";
pub(crate) const LIST_EXTENSIONS: &str = "list_extensions";
pub(crate) const CONNECT: &str = "connect";
pub(crate) const DISCONNECT: &str = "disconnect";
pub(crate) const AUTHENTICATED: &str = "authenticated";
pub(crate) const DISCONNECTED: &str = "disconnected";
pub(crate) const STATUS: &str = "status";
pub(crate) const CONNECTION_STATUS: &str = "connection_status";
pub(crate) const SHUTTING_DOWN: &str = "serverShuttingDown";
/// For clients that send their handshake without an id.
pub(crate) const HANDSHAKE_ACK: &str = "handshake_ack";
/// What the relay asks an extension to learn which tab an index means.
pub(crate) const GET_TABS: &str = "getTabs";
/// What the relay asks an extension that has one attached tab for all clients.
pub(crate) const SELECT_TAB: &str = "selectTab";
/// An extension that sends this has one attached tab for all clients.
pub(crate) const BUILD_INFO: &str = "build_info";
/// The one notification of an extension that clients get.
pub(crate) const TAB_INFO_UPDATE: &str = "notifications/tab_info_update";

/// Names that only the relay uses. A client that sends one of them must not reach an extension with it.
const RESERVED: [&str; 7] = [
    AUTHENTICATE,
    AUTHENTICATED,
    DISCONNECTED,
    STATUS,
    CONNECTION_STATUS,
    SHUTTING_DOWN,
    HANDSHAKE_ACK,
];

const RELAY_PREFIX: &str = "proxy:";
const EXTENSION_PREFIX: &str = "ext:";

/// Whether a method is never forwarded.
pub(crate) fn is_reserved(method: &str) -> bool {
    RESERVED.contains(&method)
}

/// The id of the relay's own request number `number` to an extension.
pub(crate) fn relay_id(number: u64) -> Id {
    Id::string(&format!("{RELAY_PREFIX}{number}"))
}

/// What an answer of an extension answers, by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnsweredRequest {
    /// A command of a client.
    Command,
    /// The relay's own request with this number.
    Question(u64),
    /// The id has the relay's prefix, and the relay never wrote it.
    Unknown,
}

impl AnsweredRequest {
    pub(crate) fn of(key: &IdKey) -> AnsweredRequest {
        let text = match key {
            IdKey::String(text) => std::str::from_utf8(text).ok(),
            _ => None,
        };
        let Some(number) = text.and_then(|text| text.strip_prefix(RELAY_PREFIX)) else {
            return AnsweredRequest::Command;
        };
        match number.parse() {
            Ok(number) if text == Some(&format!("{RELAY_PREFIX}{number}")) => {
                AnsweredRequest::Question(number)
            }
            _ => AnsweredRequest::Unknown,
        }
    }
}

/// The longest id of a client's request. It is kept several times while the request is open, and for a while after that.
const MAX_ID: usize = 256;

/// The id of a client's request, if it is one that can be mapped: a string without a reserved prefix, or an integer.
pub(crate) fn client_id_of(message: &Message) -> Result<Id, RelayFault> {
    let id = message
        .id()
        .ok_or(RelayFault::InvalidRequest("id is missing"))?;
    if id.token().len() > MAX_ID {
        return Err(RelayFault::InvalidRequest("id is longer than 256 bytes"));
    }
    match id.key() {
        IdKey::String(text) => {
            let is_reserved = [RELAY_PREFIX, EXTENSION_PREFIX]
                .iter()
                .any(|prefix| text.starts_with(prefix.as_bytes()));
            match is_reserved {
                true => Err(RelayFault::InvalidRequest(
                    "ids that begin with proxy: or ext: are reserved",
                )),
                false => Ok(id),
            }
        }
        IdKey::Number(token) if token.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) => Err(
            RelayFault::InvalidRequest("id must be a string or an integer"),
        ),
        IdKey::Number(_) => Ok(id),
        IdKey::Null | IdKey::Other(_) => Err(RelayFault::InvalidRequest(
            "id must be a string or an integer",
        )),
    }
}

/// Whether a text has ASCII letters that are written as `\u0000`, so that a name in it may not be found by its bytes.
pub(crate) fn has_escaped_letters(text: &[u8]) -> bool {
    static BEGINNING: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\\u00"));
    BEGINNING.find(text).is_some()
}

/// One form for the spellings of a name that extensions may use: `tab_id`, `TabId` and `tab.id` are `tabid`.
pub(crate) fn loose_name(name: &str) -> String {
    let mut folded = fold_name(name).into_owned();
    folded.retain(char::is_alphanumeric);
    folded
}

/// The text of a member under the first of several spellings that is there. `Err` if it is there and not a string.
pub(crate) fn text_member(
    message: &Message,
    object: Option<Span>,
    spellings: [&str; 2],
) -> Result<Option<String>, ()> {
    let Some(object) = object else {
        return Ok(None);
    };
    let found = message.members(object, spellings);
    let Some(span) = found.into_iter().flatten().next() else {
        return Ok(None);
    };
    match message.text_at(span) {
        Some(text) => Ok(Some(text.into_owned())),
        None => Err(()),
    }
}

/// `{"jsonrpc":"2.0","id":…,"result":…}`
pub(crate) fn result(id: &Id, value: &Value) -> Message {
    let id = String::from_utf8_lossy(id.token());
    Message::parse(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{value}}}"#))
}

/// A request with raw parameters.
pub(crate) fn request(id: &Id, method: &str, params: Option<&[u8]>) -> Message {
    let mut text = Vec::with_capacity(64 + id.token().len() + params.map_or(0, <[u8]>::len));
    text.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    text.extend_from_slice(id.token());
    text.extend_from_slice(br#","method":"#);
    text.extend_from_slice(json_string(method).as_bytes());
    if let Some(params) = params {
        text.extend_from_slice(br#","params":"#);
        text.extend_from_slice(params);
    }
    text.push(b'}');
    Message::parse(text)
}

/// A notification.
pub(crate) fn notification(method: &str, params: &Value) -> Message {
    let method = json_string(method);
    Message::parse(format!(
        r#"{{"jsonrpc":"2.0","method":{method},"params":{params}}}"#
    ))
}

/// The `status` notification: how many peers the receiver has.
pub(crate) fn status(peers: usize, now: RelayTime) -> Message {
    let params = json!({"connected": true, "peer_count": peers, "timestamp": now.timestamp()});
    notification(STATUS, &params)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_of(text: &str) -> Result<Vec<u8>, RelayFault> {
        client_id_of(&Message::parse(text.to_owned())).map(|id| id.token().to_vec())
    }

    #[test]
    fn ids_are_strings_and_integers_without_a_reserved_prefix() {
        for good in ["0", "-1", "17", "\"x\"", "\"\"", "\"a:b\"", "\"1\""] {
            let text = format!(r#"{{"id":{good},"method":"m"}}"#);
            assert_eq!(id_of(&text).as_deref(), Ok(good.as_bytes()), "{good}");
        }
        for bad in [
            "null",
            "1.0",
            "1e3",
            "true",
            "{}",
            "[1]",
            "\"proxy:1\"",
            "\"ext:1\"",
            "\"\\u0070roxy:1\"",
        ] {
            let text = format!(r#"{{"id":{bad},"method":"m"}}"#);
            assert_eq!(
                id_of(&text).map_err(|fault| fault.code()),
                Err(-32600),
                "{bad}"
            );
        }
    }

    #[test]
    fn numbers_of_the_relays_own_requests_are_read_back() {
        for (id, expected) in [
            ("proxy:7", AnsweredRequest::Question(7)),
            ("proxy:auth", AnsweredRequest::Unknown),
            ("proxy:+7", AnsweredRequest::Unknown),
            ("proxy:07", AnsweredRequest::Unknown),
            ("conn-1:7", AnsweredRequest::Command),
        ] {
            let key = Id::string(id).key();
            assert_eq!(AnsweredRequest::of(&key), expected, "{id}");
        }
    }
}
