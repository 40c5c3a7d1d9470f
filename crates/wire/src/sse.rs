//! Server-sent events: cutting a byte stream into events, without I/O and without losing a byte.
//!
//! The raw block of each event is kept, so that a stream can be passed on as it was written: line ends, comments, field
//! order and all. The rules are those of the HTML standard (`\n`, `\r\n` and `\r` end lines, an empty line ends a
//! block, several `data` lines are joined by `\n`), except that nothing is thrown away.

mod block;
mod cut_through_event;
mod splitter;

use bytes::Bytes;

use crate::Chunk;

pub use splitter::SseSplitter;

/// One block of an event stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The raw block with the empty line that ends it. Empty in [`SseUnit::Open`], where the chunks hold it.
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
    /// The first piece of an event whose data is over [`Limits::cut`](crate::Limits::cut).
    Open {
        /// The fields that stood before the data was over it; `wire` and `data` are empty.
        head: SseEvent,
        /// The bytes so far.
        chunk: Chunk,
    },
    /// A further piece. The join between two `data` lines is a chunk of its own with an empty `wire`.
    More(Chunk),
    /// The last piece, with the empty line that ends the block (unless the stream ended).
    Close(Chunk),
    /// A block that was collected grew over [`Limits::max`](crate::Limits::max). The rest of it will be skipped.
    TooLarge {
        /// How many bytes of it had come by then.
        seen: usize,
        /// The first bytes of its data, up to 64 KiB, for [`head_from_ends`](crate::read_partial_head).
        front: Bytes,
    },
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

impl SseUnit {
    /// The bytes to write on a link of the same kind.
    pub fn wire(&self) -> &[u8] {
        match self {
            SseUnit::Event(event) => &event.wire,
            SseUnit::Open { chunk, .. } | SseUnit::More(chunk) | SseUnit::Close(chunk) => {
                &chunk.wire
            }
            SseUnit::TooLarge { .. } => &[],
        }
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
