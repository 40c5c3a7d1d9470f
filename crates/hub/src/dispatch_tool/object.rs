//! Writing our own JSON objects, member by member.

use bytes::Bytes;

use crate::json_text::{push_compact, push_string, push_text};
use crate::proxy_tool::DISPATCH_META_KEY;

/// An object in the making. Names are ours and need no escapes.
pub(super) struct JsonObject(Vec<u8>);

impl JsonObject {
    pub(super) fn new() -> JsonObject {
        JsonObject::with_capacity(32)
    }

    pub(super) fn with_capacity(bytes: usize) -> JsonObject {
        let mut text = Vec::with_capacity(bytes);
        text.push(b'{');
        JsonObject(text)
    }

    pub(super) fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        push_text(&mut self.0, text);
    }

    pub(super) fn number(&mut self, name: &str, number: u64) {
        self.raw(name, number.to_string().as_bytes());
    }

    /// A member whose value is JSON that is written as it is.
    pub(super) fn raw(&mut self, name: &str, json: &[u8]) {
        self.name(name);
        self.0.extend_from_slice(json);
    }

    /// A member whose value is JSON of somebody else.
    pub(super) fn compact(&mut self, name: &str, json: &[u8]) {
        self.name(name);
        push_compact(&mut self.0, json);
    }

    pub(super) fn object(&mut self, name: &str, object: JsonObject) {
        self.raw(name, &object.finish());
    }

    pub(super) fn array(&mut self, name: &str, elements: impl Iterator<Item = Vec<u8>>) {
        self.name(name);
        self.0.push(b'[');
        for (place, element) in elements.enumerate() {
            if place > 0 {
                self.0.push(b',');
            }
            self.0.extend_from_slice(&element);
        }
        self.0.push(b']');
    }

    pub(super) fn texts<'a>(&mut self, name: &str, texts: impl Iterator<Item = &'a str>) {
        self.array(
            name,
            texts.map(|text| {
                let mut string = Vec::new();
                push_text(&mut string, text);
                string
            }),
        );
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.len() == 1
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        self.0.push(b'"');
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
    }
}

/// Appends a content item with this text.
pub(super) fn push_text_item(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(br#"{"type":"text","text":"#);
    push_string(out, text);
    out.push(b'}');
}

/// The result whose only item is the JSON text of `object`. The data is not repeated in `structuredContent`: clients
/// that show both to a model would pay twice.
pub(super) fn json_result(object: JsonObject) -> Bytes {
    let json = object.finish();
    let mut result = Vec::with_capacity(json.len() + json.len() / 4 + 64);
    result.extend_from_slice(br#"{"content":["#);
    push_text_item(&mut result, &json);
    result.extend_from_slice(br#"],"isError":false}"#);
    result.into()
}

/// A result of the tool's own: the data is in `content`, which is an array of items, and the facts about the call are in
/// `_meta`. Some clients show a model only `structuredContent` where a result has one, so it has none.
pub(super) fn own_result(content: &[u8], facts: JsonObject, outcome: OwnOutcome) -> Bytes {
    let mut meta = JsonObject::new();
    meta.object(DISPATCH_META_KEY, facts);
    let mut result = JsonObject::with_capacity(content.len() + 256);
    result.raw("content", content);
    result.raw("isError", outcome.is_error());
    result.object("_meta", meta);
    result.finish().into()
}

/// Whether a result of the tool's own reports an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnOutcome {
    Done,
    Failed,
}

impl OwnOutcome {
    fn is_error(self) -> &'static [u8] {
        match self {
            OwnOutcome::Done => b"false",
            OwnOutcome::Failed => b"true",
        }
    }
}

/// A result of text lines, with facts for programs in its `_meta`.
pub(super) fn text_result(lines: &[String], facts: JsonObject) -> Bytes {
    let mut content = b"[".to_vec();
    push_text_item(&mut content, lines.join("\n").as_bytes());
    content.push(b']');
    own_result(&content, facts, OwnOutcome::Done)
}

/// How many tokens a text of this many bytes roughly costs.
pub(super) fn estimated_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}
