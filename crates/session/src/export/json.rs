//! `json`: the seed's `ProxySession` with its `ProxyMessage`s.
//!
//! A message has `origin`, `parent` and `server` besides, but only where its peer did not write it, where a call caused it, and
//! where its server has a name.
//! If values were redacted, or bodies are not there (`raw` is `null` then), `metadata`, which the seed leaves open, says in which
//! messages.

use super::body::{self, has_missing_body, id, text, time, write_value};
use super::{ExportFormat, ExportSummary, report_progress};
use crate::{Error, ProxyMessage, SessionRecord};
use serde_json::{Map, Value, json};
use std::io::Write;

pub(super) const JSON: ExportFormat = ExportFormat {
    name: "json",
    extension: "json",
    about: "one JSON document: the session and its messages",
    write,
};

fn write(
    session: &SessionRecord,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ExportSummary, Error> {
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
    let mut exported = ExportSummary::default();
    for (index, message) in session.messages(0).enumerate() {
        let message = message?;
        out.write_all(if index == 0 { b"\n" } else { b",\n" })
            .map_err(Error::Output)?;
        write_message(out, session, &message)?;
        if message.redacted > 0 {
            redacted.insert(message.sequence.to_string(), message.redacted.into());
        }
        if body::missing(&message.raw).is_some() {
            missing.insert(message.sequence.to_string(), message.raw.len().into());
        }
        exported.missing += u64::from(has_missing_body(&message));
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
    writeln!(out, "\n],\"metadata\":{}}}", Value::Object(metadata)).map_err(Error::Output)?;
    Ok(exported)
}

fn write_message(
    out: &mut dyn Write,
    session: &SessionRecord,
    message: &ProxyMessage,
) -> Result<(), Error> {
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
    if !message.is_from_peer() {
        write!(out, ",\"origin\":\"{}\"", message.origin.as_str()).map_err(Error::Output)?;
    }
    if let Some(parent) = message.parent {
        write!(out, ",\"parent\":{parent}").map_err(Error::Output)?;
    }
    if let Some(server) = session.given_server_name(message.connection) {
        write!(out, ",\"server\":{}", text(Some(&server))).map_err(Error::Output)?;
    }
    out.write_all(b"}").map_err(Error::Output)
}
