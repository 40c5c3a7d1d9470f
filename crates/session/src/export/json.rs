//! `json`: the seed's `ProxySession` with its `ProxyMessage`s, and no member that these do not have.
//!
//! What else there is to say is in `metadata`, which the seed leaves open, by the numbers of the messages: under `proxy` who
//! wrote a message, what the proxy did with it, what caused it and what its server is called; under `redaction` where values were
//! hidden; under `missing` which bodies are not there (`raw` is `null` then); under `notes` what people noted.

use super::body::{self, id, text, time, write_value};
use super::{SessionExporter, report_progress};
use crate::index::Row;
use crate::{Error, ProxyMessage, SessionNote, SessionRecord, Verdict, timestamp};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::time::Duration;

pub(super) const JSON: SessionExporter = SessionExporter {
    name: "json",
    extension: "json",
    about: "one JSON document: the session and its messages",
    write,
};

fn write(
    session: &SessionRecord,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Error> {
    let head = session.session();
    write!(
        out,
        "{{\"id\":{},\"started_at\":{},\"ended_at\":{},\"transport\":\"{}\",\"server_command\":{},\"server_url\":{},\"messages\":[",
        text(Some(&head.id)),
        time(head.started_at),
        head.ended_at.map_or_else(|| "null".to_owned(), time),
        head.transport,
        text(head.server_command.as_deref()),
        text(head.server_url.as_deref()),
    )
    .map_err(Error::Output)?;
    let mut redacted = Map::new();
    let mut missing = Map::new();
    for (index, message) in session.messages(0).enumerate() {
        let message = message?;
        out.write_all(if index == 0 { b"\n" } else { b",\n" })
            .map_err(Error::Output)?;
        write_message(out, &message)?;
        if message.redacted > 0 {
            redacted.insert(message.sequence.to_string(), message.redacted.into());
        }
        if body::missing(&message.raw).is_some() {
            missing.insert(message.sequence.to_string(), message.raw.len().into());
        }
        report_progress(index + 1, session.len(), progress);
    }
    let mut metadata = head.metadata;
    if let Some(facts) = session.redaction().filter(|_| !redacted.is_empty()) {
        metadata.insert(
            "redaction".to_owned(),
            json!({"nonce": facts.nonce, "redacted": redacted}),
        );
    }
    if !missing.is_empty() {
        metadata.insert("missing".to_owned(), missing.into());
    }
    let notes = session.notes()?;
    if !notes.is_empty() {
        let notes: Vec<Value> = notes.iter().map(SessionNote::to_json).collect();
        metadata.insert("notes".to_owned(), notes.into());
    }
    write_metadata(out, session, metadata)
}

fn write_message(out: &mut dyn Write, message: &ProxyMessage) -> Result<(), Error> {
    write!(
        out,
        "{{\"id\":\"{}\",\"sequence\":{},\"timestamp\":{},\"direction\":\"{}\",\"transport\":\"{}\",\"raw\":",
        message.id,
        message.sequence,
        time(message.timestamp),
        message.direction,
        message.transport,
    )
    .map_err(Error::Output)?;
    write_value(out, &message.raw)?;
    write!(
        out,
        ",\"jsonrpc_id\":{},\"method\":{},\"correlated_id\":{},\"modified\":{},\"original_raw\":",
        message.jsonrpc_id.as_deref().unwrap_or("null"),
        text(message.method.as_deref()),
        id(message.correlated_id),
        message.modified,
    )
    .map_err(Error::Output)?;
    match &message.original_raw {
        Some(raw) => write_value(out, raw)?,
        None => out.write_all(b"null").map_err(Error::Output)?,
    }
    out.write_all(b"}").map_err(Error::Output)
}

/// The session's metadata, and under `proxy` what is to be said about messages, written row by row.
fn write_metadata(
    out: &mut dyn Write,
    session: &SessionRecord,
    metadata: Map<String, Value>,
) -> Result<(), Error> {
    let mut document = Value::Object(metadata).to_string();
    document.pop();
    let separator = if document.len() > 1 { "," } else { "" };
    write!(out, "\n],\"metadata\":{document}").map_err(Error::Output)?;
    let mut opening = format!("{separator}\"proxy\":{{");
    let mut closing = "";
    for (index, row) in session.rows().iter().enumerate() {
        let facts = proxy_facts(session, index, row)?;
        if !facts.is_empty() {
            let facts = Value::Object(facts);
            write!(out, "{opening}\n\"{}\":{facts}", row.sequence()).map_err(Error::Output)?;
            opening = ",".to_owned();
            closing = "}";
        }
    }
    writeln!(out, "{closing}}}}}").map_err(Error::Output)
}

/// What is to be said about one message. Most have nothing, and are not read again for that.
fn proxy_facts(
    session: &SessionRecord,
    index: usize,
    row: &Row,
) -> Result<Map<String, Value>, Error> {
    let mut facts = Map::new();
    let mut add = |name: &str, value: Value| facts.insert(name.to_owned(), value);
    if !row.is_from_peer() {
        add("origin", row.origin().as_str().into());
    }
    if let Some(parent) = row.parent() {
        add("parent", parent.into());
    }
    if let Some(server) = session.given_server_name(row.connection()) {
        add("server", server.into());
    }
    for (is, name) in [
        (row.is_late(), "late"),
        (row.is_duplicate(), "duplicate"),
        (row.is_undelivered(), "undelivered"),
    ] {
        if is {
            add(name, true.into());
        }
    }
    let request = row.peer().and_then(|peer| session.row(peer));
    let answers_held = row.latency().is_some()
        && request.is_some_and(|asked| asked.is_held() || asked.is_delayed());
    if session.has_verdicts(index) || answers_held {
        let message = session.message(index)?;
        for (is, name) in [
            (message.dropped, "dropped"),
            (message.refused, "refused"),
            (message.answered, "answered"),
            (message.undecided, "undecided"),
            (message.delayed, "delayed"),
            (message.redirected, "redirected"),
        ] {
            if is {
                add(name, true.into());
            }
        }
        if let Some(origin) = message.replay_of {
            add("replay_of", origin.sequence.into());
            if origin.is_edited {
                add("edited", true.into());
            }
        }
        if let Some(held) = message.held {
            add("held_ms", millis(held));
        }
        if let Some(held) = message.request_held {
            add("request_held_ms", millis(held));
        }
        if !message.verdicts.is_empty() {
            let verdicts: Vec<Value> = message.verdicts.iter().map(verdict).collect();
            add("verdicts", verdicts.into());
        }
    }
    Ok(facts)
}

fn verdict(verdict: &Verdict) -> Value {
    let mut members = json!({
        "timestamp": timestamp::to_text(verdict.timestamp),
        "kind": verdict.kind,
        "by": verdict.by,
        "why": verdict.why,
    });
    if let (Some(delay), Some(members)) = (verdict.delay, members.as_object_mut()) {
        members.insert("delay_ms".to_owned(), millis(delay));
    }
    members
}

pub(super) fn millis(time: Duration) -> Value {
    (time.as_micros() as f64 / 1000.0).into()
}
