//! Record lines as values: a `msg` line becomes a [`ProxyMessage`], an `act` line a [`Verdict`].

use super::SessionNote;
use crate::line_members::{self, LineMembers};
use crate::message::{BatchPart, HttpHead, ProxyMessage, RawBody, SseFields, Verdict, batch_parts};
use crate::{MessageId, ReplayOrigin, timestamp};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use mcp_proxy_wire::{Direction, Kind, Message, Origin, Transport};
use serde::Deserialize;
use std::time::{Duration, SystemTime};

/// Reads a `note` line that a person wrote.
pub(super) fn note(line: &Bytes) -> Option<SessionNote> {
    let mut found = SessionNote {
        timestamp: SystemTime::UNIX_EPOCH,
        sequence: None,
        mark: None,
        by: String::new(),
        text: String::new(),
    };
    let mut members = LineMembers::new(line);
    while let Some(key) = members.next_key() {
        let value = members.value()?;
        match key {
            b"timestamp" => found.timestamp = time(value)?,
            b"sequence" => found.sequence = line_members::number(value),
            b"mark" => found.mark = line_members::text(value),
            b"by" => found.by = line_members::text(value)?,
            b"text" => found.text = line_members::text(value).unwrap_or_default(),
            _ => {}
        }
    }
    (!found.by.is_empty()).then_some(found)
}

/// Reads a `msg` line.
pub(crate) fn message(line: &Bytes) -> Result<ProxyMessage, String> {
    let mut id = None;
    let mut timestamp = None;
    let mut direction: Option<Direction> = None;
    let mut origin = None;
    let mut client_id = None;
    let mut found = ProxyMessage {
        id: MessageId::from_bytes([0; 16]),
        sequence: 0,
        timestamp: SystemTime::UNIX_EPOCH,
        direction: Direction::ClientToServer,
        transport: Transport::Stdio,
        raw: RawBody::NotStored { len: 0 },
        jsonrpc_id: None,
        server_id: None,
        method: None,
        correlated_id: None,
        modified: false,
        original_raw: None,
        kind: Kind::Other,
        name: None,
        connection: 0,
        exchange: 0,
        mono: Duration::ZERO,
        answers: None,
        latency: None,
        request_held: None,
        late: false,
        duplicate: false,
        origin: Origin::Client,
        parent: None,
        dropped: false,
        refused: false,
        answered: false,
        undecided: false,
        held: None,
        delayed: false,
        redirected: false,
        redacted: 0,
        len: 0,
        parts: Vec::new(),
        http: None,
        sse: None,
        replay_of: None,
        verdicts: Vec::new(),
    };
    let mut members = LineMembers::new(line);
    while let Some(key) = members.next_key() {
        if key == b"raw"
            && let Some(raw) = exact(line, &members)
        {
            found.raw = RawBody::Json(raw);
            break;
        }
        let value = members.value().ok_or("a value does not end")?;
        match key {
            b"sequence" => {
                found.sequence = line_members::number(value).ok_or("sequence is not a number")?
            }
            b"id" => id = message_id(value),
            b"timestamp" => timestamp = time(value),
            b"mono_ns" => {
                found.mono = Duration::from_nanos(line_members::number(value).unwrap_or(0))
            }
            b"direction" => {
                direction = line_members::text(value).and_then(|word| word.parse().ok())
            }
            b"transport" => {
                found.transport = line_members::text(value)
                    .and_then(|word| word.parse().ok())
                    .unwrap_or(Transport::Stdio)
            }
            b"conn" => found.connection = line_members::connection(value).unwrap_or(0),
            b"exchange" => found.exchange = line_members::number(value).unwrap_or(0),
            b"origin" => origin = origin_of(value),
            b"parent" => found.parent = line_members::number(value),
            b"kind" => found.kind = kind(value),
            b"jsonrpc_id" => found.jsonrpc_id = Some(String::from_utf8_lossy(value).into_owned()),
            b"client_id" => client_id = Some(String::from_utf8_lossy(value).into_owned()),
            b"method" => found.method = line_members::text(value),
            b"name" => found.name = line_members::text(value),
            b"correlated_id" => found.correlated_id = message_id(value),
            b"answers" => found.answers = line_members::number(value),
            b"latency_us" => found.latency = micros(value),
            b"request_held_us" => found.request_held = micros(value),
            b"late" => found.late = value == b"true",
            b"duplicate" => found.duplicate = value == b"true",
            b"redacted" => found.redacted = count(value),
            b"len" => {
                found.len = line_members::number(value).unwrap_or(0);
                found.raw = RawBody::NotStored { len: found.len };
            }
            b"parts" => found.parts = parts(value),
            b"http" => found.http = serde_json::from_slice::<HttpHead>(value).ok(),
            b"sse" => found.sse = serde_json::from_slice::<SseFields>(value).ok(),
            b"raw" | b"raw_text" | b"raw_b64" => found.raw = raw(key, line, value)?,
            _ => {}
        }
    }
    if let Some(id) = client_id {
        found.show_client_id(id);
    }
    found.id = id.ok_or("it has no id")?;
    found.timestamp = timestamp.ok_or("it has no timestamp")?;
    found.direction = direction.ok_or("it has no direction")?;
    found.origin = origin.unwrap_or(found.direction.from().into());
    // What the proxy made or an import brought has none in its line.
    if let (Kind::Batch, true, RawBody::Json(raw)) =
        (found.kind, found.parts.is_empty(), &found.raw)
    {
        found.parts = batch_parts(&Message::parse(raw.clone()));
    }
    Ok(found)
}

/// Reads an `act` line.
pub(crate) fn verdict(line: &Bytes) -> Result<Verdict, String> {
    let mut timestamp = None;
    let mut found = Verdict {
        timestamp: SystemTime::UNIX_EPOCH,
        kind: String::new(),
        by: String::new(),
        why: String::new(),
        delay: None,
        replay_of: None,
        redacted: 0,
        original_raw: None,
        raw: None,
    };
    let mut is_edited = false;
    let mut members = LineMembers::new(line);
    while let Some(key) = members.next_key() {
        let value = members.value().ok_or("a value does not end")?;
        match key {
            b"timestamp" => timestamp = time(value),
            b"kind" => found.kind = line_members::text(value).unwrap_or_default(),
            b"by" => found.by = line_members::text(value).unwrap_or_default(),
            b"why" => found.why = line_members::text(value).unwrap_or_default(),
            b"delay_us" => found.delay = micros(value),
            b"replay_of" => {
                found.replay_of = line_members::number(value).map(|sequence| ReplayOrigin {
                    sequence,
                    is_edited: false,
                })
            }
            b"edited" => is_edited = value == b"true",
            b"redacted" => found.redacted = count(value),
            _ => match key.strip_prefix(b"original_") {
                Some(key) if key.starts_with(b"raw") => {
                    found.original_raw = Some(raw(key, line, value)?)
                }
                None if key.starts_with(b"raw") => found.raw = Some(raw(key, line, value)?),
                _ => {}
            },
        }
    }
    found.timestamp = timestamp.ok_or("it has no timestamp")?;
    if let Some(origin) = &mut found.replay_of {
        origin.is_edited = is_edited;
    }
    Ok(found)
}

fn micros(value: &[u8]) -> Option<Duration> {
    line_members::number(value).map(Duration::from_micros)
}

fn count(value: &[u8]) -> u32 {
    line_members::number(value).map_or(0, |count| u32::try_from(count).unwrap_or(u32::MAX))
}

/// The exact bytes of `raw` where it is the last member, as the recorder writes it. A line that another program has rewritten
/// may have it elsewhere; then what is left of the line is not a JSON value.
fn exact(line: &Bytes, members: &LineMembers<'_>) -> Option<Bytes> {
    let raw = line.slice_ref(members.last_value()?);
    Message::parse(raw.clone()).is_json().then_some(raw)
}

fn raw(key: &[u8], line: &Bytes, value: &[u8]) -> Result<RawBody, String> {
    match key {
        b"raw_text" => {
            let text = line_members::text(value).ok_or("raw_text is not a string")?;
            Ok(RawBody::classify(text.into_bytes().into()))
        }
        b"raw_b64" => {
            let text = line_members::string(value).ok_or("raw_b64 is not a string")?;
            let bytes = STANDARD
                .decode(text)
                .map_err(|error| format!("raw_b64: {error}"))?;
            Ok(RawBody::Binary(bytes.into()))
        }
        _ => Ok(RawBody::Json(line.slice_ref(value))),
    }
}

fn parts(value: &[u8]) -> Vec<BatchPart> {
    #[derive(Deserialize)]
    struct PartLine<'a> {
        kind: String,
        #[serde(borrow)]
        jsonrpc_id: Option<&'a serde_json::value::RawValue>,
        method: Option<String>,
        correlated_id: Option<String>,
        latency_us: Option<u64>,
    }
    let lines: Vec<PartLine<'_>> = serde_json::from_slice(value).unwrap_or_default();
    lines
        .into_iter()
        .map(|line| BatchPart {
            kind: line.kind,
            jsonrpc_id: line.jsonrpc_id.map(|token| token.get().to_owned()),
            method: line.method,
            correlated_id: line.correlated_id.and_then(|id| MessageId::parse(&id)),
            latency: line.latency_us.map(Duration::from_micros),
        })
        .collect()
}

fn time(value: &[u8]) -> Option<SystemTime> {
    timestamp::parse(std::str::from_utf8(line_members::string(value)?).ok()?)
}

fn message_id(value: &[u8]) -> Option<MessageId> {
    MessageId::parse(std::str::from_utf8(line_members::string(value)?).ok()?)
}

/// A line says who wrote it only if that was not the peer itself.
fn origin_of(value: &[u8]) -> Option<Origin> {
    let all = [
        Origin::Client,
        Origin::Server,
        Origin::Proxy,
        Origin::Replay,
    ];
    let word = line_members::string(value)?;
    all.into_iter()
        .find(|origin| origin.as_str().as_bytes() == word)
}

fn kind(value: &[u8]) -> Kind {
    match value {
        b"\"request\"" => Kind::Request,
        b"\"notification\"" => Kind::Notification,
        b"\"response\"" => Kind::Response,
        b"\"error\"" => Kind::Error,
        b"\"batch\"" => Kind::Batch,
        b"\"malformed\"" => Kind::Malformed,
        _ => Kind::Other,
    }
}
