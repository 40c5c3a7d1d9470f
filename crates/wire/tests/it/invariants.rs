//! What holds for any bytes and any chunking. Each function panics if it does not.
//!
//! `serde_json` and two plain re-tellings of the framing rules serve as the independent opinion.

use bytes::Bytes;
use mcp_proxy_wire::{
    Field, Kind, LineSplitter, LineUnit, MAX_DEPTH, Message, PartialHead, Span, SseSplitter,
    SseUnit, flatten, read_partial_head, request_era,
};
use serde_json::Value;
use serde_json::value::RawValue;

const FIELDS: [Field<'static>; 13] = [
    Field::Id,
    Field::Method,
    Field::Params,
    Field::Result,
    Field::Error,
    Field::Name,
    Field::Uri,
    Field::ProgressToken,
    Field::RequestId,
    Field::Param("arguments"),
    Field::Meta("progressToken"),
    Field::ResultField("content"),
    Field::ResultMeta("a"),
];

/// A message keeps its bytes, its head is right, and changes stay where they belong.
pub fn message(bytes: &[u8]) {
    let message = Message::parse(bytes.to_vec());
    assert_eq!(message.raw().as_ref(), bytes);
    assert_eq!(message.clone().into_raw().as_ref(), bytes);
    assert_eq!(message.len(), bytes.len());
    grammar(&message);
    head(&message);
    for field in FIELDS {
        splices(&message, field);
    }
    parts(&message);
    one_line(&message);
    ends(&message);
    request_era(&message);
}

fn grammar(message: &Message) {
    let json = serde_json::from_slice::<&RawValue>(message.raw()).is_ok();
    if message.is_json() {
        assert!(json, "taken for JSON");
    } else if json {
        assert!(depth(message.raw()) > MAX_DEPTH, "not taken for JSON");
    }
    if message.fits_in_json_line() {
        assert!(
            message.is_json()
                && !message
                    .raw()
                    .iter()
                    .any(|byte| matches!(byte, b'\r' | b'\n'))
        );
    }
}

/// The nesting of sound JSON.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => depth += 1,
            b'}' | b']' if !quoted => depth -= 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn head(message: &Message) {
    assert_eq!(
        message.id().map(|id| id.token().to_vec()),
        message.id_token().map(<[u8]>::to_vec)
    );
    if let Some(id) = message.id() {
        let _ = (id.key(), id.is_null(), id.to_string());
    }
    if message.is_json() {
        for field in FIELDS {
            if let Some(span) = message.span(field) {
                assert!(
                    Message::parse(message.slice(span).to_vec()).is_json(),
                    "{field:?} is no value"
                );
            }
        }
    }
    let _ = (message.method(), message.error_code());
    let Ok(value) = serde_json::from_slice::<Value>(message.raw()) else {
        return;
    };
    let Value::Object(object) = value else {
        assert_eq!(
            message.kind(),
            if value.is_array() {
                Kind::Batch
            } else {
                Kind::Other
            }
        );
        return;
    };
    let has = |name: &str| object.contains_key(name);
    assert_eq!(message.span(Field::Id).is_some(), has("id"));
    assert_eq!(message.params().is_some(), has("params"));
    assert_eq!(message.result().is_some(), has("result"));
    assert_eq!(message.error().is_some(), has("error"));
    assert_eq!(
        message.method().as_deref(),
        object.get("method").and_then(Value::as_str)
    );
    let kind_fits = match message.kind() {
        Kind::Request => has("method") && has("id"),
        Kind::Notification => has("method") && !has("id"),
        Kind::Response => !has("method") && has("result"),
        Kind::Error => !has("method") && has("error"),
        Kind::Other => !has("method") && !has("result") && !has("error"),
        Kind::Batch | Kind::Malformed => false,
    };
    assert!(kind_fits, "{:?}", message.kind());
    let name = object
        .get("params")
        .and_then(|params| params.get("name"))
        .and_then(Value::as_str);
    assert_eq!(message.text(Field::Name).as_deref(), name);
    let code = object
        .get("error")
        .and_then(|error| error.get("code"))
        .and_then(Value::as_i64);
    assert!(code.is_none() || message.error_code() == code);
}

fn splices(message: &Message, field: Field<'_>) {
    let Some(span) = message.span(field) else {
        assert_eq!(message.text(field), None);
        return;
    };
    for new in [b"\"new\"".as_slice(), b"0", b""] {
        let changed = message
            .splice(&[(span, new)])
            .expect("the span is in the message");
        let raw = changed.raw();
        let behind = span.start + new.len();
        assert_eq!(raw[..span.start], message.raw()[..span.start]);
        assert_eq!(&raw[span.start..behind], new);
        assert_eq!(raw[behind..], message.raw()[span.end..]);
        if message.is_json() && !new.is_empty() {
            assert!(changed.is_json());
            assert_eq!(
                changed.span(field).map(|span| changed.slice(span)),
                Some(new)
            );
        }
    }
    let beyond = Span::new(span.start, message.len() + 1);
    assert!(message.splice(&[(beyond, b"")]).is_err());
    assert!(message.splice(&[(span, b""), (span, b"")]).is_err() || span.is_empty());
}

fn parts(message: &Message) {
    let parts = message.parts();
    assert_eq!(parts.is_some(), message.kind() == Kind::Batch);
    let Some(parts) = parts else { return };
    let mut rest = message.raw().as_ref();
    for part in &parts {
        assert!(part.is_json());
        let at = part.raw().as_ptr() as usize - rest.as_ptr() as usize;
        rest = &rest[at + part.len()..];
    }
    if let Ok(Value::Array(elements)) = serde_json::from_slice(message.raw()) {
        assert_eq!(parts.len(), elements.len());
    }
}

fn one_line(message: &Message) {
    let newline = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let Some(flat) = flatten(message) else {
        assert!(message.kind() == Kind::Malformed && message.raw().iter().any(newline));
        return;
    };
    assert!(!flat.raw().iter().any(newline));
    assert_eq!(
        (flat.len(), flat.kind(), flat.is_json()),
        (message.len(), message.kind(), message.is_json())
    );
    for (before, after) in message.raw().iter().zip(flat.raw()) {
        assert!(before == after || newline(before) && *after == b' ');
    }
    let again = Message::parse(flat.raw().clone());
    assert_eq!(
        (again.kind(), again.id(), again.fits_in_json_line()),
        (flat.kind(), flat.id(), flat.fits_in_json_line())
    );
}

/// Both ends together see what the parser sees, if both are the whole; and any ends do no harm.
fn ends(message: &Message) {
    let raw = message.raw();
    let head = read_partial_head(raw, raw);
    if message.kind() != Kind::Malformed {
        let name = message.text(Field::Name).map(String::from);
        let method = message.method().map(String::from);
        let whole = PartialHead {
            kind: message.kind(),
            id: message.id(),
            method,
            name,
            error_code: message.error_code(),
        };
        assert_eq!(head, whole);
    }
    for at in (0..raw.len().min(200)).step_by(7) {
        read_partial_head(&raw[..at], &raw[at..]);
        read_partial_head(&raw[at..], &raw[..at]);
    }
}

/// Cuts bytes into pieces of the given sizes, again and again.
pub fn chunks(bytes: &[u8], sizes: &[usize]) -> Vec<Bytes> {
    let mut rest = Bytes::copy_from_slice(bytes);
    let mut sizes = sizes.iter().copied().filter(|&size| size > 0).cycle();
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let size = sizes.next().unwrap_or(rest.len()).min(rest.len());
        pieces.push(rest.split_to(size));
    }
    pieces
}

/// Lines lose no byte, are what they are by the plain rule, and are given up exactly when they are too long.
pub fn lines(bytes: &[u8], sizes: &[usize], max: usize) {
    let mut splitter = LineSplitter::new(max);
    let mut units = Vec::new();
    for piece in chunks(bytes, sizes) {
        splitter.push(piece, &mut units);
    }
    splitter.finish(&mut units);
    let mut expected = plain_lines(bytes).into_iter();
    let (mut read, mut is_whole) = (Vec::new(), true);
    for unit in units {
        let line = expected.next().expect("there is such a line");
        match unit {
            LineUnit::Line { wire, message } => {
                assert!(message.len() <= max);
                assert_eq!(message, line);
                read.extend_from_slice(&wire);
            }
            LineUnit::GivenUp(_) => {
                assert!(line.len() > max);
                is_whole = false;
            }
        }
    }
    assert!(expected.next().is_none());
    assert!(!is_whole || read == bytes, "bytes were lost");
}

fn plain_lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let line = &rest[..end];
        lines.push(line.strip_suffix(b"\r").unwrap_or(line).to_vec());
        rest = &rest[end + 1..];
    }
    if !rest.is_empty() {
        lines.push(rest.to_vec());
    }
    lines
}

/// The fields of a block, as far as one can tell them from a plain reading.
#[derive(Debug, Default, PartialEq, Clone)]
struct EventFields {
    id: Option<Vec<u8>>,
    event: Option<Vec<u8>>,
    retry: Option<u64>,
    data: Option<Vec<u8>>,
}

/// Events lose no byte, are what they are by the plain rule, and are given up exactly when they are too long.
pub fn events(bytes: &[u8], sizes: &[usize], max: usize) {
    let mut splitter = SseSplitter::new(max);
    let mut units = Vec::new();
    for piece in chunks(bytes, sizes) {
        splitter.push(piece, &mut units);
    }
    splitter.finish(&mut units);
    let lossy = units.iter().any(|unit| matches!(unit, SseUnit::TooLarge));
    let mut expected = plain_blocks(bytes).into_iter();
    let mut read = Vec::new();
    for unit in units {
        let SseUnit::Event(event) = unit else {
            assert!(matches!(unit, SseUnit::TooLarge));
            continue;
        };
        // The LF behind a CR that ended a block may come alone.
        assert!(event.wire.len() <= max.max(1));
        read.extend_from_slice(&event.wire);
        let block = EventFields {
            id: event.id.map(String::into_bytes),
            event: event.event.map(String::into_bytes),
            retry: event.retry,
            data: event.data.map(|data| data.to_vec()),
        };
        if block == EventFields::default() {
            continue;
        }
        match lossy {
            // Blocks may be missing, but none is made up.
            true => assert!(expected.any(|expected| expected == block)),
            false => assert_eq!(expected.next(), Some(block)),
        }
    }
    if !lossy {
        assert_eq!(expected.next(), None);
        assert!(read == bytes, "bytes were lost");
    }
}

fn plain_blocks(bytes: &[u8]) -> Vec<EventFields> {
    let mut rest = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut blocks = vec![EventFields::default()];
    while !rest.is_empty() {
        let end = memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        rest = &rest[end..];
        rest = match rest {
            [b'\r', b'\n', behind @ ..] | [_, behind @ ..] => behind,
            [] => rest,
        };
        if line.is_empty() {
            blocks.push(EventFields::default());
        } else if let Some(block) = blocks.last_mut() {
            block.add(line);
        }
    }
    blocks.retain(|block| *block != EventFields::default());
    blocks
}

impl EventFields {
    fn add(&mut self, line: &[u8]) {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let lossy = || String::from_utf8_lossy(value).into_owned().into_bytes();
        match &line[..colon] {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                none => *none = Some(value.to_vec()),
            },
            b"id" if !value.contains(&0) => self.id = Some(lossy()),
            b"event" => self.event = Some(lossy()),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                self.retry = String::from_utf8_lossy(value).parse().ok().or(self.retry);
            }
            _ => {}
        }
    }
}
