//! The forms of our own results.

use bytes::Bytes;

use crate::proxy_tool::DISPATCH_META_KEY;
use mcp_proxy_wire::json::{ObjectWriter, push_bytes};

/// Appends a content item with this text.
pub(super) fn push_text_item(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(br#"{"type":"text","text":"#);
    push_bytes(out, text);
    out.push(b'}');
}

/// The result whose only item is the JSON text of `object`. The data is not repeated in `structuredContent`: clients
/// that show both to a model would pay twice.
pub(super) fn json_result(object: ObjectWriter) -> Bytes {
    let json = object.finish();
    let mut result = Vec::with_capacity(json.len() + json.len() / 4 + 64);
    result.extend_from_slice(br#"{"content":["#);
    push_text_item(&mut result, &json);
    result.extend_from_slice(br#"],"isError":false}"#);
    result.into()
}

/// A result of the tool's own: the data is in `content`, which is an array of items, and the facts about the call are in
/// `_meta`. Some clients show a model only `structuredContent` where a result has one, so it has none.
pub(super) fn own_result(content: &[u8], facts: ObjectWriter, outcome: OwnOutcome) -> Bytes {
    let mut meta = ObjectWriter::new();
    meta.object(DISPATCH_META_KEY, facts);
    let mut result = ObjectWriter::new();
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
pub(super) fn text_result(lines: &[String], facts: ObjectWriter) -> Bytes {
    let mut content = b"[".to_vec();
    push_text_item(&mut content, lines.join("\n").as_bytes());
    content.push(b']');
    own_result(&content, facts, OwnOutcome::Done)
}

/// How many tokens a text of this many bytes roughly costs.
pub(super) fn estimated_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}
