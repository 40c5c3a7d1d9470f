//! One HAR entry.

use super::plan::{HarEntryPlan, HarLine, read_io};
use super::timings::{Timings, millis};
use super::{events, interventions};
use crate::export::body::{BodyForm, form, missing, time, write_string};
use crate::{Error, HttpHead, MessageWithContext, ProxyMessage, RawBody, SessionRecord};
use mcp_proxy_wire::{Transport, json_string};
use std::io::Write;
use std::time::SystemTime;

/// A part of the entry, read: its time, its HTTP facts, and its message if it has one.
struct HarEntryPart {
    timestamp: SystemTime,
    http: Option<HttpHead>,
    told: Option<MessageWithContext>,
}

impl HarEntryPart {
    fn message(&self) -> Option<&ProxyMessage> {
        self.told.as_ref().map(|told| &told.message)
    }
}

/// Writes an entry. Returns how many of its bodies are gone.
pub(super) fn write(
    session: &SessionRecord,
    planned: &HarEntryPlan,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let request = planned
        .request
        .map(|part| read(session, part))
        .transpose()?;
    let response = planned
        .response
        .map(|part| read(session, part))
        .transpose()?;
    let first = match planned.events.first() {
        Some(part) if request.is_none() && response.is_none() => Some(read(session, *part)?),
        _ => None,
    };
    let Some(start) = request.as_ref().or(response.as_ref()).or(first.as_ref()) else {
        return Ok(());
    };
    let last = match (planned.events.last(), &response) {
        (Some(part), _) => read(session, *part)?.timestamp,
        (None, Some(response)) => response.timestamp,
        (None, None) => start.timestamp,
    };
    let total = last.duration_since(start.timestamp).unwrap_or_default();
    let asked = request.as_ref().and_then(HarEntryPart::message);
    let answer = response.as_ref().and_then(HarEntryPart::message);
    let timings = Timings::new(session, total, asked, answer, &planned.events)?;
    put(
        out,
        &format!(
            "{{\"startedDateTime\":{},\"time\":{},\"request\":",
            time(start.timestamp),
            millis(total)
        ),
    )?;
    write_request(request.as_ref(), out)?;
    put(out, ",\"response\":")?;
    write_response(session, response.as_ref(), &planned.events, out)?;
    put(out, &timings.members())?;
    if let Some(message) = [&request, &response]
        .into_iter()
        .flatten()
        .find_map(HarEntryPart::message)
    {
        put(
            out,
            &format!(
                ",\"connection\":\"c{}\",\"_transport\":\"{}\"",
                message.connection, message.transport
            ),
        )?;
    }
    let messages = || {
        let parts = [&request, &response, &first].into_iter().flatten();
        parts.filter_map(HarEntryPart::message)
    };
    let server = messages()
        .next()
        .and_then(|message| session.given_server_name(message.connection));
    if let Some(server) = server {
        put(out, &format!(",\"_server\":{}", json_string(&server)))?;
    }
    let parent = messages().find_map(|message| message.parent);
    if let Some(parent) = parent {
        put(out, &format!(",\"_parent\":{parent}"))?;
    }
    let lines = planned.request.iter().chain(&planned.response);
    let sequences: Vec<String> = lines
        .chain(&planned.events)
        .filter_map(|line| match line {
            HarLine::Row(row) => session.row(*row as usize),
            HarLine::Io(_) => None,
        })
        .map(|row| row.sequence().to_string())
        .collect();
    put(out, &format!(",\"_sequences\":[{}]", sequences.join(",")))?;
    let redacted: u32 = [&request, &response]
        .into_iter()
        .flatten()
        .filter_map(HarEntryPart::message)
        .map(|message| message.redacted)
        .sum();
    put(out, &redacted_member(redacted))?;
    if !planned.events.is_empty() {
        put(
            out,
            ",\"_resourceType\":\"eventsource\",\"_eventSourceMessages\":[",
        )?;
        for (index, part) in planned.events.iter().enumerate() {
            put(out, if index == 0 { "" } else { "," })?;
            events::write(session, *part, out)?;
        }
        put(out, "]")?;
    }
    put(out, "}")
}

fn read(session: &SessionRecord, part: HarLine) -> Result<HarEntryPart, Error> {
    match part {
        HarLine::Row(row) => {
            let told = session.message_with_context(row as usize)?;
            Ok(HarEntryPart {
                timestamp: told.message.timestamp,
                http: told.message.http.clone(),
                told: Some(told),
            })
        }
        HarLine::Io(place) => {
            let (record, timestamp) = read_io(session, place)?;
            Ok(HarEntryPart {
                timestamp,
                http: record.member("http"),
                told: None,
            })
        }
    }
}

fn write_request(request: Option<&HarEntryPart>, out: &mut dyn Write) -> Result<(), Error> {
    let http = request.and_then(|read| read.http.as_ref());
    let message = request.and_then(HarEntryPart::message);
    let url = match http {
        Some(http) => url_of(http),
        None => {
            let word = message
                .and_then(|message| message.method.as_deref())
                .unwrap_or("");
            // A scheme has no underscore.
            let kind = message.map_or(Transport::Stdio, |message| message.transport);
            format!("{}://server/{word}", kind.to_string().replace('_', "-"))
        }
    };
    put(
        out,
        &format!(
            "{{\"method\":{},",
            json_string(
                http.and_then(|http| http.method.as_deref())
                    .unwrap_or("POST")
            )
        ),
    )?;
    put(out, &format!("\"url\":{},", json_string(&url)))?;
    write_version_and_headers(http, out)?;
    put(out, &format!(",\"queryString\":[{}]", query(&url)))?;
    if let Some(message) = message {
        let form = form(&message.raw);
        put(
            out,
            &format!(
                ",\"postData\":{{\"mimeType\":{},\"text\":",
                json_string(mime(http))
            ),
        )?;
        write_string(out, &message.raw, form, "")?;
        if form == BodyForm::Binary {
            put(out, ",\"_encoding\":\"base64\"")?;
        }
        put(out, &comment(&message.raw))?;
        put(out, "}")?;
    }
    put(
        out,
        &format!(
            ",\"headersSize\":-1,\"bodySize\":{}",
            message.map_or(0, |message| message.raw.len()),
        ),
    )?;
    if let Some(told) = request.and_then(|read| read.told.as_ref()) {
        interventions::write(told, out)?;
    }
    put(out, "}")
}

fn write_response(
    session: &SessionRecord,
    response: Option<&HarEntryPart>,
    stream: &[HarLine],
    out: &mut dyn Write,
) -> Result<(), Error> {
    let http = response.and_then(|read| read.http.as_ref());
    let message = response.and_then(HarEntryPart::message);
    // Status 0 is what browsers write where no response came.
    let status = http
        .and_then(|http| http.status)
        .unwrap_or(if response.is_some() { 200 } else { 0 });
    let reason = http::StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or("");
    put(
        out,
        &format!("{{\"status\":{status},\"statusText\":\"{reason}\","),
    )?;
    write_version_and_headers(http, out)?;
    put(
        out,
        &format!(",\"content\":{{\"mimeType\":{}", json_string(mime(http))),
    )?;
    let size = match message {
        Some(message) => {
            let form = form(&message.raw);
            put(out, ",\"text\":")?;
            write_string(out, &message.raw, form, "")?;
            if form == BodyForm::Binary {
                put(out, ",\"encoding\":\"base64\"")?;
            }
            put(out, &comment(&message.raw))?;
            message.raw.len()
        }
        None => events::write_body(session, stream, out)?,
    };
    let location = http.and_then(|http| http.header("location")).unwrap_or("");
    put(
        out,
        &format!(
            ",\"size\":{size}}},\"redirectURL\":{},\"headersSize\":-1,\"bodySize\":{size}",
            json_string(location),
        ),
    )?;
    if let Some(told) = response.and_then(|read| read.told.as_ref()) {
        interventions::write(told, out)?;
    }
    put(out, "}")
}

fn write_version_and_headers(http: Option<&HttpHead>, out: &mut dyn Write) -> Result<(), Error> {
    let version = http
        .map(|http| http.version.as_str())
        .filter(|version| !version.is_empty())
        .unwrap_or("HTTP/1.1");
    let headers: Vec<String> = http
        .into_iter()
        .flat_map(|http| &http.headers)
        .map(|(name, value)| {
            format!(
                "{{\"name\":{},\"value\":{}}}",
                json_string(name),
                json_string(value)
            )
        })
        .collect();
    put(
        out,
        &format!(
            "\"httpVersion\":{},\"cookies\":[],\"headers\":[{}]",
            json_string(version),
            headers.join(",")
        ),
    )
}

fn url_of(http: &HttpHead) -> String {
    let target = http.target.as_deref().unwrap_or("/");
    if target.contains("://") {
        return target.to_owned();
    }
    format!(
        "http://{}{target}",
        http.header("host").unwrap_or("localhost")
    )
}

/// What no HTTP carried is JSON-RPC; where HTTP did not say what it is, browsers write `x-unknown`.
fn mime(http: Option<&HttpHead>) -> &str {
    match http {
        Some(http) => http.header("content-type").unwrap_or("x-unknown"),
        None => "application/json",
    }
}

fn query(url: &str) -> String {
    let Some((_, query)) = url.split_once('?') else {
        return String::new();
    };
    let pairs: Vec<String> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            format!(
                "{{\"name\":{},\"value\":{}}}",
                json_string(name),
                json_string(value)
            )
        })
        .collect();
    pairs.join(",")
}

/// HAR's `comment`, where there is no body to show.
pub(super) fn comment(raw: &RawBody) -> String {
    missing(raw).map_or_else(String::new, |text| {
        format!(",\"comment\":{}", json_string(&text))
    })
}

/// `_redacted`, if anything is.
pub(super) fn redacted_member(redacted: u32) -> String {
    match redacted {
        0 => String::new(),
        count => format!(",\"_redacted\":{count}"),
    }
}

pub(super) fn put(out: &mut dyn Write, text: &str) -> Result<(), Error> {
    out.write_all(text.as_bytes()).map_err(Error::Output)
}
