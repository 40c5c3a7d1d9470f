//! Import of the seed's JSON: a `ProxySession` document becomes a record of ours.
//!
//! The seed's own field names are read, and those of the program it came from, which wrote `proxy_id`, `payload` and
//! `original_payload`. A `raw` that is a string is taken as the text (or `base64:` bytes) of something that was not JSON, as our export writes it.

mod document;
mod notes;

use crate::record_input::{AnsweredRequest, NewBody, NewMessage, NewVerdict, RecordEvent};
use crate::{
    CredentialRedaction, Durability, Error, MessageId, PeerInfo, RecordErrorPolicy, RecordLocation,
    RecordOptions, Recorder, id, private_files, timestamp,
};
use bytes::Bytes;
use document::{Document, ImportedMessage, SessionIdentity, bytes_of};
use mcp_proxy_wire::{Direction, Kind, Message, Origin, Transport, TransportEnvelope};
use notes::MessageNotes;
use rustc_hash::FxHashMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The connection of messages whose server has no name.
const UNNAMED_CONNECTION: u32 = 1;

/// Makes a record at `place` of the JSON document at `source`, with a session id of its own. Returns the record's path.
pub fn import(source: &Path, place: RecordLocation) -> Result<PathBuf, Error> {
    import_as(source, place, SessionIdentity::New)
}

/// The same for a document that is only looked at: it is the session that it says it is.
pub(crate) fn import_to_read(source: &Path, place: RecordLocation) -> Result<PathBuf, Error> {
    import_as(source, place, SessionIdentity::Same)
}

/// Whether a file that is not a record begins like a document.
pub(crate) fn looks_like_document(path: &Path) -> bool {
    let mut start = Vec::new();
    let read =
        private_files::open_record(path).and_then(|file| file.take(4096).read_to_end(&mut start));
    let start = start.trim_ascii_start();
    read.is_ok() && start.starts_with(b"{") && !start.starts_with(b"{\"t\"")
}

fn import_as(
    source: &Path,
    place: RecordLocation,
    identity: SessionIdentity,
) -> Result<PathBuf, Error> {
    let wrong = |why: String| Error::Import {
        path: source.to_path_buf(),
        why,
    };
    let text = private_files::open_record(source).and_then(io::read_to_string);
    let text = text.map_err(|error| Error::io("read", source, error))?;
    let document = Document::read(&text).map_err(wrong)?;
    let options = RecordOptions {
        durability: Durability::None,
        on_error: RecordErrorPolicy::Stop,
        credentials: CredentialRedaction::none(),
        redaction: None,
        max_size: None,
    };
    let header = document.header(identity).map_err(wrong)?;
    let mut writer = ImportWriter {
        recorder: Recorder::create(place, options, &header)?,
        transport: header.server.transport,
        started_at: header.started_at,
        salt: id::new_salt(),
        next: 0,
        known: FxHashMap::default(),
        redacted: document.redacted(),
        notes: document.notes(),
        connections: FxHashMap::default(),
    };
    let note = format!("imported from {}", source.display());
    writer
        .recorder
        .record_event(header.started_at, &RecordEvent::Note { text: &note });
    if let Err(error) = writer.write_messages(&document, wrong) {
        // Half a session is useless: nothing of it stays.
        let _ = std::fs::remove_file(writer.recorder.path());
        return Err(error);
    }
    for note in document.user_notes() {
        note.write(&mut writer.recorder, header.started_at);
    }
    if let Some(ended_at) = document.ended_at.as_deref().and_then(timestamp::parse) {
        writer.recorder.end(ended_at, "as imported")?;
    }
    writer.recorder.flush()?;
    Ok(writer.recorder.path().to_path_buf())
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
    /// What it says about messages, by the same numbers.
    notes: FxHashMap<u64, MessageNotes>,
    /// The connections to servers with names. A document does not tell connections apart, so each server has one.
    connections: FxHashMap<String, u32>,
}

impl ImportWriter {
    fn write_messages(
        &mut self,
        document: &Document<'_>,
        wrong: impl Fn(String) -> Error,
    ) -> Result<(), Error> {
        for (number, message) in (1..).zip(document.messages()) {
            let wrong = |why: String| wrong(format!("message {number}: {why}"));
            let message = message.map_err(wrong)?;
            let direction = message.direction.parse::<Direction>();
            let direction = direction.map_err(|error| wrong(format!("`direction`: {error}")))?;
            self.write(&message, direction);
            if number % 64 == 0 {
                self.recorder.flush()?;
            }
        }
        Ok(())
    }

    fn write(&mut self, imported: &ImportedMessage<'_>, direction: Direction) {
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
        let sent = bytes_of(imported.raw);
        let original = imported
            .original_raw
            .filter(|_| imported.modified)
            .map(bytes_of);
        let received = Message::parse(original.clone().unwrap_or_else(|| sent.clone()));
        let notes = imported
            .sequence
            .and_then(|number| self.notes.remove(&number))
            .unwrap_or_default();
        let answers = imported
            .correlated_id
            .as_ref()
            .and_then(|id| self.known.get(id))
            .map(|(id, sequence, asked)| AnsweredRequest {
                id: *id,
                sequence: *sequence,
                latency: time
                    .duration_since(*asked)
                    .unwrap_or_default()
                    .saturating_sub(notes.request_held()),
                held: notes.request_held(),
            });
        let connection = match imported.server.as_ref().or(notes.server.as_ref()) {
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
            origin: match imported
                .origin
                .as_ref()
                .or(notes.origin.as_ref())
                .map(String::as_str)
            {
                Some("proxy") => Origin::Proxy,
                Some("replay") => Origin::Replay,
                _ => direction.from().into(),
            },
            // A document that was numbered anew has no message of that number any more.
            parent: imported
                .parent
                .or(notes.parent)
                .filter(|parent| imported.sequence == Some(sequence) && *parent < sequence),
            envelope: &TransportEnvelope::Bare,
            body: NewBody::Whole(&received),
            answered_request: answers,
            client_id: None,
            late: notes.late,
            duplicate: notes.duplicate,
            parts: &[],
        });
        let mut verdicts = notes.verdicts(sequence, id, time);
        if imported.modified {
            put_change(&mut verdicts, original.map(|_| sent), (sequence, id, time));
        }
        for verdict in &verdicts {
            self.recorder.record_verdict(verdict);
        }
        if notes.undelivered {
            let event = RecordEvent::Undelivered {
                sequence,
                why: "as imported",
            };
            self.recorder.record_event(time, &event);
        }
        // Whatever is not an answer itself may be answered: also a batch, which has no method of its own, and what was broken.
        if !matches!(received.kind(), Kind::Response | Kind::Error)
            && let Some(name) = &imported.id
        {
            self.known.insert(name.clone(), (id, sequence, time));
        }
    }

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

/// Puts the bytes that were forwarded into the last verdict that changed them.
fn put_change(
    verdicts: &mut Vec<NewVerdict>,
    raw: Option<Bytes>,
    (sequence, id, time): (u64, MessageId, SystemTime),
) {
    let changes = |verdict: &&mut NewVerdict| matches!(verdict.kind, "modify" | "error");
    if let Some(change) = verdicts.iter_mut().rev().find(changes) {
        change.raw = raw;
        return;
    }
    verdicts.push(NewVerdict {
        time,
        sequence: Some(sequence),
        message: Some(id),
        kind: "modify",
        by: "import".to_owned(),
        why: "the document says that it was modified".to_owned(),
        delay: None,
        replay_of: None,
        original_raw: None,
        raw,
    });
}
