//! One HAR entry.

use super::plan::{HarEntryPlan, HarLine, read_io};
use crate::export::body::{self, missing};
use crate::message::SseFields;
use crate::{Error, HttpHead, MessageWithContext, ProxyMessage, RawBody, SessionRecord, timestamp};
use mcp_proxy_wire::Transport;
use serde_json::{Map, Value, json};
use std::time::{Duration, SystemTime};

/// A line of the entry, read.
struct HarPart {
    timestamp: SystemTime,
    http: Option<HttpHead>,
    sse: SseFields,
    redacted: u32,
    /// The message in it.
    told: Option<MessageWithContext>,
    /// An event without data is recorded as it stood on the wire.
    wire: Option<String>,
}

impl HarPart {
    fn read(session: &SessionRecord, line: HarLine) -> Result<HarPart, Error> {
        match line {
            HarLine::Row(row) => {
                let told = session.message_with_context(row as usize)?;
                let message = &told.message;
                Ok(HarPart {
                    timestamp: message.timestamp,
                    http: message.http.clone(),
                    sse: message.sse.clone().unwrap_or_default(),
                    redacted: message.redacted,
                    told: Some(told),
                    wire: None,
                })
            }
            HarLine::Io(place) => {
                let (record, timestamp) = read_io(session, place)?;
                Ok(HarPart {
                    timestamp,
                    http: record.member("http"),
                    sse: record.member("sse").unwrap_or_default(),
                    redacted: record.member("redacted").unwrap_or(0),
                    told: None,
                    wire: Some(record.member("text").unwrap_or_default()),
                })
            }
        }
    }

    fn message(&self) -> Option<&ProxyMessage> {
        self.told.as_ref().map(|told| &told.message)
    }
}

/// The entry; nothing if it has no lines.
pub(super) fn entry(
    session: &SessionRecord,
    planned: &HarEntryPlan,
) -> Result<Option<Value>, Error> {
    let read = |line: &HarLine| HarPart::read(session, *line);
    let request = planned.request.as_ref().map(read).transpose()?;
    let response = planned.response.as_ref().map(read).transpose()?;
    let events: Vec<HarPart> = planned.events.iter().map(read).collect::<Result<_, _>>()?;
    let Some(start) = request.as_ref().or(response.as_ref()).or(events.first()) else {
        return Ok(None);
    };
    let last = events.last().or(response.as_ref()).unwrap_or(start);
    let total = last.timestamp.duration_since(start.timestamp);
    let total = total.unwrap_or_default();
    let (held, timings) = timings(total, request.as_ref(), response.as_ref(), &events);
    let mut entry = object(json!({
        "startedDateTime": timestamp::to_text(start.timestamp),
        "time": millis(total),
        "request": request_value(request.as_ref()),
        "response": response_value(response.as_ref(), &events),
        "cache": {},
        "timings": timings,
    }));
    let mut add = |name: &str, value: Value| entry.insert(name.to_owned(), value);
    if !held.is_zero() {
        add("_heldMs", millis(held));
    }
    let exchange: Vec<&HarPart> = [&request, &response].into_iter().flatten().collect();
    let message = exchange.iter().find_map(|part| part.message());
    if let Some(message) = message {
        add("connection", format!("c{}", message.connection).into());
        add("_transport", message.transport.as_str().into());
    }
    let message = message.or_else(|| start.message());
    let server = message.and_then(|message| session.given_server_name(message.connection));
    if let Some(server) = server {
        add("_server", server.into());
    }
    let mut messages = exchange.iter().copied().chain([start]);
    if let Some(parent) = messages.find_map(|part| part.message()?.parent) {
        add("_parent", parent.into());
    }
    let lines = exchange.iter().copied().chain(&events);
    let sequences = lines.filter_map(|part| Some(part.message()?.sequence));
    add("_sequences", sequences.collect());
    let redacted: u32 = exchange.iter().map(|part| part.redacted).sum();
    if redacted > 0 {
        add("_redacted", redacted.into());
    }
    if !events.is_empty() {
        add("_resourceType", "eventsource".into());
        add(
            "_eventSourceMessages",
            events.iter().map(event_value).collect(),
        );
    }
    Ok(Some(entry.into()))
}

fn request_value(request: Option<&HarPart>) -> Value {
    let http = request.and_then(|part| part.http.as_ref());
    let message = request.and_then(HarPart::message);
    let url = match http {
        Some(http) => url_of(http),
        None => {
            let method = message.and_then(|message| message.method.as_deref());
            // A scheme has no underscore.
            let kind = message.map_or(Transport::Stdio, |message| message.transport);
            let scheme = kind.as_str().replace('_', "-");
            format!("{scheme}://server/{}", method.unwrap_or_default())
        }
    };
    let method = http.and_then(|http| http.method.as_deref());
    let mut value = object(json!({
        "method": method.unwrap_or("POST"),
        "url": url,
        "httpVersion": version(http),
        "cookies": [],
        "headers": headers(http),
        "queryString": query(&url),
    }));
    if let Some(message) = message {
        let mut data = object(json!({"mimeType": mime(http)}));
        add_body(&mut data, &message.raw, "_encoding");
        value.insert("postData".to_owned(), data.into());
    }
    value.insert("headersSize".to_owned(), (-1).into());
    let size = message.map_or(0, |message| message.raw.len());
    value.insert("bodySize".to_owned(), size.into());
    add_interventions(&mut value, request);
    value.into()
}

fn response_value(response: Option<&HarPart>, events: &[HarPart]) -> Value {
    let http = response.and_then(|part| part.http.as_ref());
    // Status 0 is what browsers write where no response came.
    let status = http
        .and_then(|http| http.status)
        .unwrap_or(if response.is_some() { 200 } else { 0 });
    let reason = http::StatusCode::from_u16(status).ok();
    let reason = reason.and_then(|status| status.canonical_reason());
    let mut content = object(json!({"mimeType": mime(http)}));
    let size = match response.and_then(HarPart::message) {
        Some(message) => {
            add_body(&mut content, &message.raw, "encoding");
            message.raw.len()
        }
        None => add_stream(&mut content, events),
    };
    content.insert("size".to_owned(), size.into());
    let location = http.and_then(|http| http.header("location"));
    let mut value = object(json!({
        "status": status,
        "statusText": reason.unwrap_or_default(),
        "httpVersion": version(http),
        "cookies": [],
        "headers": headers(http),
        "content": content,
        "redirectURL": location.unwrap_or_default(),
        "headersSize": -1,
        "bodySize": size,
    }));
    add_interventions(&mut value, response);
    value.into()
}

/// An event as Chrome writes it.
fn event_value(event: &HarPart) -> Value {
    let time = event.timestamp.duration_since(SystemTime::UNIX_EPOCH);
    let micros = time.unwrap_or_default().as_micros();
    let data = event.message().map(|message| &message.raw);
    let mut value = object(json!({
        "time": number(micros as f64 / 1e6),
        "eventName": event.sse.event.as_deref().unwrap_or("message"),
        "eventId": event.sse.id.as_deref().unwrap_or_default(),
        "data": data.map_or_else(String::new, |raw| body::text_of(raw, "base64:")),
    }));
    if let Some(comment) = data.and_then(missing) {
        value.insert("comment".to_owned(), comment.into());
    }
    if event.redacted > 0 {
        value.insert("_redacted".to_owned(), event.redacted.into());
    }
    add_interventions(&mut value, Some(event));
    value.into()
}

/// A body as `text`, and what has to be said about it.
fn add_body(value: &mut Map<String, Value>, raw: &RawBody, encoding: &str) {
    value.insert("text".to_owned(), body::text_of(raw, "").into());
    if matches!(raw, RawBody::Binary(_)) {
        value.insert(encoding.to_owned(), "base64".into());
    }
    if let Some(comment) = missing(raw) {
        value.insert("comment".to_owned(), comment.into());
    }
}

/// The events of a stream together, as the body that all readers but Chrome look for. Returns its size.
fn add_stream(content: &mut Map<String, Value>, events: &[HarPart]) -> u64 {
    let is_binary = |event: &HarPart| {
        let message = event.message();
        message.is_some_and(|message| matches!(message.raw, RawBody::Binary(_)))
    };
    if events.iter().any(is_binary) {
        let comment = "the stream is not UTF-8: see _eventSourceMessages";
        content.insert("comment".to_owned(), comment.into());
        return 0;
    }
    if events.is_empty() {
        return 0;
    }
    let text: String = events.iter().map(event_text).collect();
    let size = text.len() as u64;
    content.insert("text".to_owned(), text.into());
    size
}

/// An event as it stood in its stream.
fn event_text(event: &HarPart) -> String {
    if let Some(wire) = &event.wire {
        return wire.clone();
    }
    let mut text = String::new();
    for (name, value) in [("id", &event.sse.id), ("event", &event.sse.event)] {
        if let Some(value) = value {
            text += &format!("{name}: {value}\n");
        }
    }
    if let Some(retry) = event.sse.retry {
        text += &format!("retry: {retry}\n");
    }
    let data = event
        .message()
        .map(|message| body::text_of(&message.raw, ""));
    for line in data.unwrap_or_default().split('\n') {
        text += &format!("data: {line}\n");
    }
    text + "\n"
}

/// What the proxy did with a message, next to the message: a member for each thing that was done, and a `comment` for people. Nothing
/// for a message that passed as it was.
fn add_interventions(value: &mut Map<String, Value>, part: Option<&HarPart>) {
    let Some(told) = part.and_then(|part| part.told.as_ref()) else {
        return;
    };
    let message = &told.message;
    let mut add = |name: &str, member: Value| value.insert(name.to_owned(), member);
    if !message.is_from_peer() {
        add("_origin", message.origin.as_str().into());
    }
    for (is, name) in [
        (message.modified, "_modified"),
        (message.dropped, "_dropped"),
        (message.refused, "_refused"),
        (message.answered, "_answered"),
        (message.undecided, "_undecided"),
        (message.delayed, "_delayed"),
        (message.redirected, "_redirected"),
        (message.late, "_late"),
        (message.duplicate, "_duplicate"),
        (told.undelivered, "_undelivered"),
    ] {
        if is {
            add(name, true.into());
        }
    }
    if let Some(origin) = message.replay_of {
        add("_replayOf", origin.sequence.into());
        if origin.is_edited {
            add("_edited", true.into());
        }
    }
    if let Some(held) = message.held {
        add("_heldMs", millis(held));
    }
    if let Some(original) = &message.original_raw {
        add("_original", body::text_of(original, "base64:").into());
    }
    let comment = comment(told);
    if !comment.is_empty() {
        add("comment", comment.into());
    }
}

/// What was done, who decided it and why.
fn comment(told: &MessageWithContext) -> String {
    let mut parts: Vec<String> = told
        .problem()
        .map(|problem| problem.what)
        .into_iter()
        .collect();
    parts.extend(told.remarks());
    for verdict in &told.message.verdicts {
        let why = match verdict.why.is_empty() {
            true => String::new(),
            false => format!(" ({})", verdict.why),
        };
        parts.push(format!("{} by {}{why}", verdict.kind, verdict.by));
    }
    parts.join("; ")
}

/// Where the time of an entry went: held at the proxy, the server's own time, and the rest of the stream. HAR wants the parts to be
/// all of it, and calls time before sending `blocked`.
fn timings(
    total: Duration,
    request: Option<&HarPart>,
    response: Option<&HarPart>,
    events: &[HarPart],
) -> (Duration, Value) {
    let asked = request.and_then(HarPart::message);
    let mut messages = events.iter().filter_map(HarPart::message);
    let answer = match (response.and_then(HarPart::message), asked) {
        (Some(response), _) => Some(response),
        (None, Some(asked)) => messages.find(|message| message.answers == Some(asked.sequence)),
        (None, None) => None,
    };
    let held = answer
        .and_then(|answer| answer.request_held)
        .or_else(|| asked.and_then(|asked| asked.held))
        .unwrap_or_default()
        .min(total);
    let rest = total - held;
    let wait = answer
        .and_then(|answer| answer.latency)
        .unwrap_or(rest)
        .min(rest);
    let mut value = Map::new();
    if !held.is_zero() {
        value.insert("blocked".to_owned(), millis(held));
    }
    value.insert("send".to_owned(), 0.into());
    value.insert("wait".to_owned(), millis(wait));
    value.insert("receive".to_owned(), millis(rest - wait));
    (held, value.into())
}

fn version(http: Option<&HttpHead>) -> &str {
    let version = http.map(|http| http.version.as_str());
    version
        .filter(|version| !version.is_empty())
        .unwrap_or("HTTP/1.1")
}

fn headers(http: Option<&HttpHead>) -> Value {
    let headers = http.into_iter().flat_map(|http| &http.headers);
    headers
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect()
}

fn url_of(http: &HttpHead) -> String {
    let target = http.target.as_deref().unwrap_or("/");
    if target.contains("://") {
        return target.to_owned();
    }
    let host = http.header("host").unwrap_or("localhost");
    format!("http://{host}{target}")
}

/// What no HTTP carried is JSON-RPC; where HTTP did not say what it is, browsers write `x-unknown`.
fn mime(http: Option<&HttpHead>) -> &str {
    match http {
        Some(http) => http.header("content-type").unwrap_or("x-unknown"),
        None => "application/json",
    }
}

fn query(url: &str) -> Value {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let members = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        json!({"name": name, "value": value})
    });
    members.collect()
}

fn millis(time: Duration) -> Value {
    number(time.as_micros() as f64 / 1e3)
}

/// A number, without a point if it is whole.
fn number(number: f64) -> Value {
    match number.fract() == 0.0 {
        true => (number as u64).into(),
        false => number.into(),
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
