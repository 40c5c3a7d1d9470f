//! One message in full: what is known about it, how it was carried, and its body laid out.

use std::io::Write;

use anyhow::Result;
use mcp_proxy_session::{
    MessageWithContext, ProxyMessage, RawBody, Row, SessionRecord, SseFields, Verdict,
};
use mcp_proxy_tui::{BodyLayout, plain};
use mcp_proxy_wire::Message;

use super::event_line::head_line;
use crate::run::sessions::{formatting, table};
use mcp_proxy_wire::terminal_text::{sanitize, sanitize_bytes};

/// A body over this is shown by its beginning.
const WHOLE: usize = 1 << 20;
const BEGINNING: usize = 16 << 10;
/// Messages that a call caused are listed up to this many.
const CAUSED: usize = 20;

/// Writes the message of row `index`.
pub fn write(session: &SessionRecord, index: usize, out: &mut impl Write) -> Result<()> {
    let told = session.message_with_context(index)?;
    let message = &told.message;
    let row = session.row(index);
    let peer = row.and_then(Row::peer).and_then(|peer| session.row(peer));
    let title = table::message_title(message, told.request.as_ref());
    writeln!(
        out,
        "#{} {} {title}",
        message.sequence,
        formatting::arrow(message.direction)
    )?;
    facts(&told, peer, out)?;
    causes(session, message, out)?;
    envelope(session, index, message, out)?;
    for verdict in &message.verdicts {
        fact(out, "verdict", &verdict_line(verdict))?;
    }
    for part in &message.parts {
        let mut text = part.kind.clone();
        for word in [&part.method, &part.jsonrpc_id].into_iter().flatten() {
            text = format!("{text} {word}");
        }
        let latency = part
            .latency
            .map(|latency| format!(" after {}", formatting::span(latency)))
            .unwrap_or_default();
        fact(out, "part", &format!("{}{latency}", sanitize(&text)))?;
    }
    if let Some(original) = &message.original_raw {
        writeln!(out, "\nas received:")?;
        body(original, out)?;
        writeln!(out, "\nas forwarded:")?;
    } else {
        writeln!(out)?;
    }
    body(&message.raw, out)?;
    writeln!(out)?;
    Ok(())
}

fn facts(told: &MessageWithContext, peer: Option<&Row>, out: &mut impl Write) -> Result<()> {
    let message = &told.message;
    fact(out, "id", &message.id.to_string())?;
    fact(
        out,
        "received",
        &format!(
            "{} (+{})",
            formatting::stamp(message.timestamp),
            formatting::span(message.mono)
        ),
    )?;
    fact(
        out,
        "direction",
        &message.direction.as_str().replace('_', " "),
    )?;
    let (connection, exchange) = (message.connection, message.exchange);
    fact(
        out,
        "read from",
        &format!(
            "{}, connection c{connection}, exchange {exchange}",
            message.transport
        ),
    )?;
    fact(out, "kind", message.kind.as_str())?;
    if let Some(token) = &message.jsonrpc_id {
        let at_server = message.server_id.as_ref();
        let at_server = at_server.map(|token| format!(" ({token} at the server)"));
        let text = format!("{token}{}", at_server.unwrap_or_default());
        fact(out, "JSON-RPC id", &sanitize(&text))?;
    }
    match (message.answers, peer) {
        (Some(request), _) => {
            let latency = message
                .latency
                .map(|latency| format!(" after {}", formatting::span(latency)));
            let held = message
                .request_held
                .map(|held| format!(" (the request was held {} before)", formatting::span(held)));
            let (latency, held) = (latency.unwrap_or_default(), held.unwrap_or_default());
            fact(out, "answers", &format!("#{request}{latency}{held}"))?;
        }
        (None, Some(answer)) => {
            let latency = answer
                .latency()
                .map(|latency| format!(" after {}", formatting::span(latency)));
            fact(
                out,
                "answered by",
                &format!("#{}{}", answer.sequence(), latency.unwrap_or_default()),
            )?;
        }
        (None, None) => {}
    }
    fact(out, "size", &format!("{} bytes", message.len))?;
    let (trouble, remarks) = table::remarks(told);
    for text in [trouble, remarks].iter().filter(|text| !text.is_empty()) {
        fact(out, "remark", text)?;
    }
    Ok(())
}

/// Who its connection is between, which call caused it, and what it caused itself.
fn causes(session: &SessionRecord, message: &ProxyMessage, out: &mut impl Write) -> Result<()> {
    if let Some(connection) = session.connection(message.connection)
        && let (Some(client), Some(server)) = (connection.client, connection.server)
    {
        fact(out, "between", &sanitize(&format!("{client} ► {server}")))?;
    }
    if let Some(parent) = message.parent {
        fact(out, "caused by", &format!("#{parent}"))?;
    }
    let caused: Vec<usize> = session.caused_by(message.sequence).collect();
    let numbers: Vec<String> = caused
        .iter()
        .take(CAUSED)
        .filter_map(|row| session.row(*row))
        .map(|row| format!("#{}", row.sequence()))
        .collect();
    if !numbers.is_empty() {
        let rest = match caused.len() - numbers.len() {
            0 => String::new(),
            rest => format!(" and {rest} more"),
        };
        fact(out, "caused", &format!("{}{rest}", numbers.join(", ")))?;
    }
    Ok(())
}

fn envelope(
    session: &SessionRecord,
    index: usize,
    message: &ProxyMessage,
    out: &mut impl Write,
) -> Result<()> {
    // An event has no head of its own; its stream has.
    let stream = session.event_stream_head(index, message);
    if let Some(http) = message.http.as_ref().or(stream.as_ref()) {
        fact(out, "HTTP", &sanitize(&head_line(http)))?;
        for (name, value) in &http.headers {
            fact(out, "", &sanitize(&format!("{name}: {value}")))?;
        }
    }
    if let Some(sse) = &message.sse {
        fact(out, "SSE", &event(sse))?;
    }
    Ok(())
}

fn event(sse: &SseFields) -> String {
    let mut told = Vec::new();
    told.extend(sse.id.as_ref().map(|id| format!("id {}", sanitize(id))));
    told.extend(
        sse.event
            .as_ref()
            .map(|event| format!("event {}", sanitize(event))),
    );
    told.extend(sse.retry.map(|retry| format!("retry {retry} ms")));
    if sse.partial {
        told.push("the stream ended inside it".to_owned());
    }
    if told.is_empty() {
        "an event without fields of its own".to_owned()
    } else {
        told.join(", ")
    }
}

fn verdict_line(verdict: &Verdict) -> String {
    let time = formatting::time_of_day(verdict.timestamp);
    let done = format!(
        "{} by {} at {time}",
        sanitize(&verdict.kind),
        sanitize(&verdict.by)
    );
    match verdict.why.is_empty() {
        true => done,
        false => format!("{done}: {}", sanitize(&verdict.why)),
    }
}

fn fact(out: &mut impl Write, name: &str, value: &str) -> Result<()> {
    writeln!(out, "  {name:<12} {value}")?;
    Ok(())
}

fn body(raw: &RawBody, out: &mut impl Write) -> Result<()> {
    let bytes = raw.to_bytes();
    match raw {
        RawBody::NotStored { len } => writeln!(
            out,
            "({len} bytes that are not in the record: redaction could not look through them, or an older version kept them in another file)"
        )?,
        _ if bytes.len() > WHOLE => {
            let (start, rest) = bytes.split_at(BEGINNING);
            writeln!(out, "{}", sanitize_bytes(start))?;
            writeln!(
                out,
                "… and {} more bytes: --raw prints all of them",
                rest.len()
            )?;
        }
        _ => {
            let message = Message::parse(bytes);
            match message.is_json() {
                true => writeln!(out, "{}", plain(&BodyLayout::of(message.raw())))?,
                false => writeln!(out, "{}", sanitize_bytes(message.raw()))?,
            }
        }
    }
    Ok(())
}
