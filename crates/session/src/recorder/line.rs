//! The lines of a record, written by hand.
//!
//! Member order matters: `t` first, everything an index needs next, then HTTP and SSE facts, and the body last, so that a scan
//! can stop early and a body can be cut out of its line byte for byte. `docs/record-format.md` is the description of all this
//! for people; change both together.

use super::line_redaction::LineRedaction;
use crate::credential_redaction::CredentialRedaction;
use crate::json::{push_base64, push_escaped, push_octets, push_string, push_u64};
use crate::record_input::{NewBatchPart, NewBody, NewMessage, NewVerdict, ReplayOrigin};
use crate::timestamp::TimestampWriter;
use crate::{MessageId, PeerInfo, RedactedMessage, Redaction};
use bytes::Bytes;
use mcp_proxy_wire::{Field, Id, Message, Origin};
use std::borrow::Cow;
use std::time::{Duration, SystemTime};

/// Writes lines into a buffer; knows times and masks.
#[derive(Debug)]
pub(super) struct RecordLineWriter {
    pub(super) out: Vec<u8>,
    pub(super) masks: CredentialRedaction,
    pub(super) redaction: Option<Redaction>,
    /// Whether values of the body of this line were hidden.
    pub(super) body_hidden: bool,
    /// Values hidden in this line that it has not told yet.
    untold: u32,
    stamps: TimestampWriter,
}

impl RecordLineWriter {
    pub(super) fn new(
        masks: CredentialRedaction,
        redaction: Option<Redaction>,
    ) -> RecordLineWriter {
        RecordLineWriter {
            out: Vec::with_capacity(4096),
            masks,
            redaction,
            body_hidden: false,
            untold: 0,
            stamps: TimestampWriter::new(),
        }
    }

    /// `{"t":"…"` and the time.
    pub(super) fn open(&mut self, kind: &str, time: SystemTime) {
        self.body_hidden = false;
        self.out.extend_from_slice(b"{\"t\":\"");
        self.out.extend_from_slice(kind.as_bytes());
        self.out.extend_from_slice(b"\",\"timestamp\":\"");
        self.stamps.push(&mut self.out, time);
        self.out.push(b'"');
    }

    /// An `act` line up to its bodies.
    pub(super) fn open_verdict(&mut self, act: &NewVerdict, redacted: u32) {
        self.open("act", act.time);
        self.hidden(redacted);
        if let Some(sequence) = act.sequence {
            self.number("sequence", sequence);
        }
        if let Some(message) = act.message {
            self.message_id("message", message);
        }
        self.word("kind", act.kind);
        self.text("by", &act.by);
        self.text("why", &act.why);
        if let Some(delay) = act.delay {
            self.number("delay_us", micros(delay));
        }
        if let Some(origin) = act.replay_of {
            self.replay_origin(origin);
        }
        self.redacted();
    }

    /// `}` and the newline, which makes the line count.
    pub(super) fn close(&mut self) {
        self.redacted();
        self.out.extend_from_slice(b"}\n");
    }

    #[inline]
    pub(super) fn number(&mut self, key: &str, value: u64) {
        self.key(key);
        push_u64(&mut self.out, value);
    }

    pub(super) fn signed(&mut self, key: &str, value: i64) {
        self.key(key);
        if value < 0 {
            self.out.push(b'-');
        }
        push_u64(&mut self.out, value.unsigned_abs());
    }

    #[inline]
    pub(super) fn connection(&mut self, connection: u32) {
        self.out.extend_from_slice(b",\"conn\":\"c");
        push_u64(&mut self.out, u64::from(connection));
        self.out.push(b'"');
    }

    /// A string that needs no escape and no mask: a word of ours.
    #[inline]
    pub(super) fn word(&mut self, key: &str, word: &str) {
        self.key(key);
        self.out.push(b'"');
        self.out.extend_from_slice(word.as_bytes());
        self.out.push(b'"');
    }

    /// A text of ours, secrets masked.
    pub(super) fn text(&mut self, key: &str, text: &str) {
        self.key(key);
        let masked = self.masks.string(text);
        let hidden = self.hide(masked.as_bytes());
        push_octets(
            &mut self.out,
            hidden.as_deref().unwrap_or(masked.as_bytes()),
        );
    }

    /// The message that a replay sends again.
    pub(super) fn replay_origin(&mut self, origin: ReplayOrigin) {
        self.number("replay_of", origin.sequence);
        if origin.is_edited {
            self.out.extend_from_slice(b",\"edited\":true");
        }
    }

    /// How many values of the bodies of this line were hidden.
    pub(super) fn hidden(&mut self, count: u32) {
        self.untold = self.untold.saturating_add(count);
    }

    /// `redacted`: how many values of this line were hidden. Nothing if there were none.
    pub(super) fn redacted(&mut self) {
        if self.untold > 0 {
            let count = std::mem::take(&mut self.untold);
            self.number("redacted", u64::from(count));
        }
    }

    /// The text without what redaction hides; `None` if that is nothing.
    fn hide(&mut self, text: &[u8]) -> Option<Bytes> {
        let redaction = self.redaction.as_ref()?;
        let text = Message::parse(Bytes::copy_from_slice(text));
        let RedactedMessage { message, count } = redaction.message_after(&text, self.untold)?;
        self.untold = self.untold.saturating_add(count);
        Some(message.into_raw())
    }

    /// Bytes from outside that are not a message: masked, as text or base64.
    pub(super) fn noise(&mut self, bytes: &[u8]) {
        let masked = self.masks.text(bytes);
        let hidden = self.hide(&masked);
        let masked = hidden.as_deref().unwrap_or(&masked);
        match std::str::from_utf8(masked) {
            Ok(text) => {
                self.out.extend_from_slice(b",\"text\":");
                push_string(&mut self.out, text);
            }
            Err(_) => {
                self.out.extend_from_slice(b",\"b64\":");
                push_base64(&mut self.out, masked);
            }
        }
    }

    #[inline]
    pub(super) fn message_id(&mut self, key: &str, id: MessageId) {
        self.key(key);
        self.out.push(b'"');
        self.out.extend_from_slice(&id.hyphenated());
        self.out.push(b'"');
    }

    /// A `msg` line.
    pub(super) fn message(&mut self, message: &NewMessage<'_>, hidden: LineRedaction) {
        self.open("msg", message.time);
        self.body_hidden = hidden != LineRedaction::Nothing;
        self.number("sequence", message.sequence);
        self.message_id("id", message.id);
        self.number("mono_ns", nanos(message.mono));
        self.word("direction", message.direction.as_str());
        self.word("transport", message.transport.as_str());
        self.connection(message.connection);
        self.number("exchange", message.exchange);
        if message.origin != Origin::from(message.direction.from()) {
            self.word("origin", message.origin.as_str());
        }
        if let Some(parent) = message.parent {
            self.number("parent", parent);
        }
        self.head(&message.body);
        if let Some(id) = message.client_id {
            self.client_id(id, &message.body);
        }
        if let Some(answers) = message.answered_request {
            self.message_id("correlated_id", answers.id);
            self.number("answers", answers.sequence);
            self.number("latency_us", micros(answers.latency));
            if !answers.held.is_zero() {
                self.number("request_held_us", micros(answers.held));
            }
        }
        if message.late {
            self.out.extend_from_slice(b",\"late\":true");
        }
        if message.duplicate {
            self.out.extend_from_slice(b",\"duplicate\":true");
        }
        if !message.parts.is_empty() {
            self.parts(message.parts);
        }
        self.hidden(hidden.count());
        self.redacted();
        match message.body {
            NewBody::Whole(body) => {
                self.number("len", body.raw().len() as u64);
                let encoded = self.envelope(message.envelope);
                if hidden != LineRedaction::Body {
                    self.body("raw", body, encoded);
                }
            }
            NewBody::Empty => {
                self.number("len", 0);
                self.envelope(message.envelope);
                self.out.extend_from_slice(b",\"raw_text\":\"\"");
            }
        }
        self.close();
    }

    fn head(&mut self, body: &NewBody<'_>) {
        match body {
            NewBody::Whole(message) => {
                self.word("kind", message.kind().as_str());
                if let Some(token) = message.id_token() {
                    self.token(token, !message.is_json());
                }
                if let Some(method) = message.method() {
                    self.key("method");
                    push_string(&mut self.out, &method);
                    if let Some(name) = subject_field(&method).and_then(|field| message.text(field))
                    {
                        self.key("name");
                        push_string(&mut self.out, &name);
                    }
                }
            }
            NewBody::Empty => self.word("kind", "other"),
        }
    }

    /// `jsonrpc_id` with its raw token. A token out of JSON that was not checked whole is checked here.
    fn token(&mut self, token: &[u8], unchecked: bool) {
        let scalar = matches!(
            token.first(),
            Some(b'"' | b'-' | b'0'..=b'9' | b'n' | b't' | b'f')
        );
        if scalar && !(unchecked && serde_json::from_slice::<serde_json::Value>(token).is_err()) {
            self.key("jsonrpc_id");
            self.out.extend_from_slice(token);
        }
    }

    /// `client_id`, where the body has another id. One that has to be hidden is left out.
    fn client_id(&mut self, id: &Id, body: &NewBody<'_>) {
        let received = match body {
            NewBody::Whole(message) => message.id_token(),
            NewBody::Empty => None,
        };
        let is_secret = |redaction: &Redaction| {
            let text = Message::parse(Bytes::copy_from_slice(id.token()));
            redaction.message(&text).is_some()
        };
        if received != Some(id.token()) && !self.redaction.as_ref().is_some_and(is_secret) {
            self.key("client_id");
            self.out.extend_from_slice(id.token());
        }
    }

    fn parts(&mut self, parts: &[NewBatchPart]) {
        self.out.extend_from_slice(b",\"parts\":[");
        for (index, part) in parts.iter().enumerate() {
            self.out.extend_from_slice(if index == 0 {
                b"{\"kind\":\""
            } else {
                b",{\"kind\":\""
            });
            self.out.extend_from_slice(part.kind.as_str().as_bytes());
            self.out.push(b'"');
            if let Some(id) = &part.id {
                self.token(id.token(), true);
            }
            if let Some(method) = &part.method {
                self.key("method");
                push_string(&mut self.out, method);
            }
            if let Some(answers) = part.answered_request {
                self.message_id("correlated_id", answers.id);
                self.number("answers", answers.sequence);
                self.number("latency_us", micros(answers.latency));
            }
            self.out.push(b'}');
        }
        self.out.push(b']');
    }

    /// The body: `raw` as it is, `raw_text` or `raw_b64`. Must be the last member.
    pub(super) fn body(&mut self, key: &str, body: &Message, encoded: bool) {
        let raw = body.raw();
        if !encoded && body.fits_in_json_line() {
            self.key(key);
            self.out.extend_from_slice(raw);
        } else if let (false, Ok(text)) = (encoded, std::str::from_utf8(raw)) {
            self.suffixed(key, "_text");
            self.out.push(b'"');
            push_escaped(&mut self.out, text.as_bytes());
            self.out.push(b'"');
        } else {
            self.suffixed(key, "_b64");
            push_base64(&mut self.out, raw);
        }
    }

    /// [`RecordLineWriter::body`] for a member that is not the last: JSON cannot keep white space around a value there.
    pub(super) fn body_or_text(&mut self, key: &str, body: &Message, padded: bool) {
        match std::str::from_utf8(body.raw()) {
            Ok(text) if padded => {
                self.suffixed(key, "_text");
                push_string(&mut self.out, text);
            }
            _ => self.body(key, body, false),
        }
    }

    /// One end of a connection.
    pub(super) fn peer(&mut self, key: &str, peer: &PeerInfo) {
        self.key(key);
        self.out.push(b'{');
        let start = self.out.len();
        if let Some(name) = &peer.name {
            self.text("name", name);
        }
        self.word("transport", peer.transport.as_str());
        // Members begin with a comma, which the first one must not have.
        self.out.remove(start);
        if let Some(caller) = &peer.caller {
            self.key("caller");
            self.out.push(b'{');
            let start = self.out.len();
            self.text("path", &caller.path);
            self.out.remove(start);
            if let Some(address) = &caller.address {
                self.text("address", address);
            }
            self.out.push(b'}');
        }
        self.out.push(b'}');
    }

    // Nearly all keys are constants: inlined, each becomes a copy of a few known bytes.
    #[inline(always)]
    pub(super) fn key(&mut self, key: &str) {
        self.suffixed(key, "");
    }

    #[inline(always)]
    fn suffixed(&mut self, key: &str, suffix: &str) {
        self.out.extend_from_slice(b",\"");
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(suffix.as_bytes());
        self.out.extend_from_slice(b"\":");
    }
}

/// What a request is about: the tool, prompt or resource that it names.
pub fn subject_name(message: &Message) -> Option<Cow<'_, str>> {
    message.text(subject_field(&message.method()?)?)
}

/// What a request is about, by the same rule as the `Mcp-Name` header.
pub(crate) fn subject_field(method: &str) -> Option<Field<'static>> {
    match method {
        "tools/call" | "prompts/get" => Some(Field::Name),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => Some(Field::Uri),
        _ => None,
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
