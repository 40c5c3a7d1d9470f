//! The events of a stream: each as Chrome writes it, and together as the body that all other readers look for.

use super::entry::{comment, put, redacted_member};
use super::interventions;
use super::plan::{HarLine, read_io};
use crate::export::body::{BodyForm, copy, form, write_string};
use crate::json::push_escaped;
use crate::message::SseFields;
use crate::{Error, MessageWithContext, RawBody, SessionRecord};
use mcp_proxy_wire::json_string;
use std::cell::Cell;
use std::io::Write;
use std::time::SystemTime;

/// An event, read.
struct HarEvent {
    timestamp: SystemTime,
    sse: SseFields,
    raw: RawBody,
    redacted: u32,
    /// The message in it.
    told: Option<MessageWithContext>,
    /// An event without data is recorded as it stood on the wire.
    wire: Option<String>,
}

fn read(session: &SessionRecord, part: HarLine) -> Result<HarEvent, Error> {
    match part {
        HarLine::Row(row) => {
            let told = session.message_with_context(row as usize)?;
            let message = &told.message;
            Ok(HarEvent {
                timestamp: message.timestamp,
                sse: message.sse.clone().unwrap_or_default(),
                raw: message.raw.clone(),
                redacted: message.redacted,
                told: Some(told),
                wire: None,
            })
        }
        HarLine::Io(place) => {
            let (record, timestamp) = read_io(session, place)?;
            Ok(HarEvent {
                timestamp,
                sse: record.member("sse").unwrap_or_default(),
                raw: RawBody::Text(String::new()),
                redacted: record.member("redacted").unwrap_or(0),
                told: None,
                wire: Some(record.member("text").unwrap_or_default()),
            })
        }
    }
}

/// One event as an object of `_eventSourceMessages`. Returns whether its body is gone.
pub(super) fn write(
    session: &SessionRecord,
    part: HarLine,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let HarEvent {
        timestamp,
        sse,
        raw,
        redacted,
        told,
        ..
    } = read(session, part)?;
    let seconds = timestamp
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_micros() as f64
        / 1e6;
    put(
        out,
        &format!(
            "{{\"time\":{seconds},\"eventName\":{},\"eventId\":{},\"data\":",
            json_string(sse.event.as_deref().unwrap_or("message")),
            json_string(sse.id.as_deref().unwrap_or("")),
        ),
    )?;
    write_string(out, &raw, form(&raw), "base64:")?;
    put(out, &comment(&raw))?;
    put(out, &redacted_member(redacted))?;
    if let Some(told) = &told {
        interventions::write(told, out)?;
    }
    put(out, "}")
}

/// The stream's `text`, made again from its events. Returns its size.
pub(super) fn write_body(
    session: &SessionRecord,
    stream: &[HarLine],
    out: &mut dyn Write,
) -> Result<u64, Error> {
    if stream.is_empty() {
        return Ok(0);
    }
    for part in stream {
        if form(&read(session, *part)?.raw) == BodyForm::Binary {
            put(
                out,
                ",\"comment\":\"the stream is not UTF-8: see _eventSourceMessages\"",
            )?;
            return Ok(0);
        }
    }
    put(out, ",\"text\":\"")?;
    let mut size = 0;
    for part in stream {
        let event = read(session, *part)?;
        size += match &event.wire {
            Some(wire) => put_escaped(out, wire)?,
            None => {
                put_escaped(out, &fields(&event.sse))?
                    + put_data(out, &event.raw)?
                    + put_escaped(out, "\n\n")?
            }
        };
    }
    put(out, "\"")?;
    Ok(size)
}

/// The fields before an event's data, and the name of that.
fn fields(sse: &SseFields) -> String {
    let mut text = String::new();
    for (name, value) in [("id", &sse.id), ("event", &sse.event)] {
        if let Some(value) = value {
            text += &format!("{name}: {value}\n");
        }
    }
    if let Some(retry) = sse.retry {
        text += &format!("retry: {retry}\n");
    }
    text + "data: "
}

/// Each line of the data has the field's name before it.
fn put_data(out: &mut dyn Write, raw: &RawBody) -> Result<u64, Error> {
    if form(raw) == BodyForm::Missing {
        return Ok(0);
    }
    let size = Cell::new(0);
    copy(out, raw, |chunk, buffer| {
        for (index, line) in chunk.split(|byte| *byte == b'\n').enumerate() {
            if index > 0 {
                push_escaped(buffer, b"\ndata: ");
                size.set(size.get() + b"\ndata: ".len() as u64);
            }
            push_escaped(buffer, line);
            size.set(size.get() + line.len() as u64);
        }
    })?;
    Ok(size.get())
}

fn put_escaped(out: &mut dyn Write, text: &str) -> Result<u64, Error> {
    let mut buffer = Vec::new();
    push_escaped(&mut buffer, text.as_bytes());
    out.write_all(&buffer).map_err(Error::Output)?;
    Ok(text.len() as u64)
}
