//! The messages that the relay itself writes, and the names that it reserves.

use bytes::Bytes;
use mcp_proxy_wire::{Id, IdKey, Message, Span, json_string};
use serde_json::Value;

use crate::fault::RelayFault;

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

/// The number of the relay's request that an answer of an extension belongs to. `Some(None)` if it only looks like one.
pub(crate) fn relay_number(key: &IdKey) -> Option<Option<u64>> {
    let IdKey::String(text) = key else {
        return None;
    };
    let text = std::str::from_utf8(text).ok()?;
    let number = text.strip_prefix(RELAY_PREFIX)?;
    Some(number.parse().ok().filter(|_| !number.starts_with('+')))
}

/// The id of a client's request, if it is one that can be mapped: a string without a reserved prefix, or an integer.
pub(crate) fn client_id_of(message: &Message) -> Result<Id, RelayFault> {
    let id = message
        .id()
        .ok_or(RelayFault::InvalidRequest("id is missing"))?;
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

/// The outermost object of a message.
pub(crate) fn root(message: &Message) -> Span {
    let raw = message.raw();
    let start = raw.len() - raw.trim_ascii_start().len();
    Span::new(start, start + raw.trim_ascii().len())
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
pub(crate) fn result(id: &Id, value: &Value) -> Bytes {
    raw_answer(id, "result", value.to_string().as_bytes())
}

/// An answer whose `member`, `result` or `error`, is raw JSON.
pub(crate) fn raw_answer(id: &Id, member: &str, value: &[u8]) -> Bytes {
    let mut text = Vec::with_capacity(40 + id.token().len() + value.len());
    text.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    text.extend_from_slice(id.token());
    text.extend_from_slice(b",\"");
    text.extend_from_slice(member.as_bytes());
    text.extend_from_slice(b"\":");
    text.extend_from_slice(value);
    text.push(b'}');
    text.into()
}

/// What stands in front of the result of an answer that is written in pieces.
pub(crate) fn answer_beginning(id: &Id) -> Bytes {
    let id = id.token();
    [br#"{"jsonrpc":"2.0","id":"#, id, br#","result":"#]
        .concat()
        .into()
}

/// What stands behind it.
pub(crate) const ANSWER_END: &[u8] = b"}";

/// A request with raw parameters.
pub(crate) fn request(id: &Id, method: &str, params: Option<&[u8]>) -> Bytes {
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
    text.into()
}

/// A notification.
pub(crate) fn notification(method: &str, params: &Value) -> Bytes {
    let method = json_string(method);
    format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{params}}}"#).into()
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
        assert_eq!(relay_number(&relay_id(7).key()), Some(Some(7)));
        for (id, expected) in [
            ("proxy:auth", Some(None)),
            ("proxy:+7", Some(None)),
            ("conn-1:7", None),
        ] {
            assert_eq!(relay_number(&Id::string(id).key()), expected, "{id}");
        }
    }
}
