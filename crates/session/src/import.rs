//! Import of the seed's JSON: a `ProxySession` document becomes a record of ours.
//!
//! The seed's own field names are read, and those of the program it came from, which wrote `proxy_id`, `payload` and
//! `original_payload`. The document is read twice, for its head and for its messages, so that only one message is in memory at a
//! time. A `raw` that is a string is taken as the text (or `base64:` bytes) of something that was not JSON, as our export writes it.

use crate::record_input::{AnsweredRequest, NewBody, NewMessage, NewVerdict, RecordEvent};
use crate::{
    CredentialRedaction, Durability, Error, MessageId, PeerInfo, RecordErrorPolicy, RecordLocation,
    RecordOptions, Recorder, SessionHeader, id, timestamp,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use mcp_proxy_wire::{Direction, Kind, Message, Origin, Transport, TransportEnvelope, flatten};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The connection of messages whose server has no name.
const UNNAMED_CONNECTION: u32 = 1;

/// Makes a record at `place` of the JSON document at `source`. Returns the record's path.
pub fn import(source: &Path, place: RecordLocation) -> Result<PathBuf, Error> {
    let wrong = |why: String| Error::Import {
        path: source.to_path_buf(),
        why,
    };
    let open = || {
        File::open(source)
            .map(BufReader::new)
            .map_err(|error| Error::io("open", source, error))
    };
    let head: JsonObject<DocumentHead> =
        serde_json::from_reader(open()?).map_err(|error| wrong(error.to_string()))?;
    let head = head.0;
    let options = RecordOptions {
        durability: Durability::None,
        on_error: RecordErrorPolicy::Stop,
        credentials: CredentialRedaction::none(),
        redaction: None,
    };
    let header = head.header().map_err(wrong)?;
    let mut writer = ImportWriter {
        recorder: Recorder::create(place, options, &header)?,
        transport: header.server.transport,
        started_at: header.started_at,
        salt: id::new_salt(),
        next: 0,
        known: FxHashMap::default(),
        redacted: redacted(&header.metadata),
        connections: FxHashMap::default(),
        failed: None,
    };
    let note = format!("imported from {}", source.display());
    writer
        .recorder
        .record_event(header.started_at, &RecordEvent::Note { text: &note });
    let mut json = serde_json::Deserializer::from_reader(open()?);
    let read = json.deserialize_map(DocumentVisitor(&mut writer));
    let failed = writer
        .failed
        .take()
        .or_else(|| read.err().map(|error| wrong(error.to_string())));
    if let Some(error) = failed {
        // Half a session is useless: nothing of it stays.
        let path = writer.recorder.path();
        let _ = std::fs::remove_file(path);
        let _ = std::fs::remove_dir_all(crate::side_folder(path));
        return Err(error);
    }
    if let Some(ended_at) = head.ended_at.as_deref().and_then(timestamp::parse) {
        writer.recorder.end(ended_at, "as imported")?;
    }
    writer.recorder.flush()?;
    Ok(writer.recorder.path().to_path_buf())
}

/// The document without its messages.
#[derive(Deserialize)]
struct DocumentHead {
    #[serde(alias = "session_id")]
    id: Option<String>,
    started_at: Option<String>,
    ended_at: Option<String>,
    transport: Option<String>,
    server_command: Option<String>,
    server_url: Option<String>,
    metadata: Option<Map<String, Value>>,
    messages: Option<IgnoredAny>,
}

impl DocumentHead {
    fn header(&self) -> Result<SessionHeader, String> {
        if self.messages.is_none() {
            return Err("it has no `messages`, so it is not a session".to_owned());
        }
        let started_at = self.started_at.as_deref().ok_or("it has no `started_at`")?;
        let transport = self.transport.as_deref().unwrap_or("stdio");
        let transport = transport
            .parse::<Transport>()
            .map_err(|error| format!("`transport`: {error}"))?;
        let started_at = timestamp::parse(started_at)
            .ok_or_else(|| format!("`started_at` is {started_at:?}, which is not a time"))?;
        Ok(SessionHeader {
            id: self
                .id
                .clone()
                .unwrap_or_else(|| id::new_session_id(started_at)),
            started_at,
            client: PeerInfo::new(transport),
            server: PeerInfo::new(transport),
            server_command: self.server_command.clone(),
            server_url: self.server_url.clone(),
            argv: Vec::new(),
            cwd: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            metadata: self.metadata.clone().unwrap_or_default(),
        })
    }
}

/// Which messages have redacted values, as an export of ours says it in the metadata.
fn redacted(metadata: &Map<String, Value>) -> FxHashMap<u64, u32> {
    let told = metadata
        .get("redaction")
        .and_then(|told| told.get("redacted"));
    told.and_then(|told| FxHashMap::<u64, u32>::deserialize(told).ok())
        .unwrap_or_default()
}

/// A `T` that is written as a JSON object. serde would read a list of its members' values too.
struct JsonObject<T>(T);

/// What a person has to write where a `Self` is read.
trait DocumentPart {
    const EXPECTED: &'static str;
}

impl DocumentPart for DocumentHead {
    const EXPECTED: &'static str = "a session: a JSON object with `started_at` and `messages`";
}

impl DocumentPart for ImportedMessage {
    const EXPECTED: &'static str = "a message: a JSON object with `direction` and `raw`";
}

impl<'de, T: Deserialize<'de> + DocumentPart> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JsonObject<T>, D::Error> {
        deserializer.deserialize_map(JsonObjectVisitor(PhantomData))
    }
}

struct JsonObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + DocumentPart> Visitor<'de> for JsonObjectVisitor<T> {
    type Value = JsonObject<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<JsonObject<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(JsonObject)
    }
}

/// A message in either spelling.
#[derive(Deserialize)]
struct ImportedMessage {
    #[serde(alias = "proxy_id")]
    id: Option<String>,
    sequence: Option<u64>,
    timestamp: Option<String>,
    direction: String,
    transport: Option<String>,
    #[serde(alias = "payload")]
    raw: Box<RawValue>,
    correlated_id: Option<String>,
    /// Written by our export where it is not the peer in the direction.
    origin: Option<String>,
    /// Written by our export where there is one.
    parent: Option<u64>,
    /// Written by our export where the server has a name.
    server: Option<String>,
    #[serde(default)]
    modified: bool,
    #[serde(alias = "original_payload")]
    original_raw: Option<Box<RawValue>>,
}

/// Writes messages as they are read.
struct ImportWriter {
    recorder: Recorder,
    transport: Transport,
    started_at: SystemTime,
    salt: u64,
    /// The lowest sequence number that may come.
    next: u64,
    /// Messages that may be answered, by the id they had in the document.
    known: FxHashMap<String, (MessageId, u64, SystemTime)>,
    /// How many values the document says were redacted, by its sequence numbers.
    redacted: FxHashMap<u64, u32>,
    /// The connections to servers with names. A document does not tell connections apart, so each server has one.
    connections: FxHashMap<String, u32>,
    failed: Option<Error>,
}

impl ImportWriter {
    fn write(&mut self, imported: &ImportedMessage) -> Result<(), String> {
        let direction: Direction = imported
            .direction
            .parse()
            .map_err(|error| format!("`direction`: {error}"))?;
        // Sequence numbers must rise; a document that has none, or has them twice, is numbered anew.
        let sequence = imported
            .sequence
            .filter(|sequence| *sequence >= self.next)
            .unwrap_or(self.next);
        self.next = sequence + 1;
        let time = imported
            .timestamp
            .as_deref()
            .and_then(timestamp::parse)
            .unwrap_or(self.started_at);
        let id = imported.id.as_deref().and_then(MessageId::parse);
        let id = id.unwrap_or_else(|| MessageId::new(time, self.salt, sequence));
        let sent = bytes_of(&imported.raw);
        let original = imported
            .original_raw
            .as_deref()
            .filter(|_| imported.modified)
            .map(bytes_of);
        let received = Message::parse(original.clone().unwrap_or_else(|| sent.clone()));
        let answers = imported
            .correlated_id
            .as_ref()
            .and_then(|id| self.known.get(id))
            .map(|(id, sequence, asked)| AnsweredRequest {
                id: *id,
                sequence: *sequence,
                latency: time.duration_since(*asked).unwrap_or_default(),
            });
        let connection = match &imported.server {
            Some(server) => self.connection_to(server, time),
            None => UNNAMED_CONNECTION,
        };
        let redacted = imported
            .sequence
            .and_then(|number| self.redacted.get(&number));
        self.recorder
            .note_prior_redactions(redacted.copied().unwrap_or(0));
        self.recorder.record_message(&NewMessage {
            sequence,
            id,
            time,
            mono: time.duration_since(self.started_at).unwrap_or_default(),
            direction,
            transport: imported
                .transport
                .as_deref()
                .and_then(|word| word.parse().ok())
                .unwrap_or(self.transport),
            connection,
            exchange: 0,
            origin: match imported.origin.as_deref() {
                Some("proxy") => Origin::Proxy,
                Some("replay") => Origin::Replay,
                _ => direction.from().into(),
            },
            // A document that was numbered anew has no message of that number any more.
            parent: imported
                .parent
                .filter(|parent| imported.sequence == Some(sequence) && *parent < sequence),
            envelope: &TransportEnvelope::Bare,
            body: NewBody::Whole(&received),
            answered_request: answers,
            client_id: None,
            late: false,
            duplicate: false,
            parts: &[],
        });
        if imported.modified {
            self.recorder.record_verdict(&NewVerdict {
                time,
                sequence: Some(sequence),
                message: Some(id),
                kind: "modify",
                by: "import".to_owned(),
                why: "the document says that it was modified".to_owned(),
                original_raw: None,
                raw: original.map(|_| sent),
            });
        }
        // Whatever is not an answer itself may be answered: also a batch, which has no method of its own, and what was broken.
        if !matches!(received.kind(), Kind::Response | Kind::Error)
            && let Some(name) = &imported.id
        {
            self.known.insert(name.clone(), (id, sequence, time));
        }
        if sequence.is_multiple_of(64) {
            self.recorder.flush().map_err(|error| {
                let text = error.to_string();
                self.failed = Some(error);
                text
            })?;
        }
        Ok(())
    }
}

impl ImportWriter {
    /// The connection to the server of this name, which opens with its first message.
    fn connection_to(&mut self, server: &str, time: SystemTime) -> u32 {
        if let Some(known) = self.connections.get(server) {
            return *known;
        }
        let opened = u32::try_from(self.connections.len()).unwrap_or(u32::MAX);
        let connection = UNNAMED_CONNECTION.saturating_add(1).saturating_add(opened);
        let client = PeerInfo::new(self.transport);
        let peer = PeerInfo {
            name: Some(server.to_owned()),
            ..client.clone()
        };
        let event = RecordEvent::Open {
            connection,
            client: &client,
            server: &peer,
            parent: None,
        };
        self.recorder.record_event(time, &event);
        self.connections.insert(server.to_owned(), connection);
        connection
    }
}

/// A body out of a document: a value on one line, or the bytes that a string stands for.
fn bytes_of(raw: &RawValue) -> Bytes {
    if let Ok(text) = serde_json::from_str::<String>(raw.get()) {
        let binary = text
            .strip_prefix("base64:")
            .and_then(|encoded| STANDARD.decode(encoded).ok());
        return binary.unwrap_or_else(|| text.into_bytes()).into();
    }
    let message = Message::parse(raw.get().as_bytes().to_vec());
    flatten(&message).unwrap_or(message).into_raw()
}

struct DocumentVisitor<'a>(&'a mut ImportWriter);

impl<'de> Visitor<'de> for DocumentVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a session document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "messages" {
                map.next_value_seed(MessagesVisitor(self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct MessagesVisitor<'a>(&'a mut ImportWriter);

impl<'de> DeserializeSeed<'de> for MessagesVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for MessagesVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut messages: A) -> Result<(), A::Error> {
        let mut number = 0;
        while let Some(message) = messages.next_element::<JsonObject<ImportedMessage>>()? {
            number += 1;
            self.0
                .write(&message.0)
                .map_err(|why| serde::de::Error::custom(format!("message {number}: {why}")))?;
        }
        Ok(())
    }
}
