//! Redaction of lines that are written already: what an export with rules of its own shows of a record.
//!
//! A line is rewritten member by member. Its bodies are looked through like those of new messages, and the head tells what the
//! body tells now. What needs no change is copied as it stands.

use super::{Redaction, repeats_body};
use crate::REDACTED_CREDENTIAL;
use crate::json::{push_base64, push_escaped, push_octets, push_string, push_u64};
use crate::line_members::{self, LineMembers};
use crate::message::RawBody;
use crate::recorder::subject_name;
use crate::session_record::read;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use mcp_proxy_wire::Message;
use serde_json::{Map, Value};

/// A line in the making.
struct RedactedLineWriter<'a> {
    redaction: &'a Redaction,
    out: Vec<u8>,
    /// Values hidden so far, before and now.
    count: u32,
    /// Whether some of them were in the body, and now.
    body_hidden: bool,
}

/// A body, looked through.
enum RedactedBody {
    Shown(Message),
    /// Never stored, or of a form that cannot be looked through.
    Withheld(u64),
}

impl Redaction {
    /// The line as it may be shown.
    pub(crate) fn line(&self, line: &Bytes) -> Bytes {
        let rewritten = match line_members::record_type(line) {
            Some(b"session") => self.session_line(line),
            Some(b"msg") => self.message_line(line),
            Some(b"act") => self.act_line(line),
            Some(_) => self.other_line(line),
            None => match self.message(&Message::parse(line.clone())) {
                Some(redacted) => return redacted.message.into_raw(),
                None => return line.clone(),
            },
        };
        rewritten.into()
    }

    /// Hides what a session's header must not tell, and says what was asked for.
    pub(crate) fn header(&self, line: &mut Map<String, Value>) {
        for key in ["client", "server", "server_command", "server_url", "argv"] {
            if let Some(value) = line.get_mut(key) {
                self.mask_strings(value);
            }
        }
        if let Ok(facts) = serde_json::to_value(self.facts()) {
            line.insert("redaction".to_owned(), facts);
        }
    }

    fn session_line(&self, line: &[u8]) -> Vec<u8> {
        match serde_json::from_slice(line) {
            Ok(Value::Object(mut members)) => {
                self.header(&mut members);
                Value::Object(members).to_string().into_bytes()
            }
            _ => line.to_vec(),
        }
    }

    fn message_line(&self, line: &Bytes) -> Vec<u8> {
        let Ok(message) = read::message(line) else {
            return self.other_line(line);
        };
        let mut new = RedactedLineWriter::new(self, message.redacted);
        let encoding = message
            .http
            .as_ref()
            .and_then(|http| http.header("content-encoding"));
        let encoded = encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case("identity"));
        let body = match encoded {
            true => new.withhold(&message.raw),
            false => new.look_through(&message.raw),
        };
        new.body_hidden = new.count > message.redacted;
        let mut members = LineMembers::new(line);
        while let Some(key) = members.next_key() {
            if matches!(key, b"raw" | b"raw_text" | b"raw_b64") {
                break;
            }
            let Some(value) = members.value() else { break };
            match (key, &body) {
                (b"redacted", _) => {}
                (b"len", _) => {
                    new.redacted_count();
                    new.key(b"len");
                    push_u64(&mut new.out, body.len());
                }
                (b"client_id", _) => {
                    // A mark here would have no number: what has to be hidden is left out.
                    let token = Message::parse(Bytes::copy_from_slice(value));
                    if self.message(&token).is_none() {
                        new.copy(key, value);
                    }
                }
                (b"jsonrpc_id" | b"method" | b"name", RedactedBody::Shown(left))
                    if new.body_hidden =>
                {
                    new.head(key, left);
                }
                (b"parts", RedactedBody::Shown(left)) if new.body_hidden => new.parts(value, left),
                (b"http" | b"sse", _) => new.envelope(key, value),
                _ => new.copy(key, value),
            }
        }
        new.body(b"", &body);
        new.end()
    }

    fn act_line(&self, line: &Bytes) -> Vec<u8> {
        let Ok(verdict) = read::verdict(line) else {
            return self.other_line(line);
        };
        let mut new = RedactedLineWriter::new(self, verdict.redacted);
        let mut bodies = Vec::new();
        for (prefix, raw) in [
            (&b"original_"[..], &verdict.original_raw),
            (b"", &verdict.raw),
        ] {
            if let Some(raw) = raw {
                bodies.push((prefix, new.look_through(raw)));
            }
        }
        let mut members = LineMembers::new(line);
        while let Some(key) = members.next_key() {
            let Some(value) = members.value() else { break };
            match key {
                b"redacted" => {}
                b"by" | b"why" => new.text(key, value),
                key if key
                    .strip_prefix(b"original_")
                    .unwrap_or(key)
                    .starts_with(b"raw") => {}
                key => new.copy(key, value),
            }
        }
        new.redacted_count();
        for (prefix, body) in &bodies {
            new.body(prefix, body);
        }
        new.end()
    }

    /// `io`, `note`, `end`, and whatever a newer proxy writes.
    fn other_line(&self, line: &[u8]) -> Vec<u8> {
        let mut new = RedactedLineWriter::new(self, 0);
        let mut members = LineMembers::new(line);
        while let Some(key) = members.next_key() {
            let Some(value) = members.value() else { break };
            match key {
                b"redacted" => {
                    let before = line_members::number(value).unwrap_or(0);
                    new.count += u32::try_from(before).unwrap_or(u32::MAX);
                }
                b"t" | b"timestamp" | b"kind" | b"conn" | b"direction" | b"transport" => {
                    new.copy(key, value);
                }
                b"http" | b"sse" => new.envelope(key, value),
                b"b64" => new.noise(value),
                key if value.starts_with(b"\"") => new.text(key, value),
                key => new.values(key, value),
            }
        }
        new.redacted_count();
        new.end()
    }

    /// Masks a string, or the strings of a list or of a peer.
    fn mask_strings(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(masked) = self.masked(text.as_bytes()) {
                    *text = String::from_utf8_lossy(&masked).into_owned();
                }
            }
            Value::Array(list) => list.iter_mut().for_each(|value| self.mask_strings(value)),
            Value::Object(members) => members
                .iter_mut()
                .filter(|(key, _)| *key != "transport")
                .for_each(|(_, value)| self.mask_strings(value)),
            _ => {}
        }
    }
}

impl RedactedBody {
    fn len(&self) -> u64 {
        match self {
            RedactedBody::Shown(message) => message.len() as u64,
            RedactedBody::Withheld(len) => *len,
        }
    }
}

impl<'a> RedactedLineWriter<'a> {
    fn new(redaction: &'a Redaction, count: u32) -> RedactedLineWriter<'a> {
        RedactedLineWriter {
            redaction,
            out: Vec::new(),
            count,
            body_hidden: false,
        }
    }

    /// A compressed body: nobody can say what is in it.
    fn withhold(&mut self, raw: &RawBody) -> RedactedBody {
        self.count = self
            .count
            .saturating_add(u32::from(!matches!(raw, RawBody::NotStored { .. })));
        RedactedBody::Withheld(raw.len())
    }

    fn look_through(&mut self, raw: &RawBody) -> RedactedBody {
        match raw {
            RawBody::NotStored { len } => RedactedBody::Withheld(*len),
            stored => RedactedBody::Shown(self.hide(Message::parse(stored.to_bytes()))),
        }
    }

    fn hide(&mut self, message: Message) -> Message {
        match self.redaction.message_after(&message, self.count) {
            Some(redacted) => {
                self.count = self.count.saturating_add(redacted.count);
                redacted.message
            }
            None => message,
        }
    }

    fn key(&mut self, key: &[u8]) {
        self.out
            .extend_from_slice(if self.out.is_empty() { b"{\"" } else { b",\"" });
        self.out.extend_from_slice(key);
        self.out.extend_from_slice(b"\":");
    }

    fn copy(&mut self, key: &[u8], value: &[u8]) {
        self.key(key);
        self.out.extend_from_slice(value);
    }

    /// `redacted`, if anything is.
    fn redacted_count(&mut self) {
        if self.count > 0 {
            self.key(b"redacted");
            push_u64(&mut self.out, u64::from(self.count));
        }
    }

    /// A string of our own or of a peer.
    fn text(&mut self, key: &[u8], value: &[u8]) {
        let text = line_members::text(value).unwrap_or_default();
        let left = self.hide(Message::parse(text.into_bytes()));
        self.key(key);
        push_octets(&mut self.out, left.raw());
    }

    /// JSON that is not a string.
    fn values(&mut self, key: &[u8], value: &[u8]) {
        let left = self.hide(Message::parse(Bytes::copy_from_slice(value)));
        self.copy(key, left.raw());
    }

    /// `b64`: bytes that were not text. Without their secrets they may be.
    fn noise(&mut self, value: &[u8]) {
        let bytes = line_members::string(value).and_then(|text| STANDARD.decode(text).ok());
        let left = self.hide(Message::parse(bytes.unwrap_or_default()));
        self.key(b"b64");
        push_base64(&mut self.out, left.raw());
    }

    /// A member of the head, as `left` tells it.
    fn head(&mut self, key: &[u8], left: &Message) {
        let text = match key {
            b"jsonrpc_id" => {
                if let Some(token) = left.id_token() {
                    self.copy(key, token);
                }
                return;
            }
            b"method" => left.method(),
            _ => subject_name(left),
        };
        if let Some(text) = text {
            self.key(key);
            push_string(&mut self.out, &text);
        }
    }

    fn parts(&mut self, value: &[u8], left: &Message) {
        let known = Message::parse(Bytes::copy_from_slice(value));
        let (known, left) = (
            known.parts().unwrap_or_default(),
            left.parts().unwrap_or_default(),
        );
        self.key(b"parts");
        self.out.push(b'[');
        for (index, (known, left)) in known.iter().zip(&left).enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            let mut part = RedactedLineWriter::new(self.redaction, 0);
            let mut members = LineMembers::new(known.raw());
            while let Some(key) = members.next_key() {
                let Some(value) = members.value() else { break };
                match key {
                    b"jsonrpc_id" | b"method" => part.head(key, left),
                    key => part.copy(key, value),
                }
            }
            self.out.append(&mut part.end());
        }
        self.out.push(b']');
    }

    /// HTTP heads and SSE fields.
    fn envelope(&mut self, key: &[u8], value: &[u8]) {
        let Ok(Value::Object(mut facts)) = serde_json::from_slice(value) else {
            return self.copy(key, value);
        };
        for key in ["target", "id", "event"] {
            if let Some(value) = facts.get_mut(key) {
                self.redaction.mask_strings(value);
            }
        }
        let headers = facts.get_mut("headers").and_then(Value::as_array_mut);
        for header in headers.into_iter().flatten() {
            let Some([Value::String(name), value]) = header.as_array_mut().map(Vec::as_mut_slice)
            else {
                continue;
            };
            let repeats = self.body_hidden && repeats_body(name);
            if repeats || self.redaction.names_header(name) {
                *value = REDACTED_CREDENTIAL.into();
            } else {
                self.redaction.mask_strings(value);
            }
        }
        let facts = Value::Object(facts).to_string();
        self.copy(key, facts.as_bytes());
    }

    /// The body, as the recorder writes it.
    fn body(&mut self, prefix: &[u8], body: &RedactedBody) {
        let key = |ending: &[u8]| [prefix, b"raw", ending].concat();
        let RedactedBody::Shown(message) = body else {
            return;
        };
        // Only the last member of a `msg` line keeps white space around it.
        let padded = message.raw().trim_ascii().len() != message.len();
        if message.fits_in_json_line() && !padded {
            self.copy(&key(b""), message.raw());
        } else if std::str::from_utf8(message.raw()).is_ok() {
            self.key(&key(b"_text"));
            self.out.push(b'"');
            push_escaped(&mut self.out, message.raw());
            self.out.push(b'"');
        } else {
            self.key(&key(b"_b64"));
            push_base64(&mut self.out, message.raw());
        }
    }

    fn end(mut self) -> Vec<u8> {
        self.out
            .extend_from_slice(if self.out.is_empty() { b"{}" } else { b"}" });
        self.out
    }
}
