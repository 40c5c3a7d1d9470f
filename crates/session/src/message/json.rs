//! A message as one line of JSON, and back: everything that is known about it, under the names the record uses.
//!
//! This is what `inspect --json` prints and what the control socket answers. Unlike the record's own line, verdicts are
//! folded in: `raw` is what was forwarded, `original_raw` what was received. Bodies and ids are put in as they are, never parsed
//! and serialised again.

use super::{BatchPart, HttpHead, ProxyMessage, RawBody, SseFields, Verdict};
use crate::{RecordedLine, ReplayOrigin, timestamp};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use mcp_proxy_wire::{Message, json_string};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// A message together with what only its neighbours in the record tell.
#[derive(Debug, Clone)]
pub struct MessageWithContext {
    /// The message.
    pub message: ProxyMessage,
    /// What the server of its connection is called.
    pub server: Option<String>,
    /// It could not be delivered.
    pub undelivered: bool,
    /// For an answer: what it answers.
    pub request: Option<RequestSummary>,
}

/// What the request was that a message answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestSummary {
    /// Its method.
    pub method: String,
    /// Its tool, prompt or resource.
    pub name: Option<String>,
}

/// Whether a line carries the bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyInclusion {
    /// With `raw` and `original_raw`.
    Include,
    /// Without: for lists.
    Omit,
}

impl MessageWithContext {
    /// One line of JSON, without a newline.
    pub fn to_json(&self, bodies: BodyInclusion) -> Vec<u8> {
        let message = &self.message;
        let mut line = JsonObjectWriter(Vec::new());
        line.value("t", "msg");
        line.value("timestamp", timestamp::to_text(message.timestamp));
        line.value("sequence", message.sequence);
        line.value("id", message.id.to_string());
        line.value(
            "mono_ns",
            u64::try_from(message.mono.as_nanos()).unwrap_or(u64::MAX),
        );
        line.value("direction", message.direction.as_str());
        line.value("transport", message.transport.as_str());
        line.value("conn", format!("c{}", message.connection));
        line.some("server", self.server.as_deref());
        line.value("exchange", message.exchange);
        line.value("kind", message.kind.as_str());
        if let Some(token) = &message.jsonrpc_id {
            line.verbatim("jsonrpc_id", token.as_bytes());
        }
        if let Some(token) = &message.server_id {
            line.verbatim("server_id", token.as_bytes());
        }
        line.some("method", message.method.as_deref());
        line.some("name", message.name.as_deref());
        line.some(
            "correlated_id",
            message.correlated_id.map(|id| id.to_string()),
        );
        line.some("answers", message.answers);
        line.some("parent", message.parent);
        if let Some(asked) = &self.request {
            let asked = json!({"method": asked.method, "name": asked.name});
            line.value("asked", asked);
        }
        line.some("latency_us", message.latency.map(micros));
        line.some("request_held_us", message.request_held.map(micros));
        line.some("held_us", message.held.map(micros));
        line.value("modified", message.modified);
        self.flags(&mut line);
        if let Some(origin) = message.replay_of {
            line.value("replay_of", origin.sequence);
            if origin.is_edited {
                line.value("edited", true);
            }
        }
        if message.redacted > 0 {
            line.value("redacted", message.redacted);
        }
        line.value("len", message.len);
        if !message.parts.is_empty() {
            line.parts(&message.parts);
        }
        line.some("http", message.http.as_ref().map(http));
        line.some("sse", message.sse.as_ref().map(sse));
        if !message.verdicts.is_empty() {
            line.value(
                "verdicts",
                message.verdicts.iter().map(verdict).collect::<Vec<_>>(),
            );
        }
        if bodies == BodyInclusion::Include {
            if let Some(original) = &message.original_raw {
                line.body("original_", original);
            }
            line.body("", &message.raw);
        }
        line.0.push(b'}');
        line.0
    }

    /// Reads such a line back.
    pub fn from_json(line: &Bytes) -> Result<MessageWithContext, String> {
        let mut message = crate::session_record::read_line(line)?;
        let record = RecordedLine {
            offset: 0,
            line: line.clone(),
        };
        let flag = |name: &str| record.member::<bool>(name).unwrap_or(false);
        message.modified = flag("modified");
        message.dropped = flag("dropped");
        message.refused = flag("refused");
        message.answered = flag("answered");
        message.undecided = flag("undecided");
        message.delayed = flag("delayed");
        message.redirected = flag("redirected");
        message.replay_of = record.member("replay_of").map(|sequence| ReplayOrigin {
            sequence,
            is_edited: flag("edited"),
        });
        message.held = record.member("held_us").map(Duration::from_micros);
        let asked = record.member::<Value>("asked");
        Ok(MessageWithContext {
            message,
            server: record.member("server"),
            undelivered: flag("undelivered"),
            request: asked.and_then(|asked| {
                Some(RequestSummary {
                    method: asked.get("method")?.as_str()?.to_owned(),
                    name: asked.get("name")?.as_str().map(str::to_owned),
                })
            }),
        })
    }

    fn flags(&self, line: &mut JsonObjectWriter) {
        let message = &self.message;
        let flags = [
            ("dropped", message.dropped),
            ("refused", message.refused),
            ("answered", message.answered),
            ("undecided", message.undecided),
            ("delayed", message.delayed),
            ("redirected", message.redirected),
            ("late", message.late),
            ("duplicate", message.duplicate),
            ("undelivered", self.undelivered),
        ];
        for (name, _) in flags.iter().filter(|(_, is)| *is) {
            line.value(name, true);
        }
        if !message.is_from_peer() {
            line.value("origin", message.origin.as_str());
        }
    }
}

/// A body as a member of a JSON object, as the record does it: `"raw":…` byte for byte, else `raw_text` or `raw_b64`. One that was
/// not stored is `null`.
pub fn raw_member(raw: &RawBody) -> Vec<u8> {
    let mut line = JsonObjectWriter(Vec::new());
    match raw {
        RawBody::NotStored { .. } => line.verbatim("raw", b"null"),
        stored => line.body("", stored),
    }
    line.0.split_off(1)
}

/// A JSON object in the making.
struct JsonObjectWriter(Vec<u8>);

impl JsonObjectWriter {
    fn verbatim(&mut self, key: &str, json: &[u8]) {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        self.0.extend_from_slice(json_string(key).as_bytes());
        self.0.push(b':');
        self.0.extend_from_slice(json);
    }

    fn value(&mut self, key: &str, value: impl Into<Value>) {
        self.verbatim(key, value.into().to_string().as_bytes());
    }

    fn some(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.value(key, value);
        }
    }

    fn parts(&mut self, parts: &[BatchPart]) {
        let mut list = vec![b'['];
        for part in parts {
            let mut line = JsonObjectWriter(Vec::new());
            line.value("kind", part.kind.as_str());
            if let Some(token) = &part.jsonrpc_id {
                line.verbatim("jsonrpc_id", token.as_bytes());
            }
            line.some("method", part.method.as_deref());
            line.some("correlated_id", part.correlated_id.map(|id| id.to_string()));
            line.some("latency_us", part.latency.map(micros));
            line.0.push(b'}');
            if list.len() > 1 {
                list.push(b',');
            }
            list.extend_from_slice(&line.0);
        }
        list.push(b']');
        self.verbatim("parts", &list);
    }

    /// As the record does it: `raw` byte for byte, else `raw_text` or `raw_b64`.
    fn body(&mut self, prefix: &str, raw: &RawBody) {
        let key = |ending: &str| format!("{prefix}raw{ending}");
        match raw {
            RawBody::Json(bytes) if Message::parse(bytes.clone()).fits_in_json_line() => {
                self.verbatim(&key(""), bytes)
            }
            RawBody::Json(bytes) => self.value(&key("_text"), String::from_utf8_lossy(bytes)),
            RawBody::Text(text) => self.value(&key("_text"), text.as_str()),
            RawBody::Binary(bytes) => self.value(&key("_b64"), STANDARD.encode(bytes)),
            RawBody::NotStored { .. } => {}
        }
    }
}

fn http(http: &HttpHead) -> Value {
    let mut members = Map::new();
    members.extend(
        http.method
            .as_ref()
            .map(|method| ("method".to_owned(), json!(method))),
    );
    members.extend(
        http.target
            .as_ref()
            .map(|target| ("target".to_owned(), json!(target))),
    );
    members.extend(
        http.status
            .map(|status| ("status".to_owned(), json!(status))),
    );
    members.insert("version".to_owned(), json!(http.version));
    members.insert("headers".to_owned(), json!(http.headers));
    Value::Object(members)
}

fn sse(sse: &SseFields) -> Value {
    json!({"id": sse.id, "event": sse.event, "retry": sse.retry, "partial": sse.partial})
}

fn verdict(verdict: &Verdict) -> Value {
    let time = timestamp::to_text(verdict.timestamp);
    json!({"timestamp": time, "kind": verdict.kind, "by": verdict.by, "why": verdict.why})
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
