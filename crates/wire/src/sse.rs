//! Server-sent events: cutting a byte stream into events, without I/O and without losing a byte.
//!
//! The raw block of each event is kept, so that a stream can be passed on as it was written: line ends, comments, field
//! order and all. The rules are those of the HTML standard (`\n`, `\r\n` and `\r` end lines, an empty line ends a
//! block, several `data` lines are joined by `\n`), except that nothing is thrown away.

mod block;
mod splitter;

use bytes::Bytes;

use crate::MessageEnds;

pub use splitter::SseSplitter;

/// One block of an event stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The raw block with the empty line that ends it.
    pub wire: Bytes,
    /// The last `id` field. One with a NUL in it does not count, as the standard says.
    pub id: Option<String>,
    /// The last `event` field.
    pub event: Option<String>,
    /// The last `retry` field that is a number, in milliseconds.
    pub retry: Option<u64>,
    /// The `data` lines joined. Nothing for a block without any (comments, `retry` alone, a stray empty line).
    pub data: Option<Bytes>,
    /// The stream ended before the block did. By the standard such an event does not count.
    pub partial: bool,
}

/// What comes out of an [`SseSplitter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SseUnit {
    /// A whole block.
    Event(SseEvent),
    /// A block is larger than allowed. The rest of it will be skipped.
    TooLarge,
    /// The end of a block that was given up: the ends of its data.
    GivenUp(MessageEnds),
}

impl SseEvent {
    /// The same event with other data: every line that is not data stays as it was written.
    pub fn with_data(&self, data: Bytes) -> SseEvent {
        let mut wire = Vec::with_capacity(self.wire.len() + data.len());
        let mut rest: &[u8] = &self.wire;
        let mut placed = false;
        while !rest.is_empty() {
            let end = memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
            let length = match rest.get(end..end + 2) {
                Some(b"\r\n") => end + 2,
                _ => (end + 1).min(rest.len()),
            };
            let (line, behind) = rest.split_at(length);
            let content = line.get(..end).unwrap_or_default();
            let content = content.strip_prefix(block::BOM).unwrap_or(content);
            match block::parse_line(content) {
                block::SseLine::Data(_) if placed => {}
                block::SseLine::Data(_) => {
                    placed = true;
                    push_data(&mut wire, &data);
                }
                _ => wire.extend_from_slice(line),
            }
            rest = behind;
        }
        SseEvent {
            wire: wire.into(),
            data: Some(data),
            ..self.clone()
        }
    }
}

/// Data as lines, split where it breaks.
fn push_data(block: &mut Vec<u8>, data: &[u8]) {
    let mut rest = data;
    loop {
        block.extend_from_slice(b"data: ");
        let Some(end) = memchr::memchr2(b'\r', b'\n', rest) else {
            block.extend_from_slice(rest);
            block.push(b'\n');
            return;
        };
        block.extend_from_slice(&rest[..end]);
        block.push(b'\n');
        rest = &rest[end..];
        rest = rest.strip_prefix(b"\r\n").unwrap_or(&rest[1..]);
    }
}

/// An event as bytes. Data is split at CR, LF and CRLF into as many `data` lines; CR, LF and NUL in the other two
/// fields, where they cannot stand, are left out.
pub fn encode_event(id: Option<&str>, event: Option<&str>, data: &[u8]) -> Bytes {
    let mut block =
        Vec::with_capacity(data.len() + 32 + id.map_or(0, str::len) + event.map_or(0, str::len));
    for (name, value) in [("event: ", event), ("id: ", id)] {
        if let Some(value) = value {
            block.extend_from_slice(name.as_bytes());
            block.extend(
                value
                    .bytes()
                    .filter(|byte| !matches!(byte, b'\r' | b'\n' | 0)),
            );
            block.push(b'\n');
        }
    }
    push_data(&mut block, data);
    block.push(b'\n');
    block.into()
}
