//! The seed's JSON as it is read: the session, and one message after the other.

use super::notes::{ImportedNote, MessageNotes};
use crate::{PeerInfo, SessionHeader, id, timestamp};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use mcp_proxy_wire::{Message, Transport, flatten};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The member of an imported session's metadata that names the session it was imported from.
const IMPORTED_FROM: &str = "imported_from";

/// Which session a record of a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionIdentity {
    /// One of its own: the session that was exported may have a record next to it.
    New,
    /// The one in the document, which is only looked at.
    Same,
}

/// A document. Its messages are read when they are asked for.
#[derive(Deserialize)]
pub(super) struct Document<'a> {
    #[serde(alias = "session_id")]
    id: Option<String>,
    started_at: Option<String>,
    pub(super) ended_at: Option<String>,
    transport: Option<String>,
    server_command: Option<String>,
    server_url: Option<String>,
    metadata: Option<Map<String, Value>>,
    #[serde(borrow)]
    messages: Option<Vec<&'a RawValue>>,
}

/// A message in either spelling.
#[derive(Deserialize)]
pub(super) struct ImportedMessage<'a> {
    #[serde(alias = "proxy_id")]
    pub(super) id: Option<String>,
    pub(super) sequence: Option<u64>,
    pub(super) timestamp: Option<String>,
    pub(super) direction: String,
    pub(super) transport: Option<String>,
    #[serde(alias = "payload", borrow)]
    pub(super) raw: &'a RawValue,
    pub(super) correlated_id: Option<String>,
    /// Older exports of ours have these three here, newer ones in the metadata.
    pub(super) origin: Option<String>,
    pub(super) parent: Option<u64>,
    pub(super) server: Option<String>,
    #[serde(default)]
    pub(super) modified: bool,
    #[serde(alias = "original_payload", borrow)]
    pub(super) original_raw: Option<&'a RawValue>,
}

impl<'a> Document<'a> {
    pub(super) fn read(text: &'a str) -> Result<Document<'a>, String> {
        read_object(
            text,
            "a session: a JSON object with `started_at` and `messages`",
        )
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = Result<ImportedMessage<'a>, String>> {
        let messages = self.messages.iter().flatten();
        messages.map(|message| {
            read_object(
                message.get(),
                "a message: a JSON object with `direction` and `raw`",
            )
        })
    }

    /// The header of a record of it. What it says about messages is not part of that: the record says it message by message.
    pub(super) fn header(&self, identity: SessionIdentity) -> Result<SessionHeader, String> {
        if self.messages.is_none() {
            return Err("it has no `messages`".to_owned());
        }
        let started_at = self.started_at.as_deref().ok_or("it has no `started_at`")?;
        let transport = self.transport.as_deref().unwrap_or("stdio");
        let transport = transport
            .parse::<Transport>()
            .map_err(|error| format!("`transport`: {error}"))?;
        let started_at = timestamp::parse(started_at)
            .ok_or_else(|| format!("`started_at` is {started_at:?}, which is not a time"))?;
        let mut metadata = self.metadata.clone().unwrap_or_default();
        metadata.remove(MessageNotes::MEMBER);
        if self.has_notes() {
            metadata.remove(ImportedNote::MEMBER);
        }
        let id = match (identity, &self.id) {
            (SessionIdentity::Same, Some(id)) => id.clone(),
            (SessionIdentity::New, Some(id)) => {
                metadata.insert(IMPORTED_FROM.to_owned(), id.as_str().into());
                id::new_session_id(started_at)
            }
            (_, None) => id::new_session_id(started_at),
        };
        Ok(SessionHeader {
            id,
            started_at,
            client: PeerInfo::new(transport),
            server: PeerInfo::new(transport),
            server_command: self.server_command.clone(),
            server_url: self.server_url.clone(),
            argv: Vec::new(),
            cwd: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            metadata,
        })
    }

    /// Which messages have redacted values, as an export of ours says it in the metadata.
    pub(super) fn redacted(&self) -> FxHashMap<u64, u32> {
        let told = self.metadata.as_ref().and_then(|metadata| {
            let redacted = metadata.get("redaction")?.get("redacted")?;
            FxHashMap::<u64, u32>::deserialize(redacted).ok()
        });
        told.unwrap_or_default()
    }

    /// The notes of people, as an export of ours has them in the metadata.
    pub(super) fn user_notes(&self) -> Vec<ImportedNote> {
        let notes = self.metadata.as_ref();
        let notes = notes.and_then(|metadata| metadata.get(ImportedNote::MEMBER));
        let notes = notes.and_then(|notes| Vec::<ImportedNote>::deserialize(notes).ok());
        notes.unwrap_or_default()
    }

    /// Another program may use the name for something else.
    fn has_notes(&self) -> bool {
        !self.user_notes().is_empty()
    }

    /// What the proxy did with messages, as an export of ours says it in the metadata.
    pub(super) fn notes(&self) -> FxHashMap<u64, MessageNotes> {
        let notes = self
            .metadata
            .as_ref()
            .and_then(|metadata| metadata.get(MessageNotes::MEMBER)?.as_object());
        let of_message = |(number, notes): (&String, &Value)| {
            let notes = MessageNotes::deserialize(notes).ok()?;
            Some((number.parse().ok()?, notes))
        };
        notes.into_iter().flatten().filter_map(of_message).collect()
    }
}

/// A `T` that is written as a JSON object. serde would read a list of its members' values too.
fn read_object<'a, T: Deserialize<'a>>(text: &'a str, expected: &str) -> Result<T, String> {
    match text.trim_start().starts_with('{') {
        true => serde_json::from_str(text).map_err(|error| error.to_string()),
        false => Err(format!("it is not {expected}")),
    }
}

/// A body out of a document: a value on one line, or the bytes that a string stands for.
pub(super) fn bytes_of(raw: &RawValue) -> Bytes {
    if let Ok(text) = serde_json::from_str::<String>(raw.get()) {
        let binary = text
            .strip_prefix("base64:")
            .and_then(|encoded| STANDARD.decode(encoded).ok());
        return binary.unwrap_or_else(|| text.into_bytes()).into();
    }
    let message = Message::parse(raw.get().as_bytes().to_vec());
    flatten(&message).unwrap_or(message).into_raw()
}
