//! Reading the fields of one block.

use bytes::{BufMut, Bytes, BytesMut};

use super::SseEvent;

pub(super) const BOM: &[u8] = b"\xef\xbb\xbf";

/// A line of a block, by its field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SseLine<'a> {
    Blank,
    Comment,
    Data(&'a [u8]),
    Other(&'a [u8], &'a [u8]),
}

/// Reads a line without its end.
pub(super) fn parse_line(content: &[u8]) -> SseLine<'_> {
    let Some(colon) = memchr::memchr(b':', content) else {
        return match content {
            b"" => SseLine::Blank,
            b"data" => SseLine::Data(b""),
            name => SseLine::Other(name, b""),
        };
    };
    let (name, value) = (&content[..colon], &content[colon + 1..]);
    let value = value.strip_prefix(b" ").unwrap_or(value);
    match name {
        b"" => SseLine::Comment,
        b"data" => SseLine::Data(value),
        name => SseLine::Other(name, value),
    }
}

/// Reads a block, or as much of one as there is. A byte order mark, if the stream began with one, is to be cut off before.
pub(super) fn parse_block(block: &Bytes) -> SseEvent {
    let mut event = SseEvent::default();
    let mut data = SseData::None;
    let mut rest: &[u8] = block;
    while !rest.is_empty() {
        let end = memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        let (content, behind) = rest.split_at(end);
        rest = behind
            .strip_prefix(b"\r\n")
            .or(behind.get(1..))
            .unwrap_or_default();
        match parse_line(content) {
            SseLine::Blank | SseLine::Comment => {}
            SseLine::Data(value) => data.add(block.slice_ref(value)),
            SseLine::Other(name, value) => event.set(name, value),
        }
    }
    event.data = match data {
        SseData::None => None,
        SseData::One(data) => Some(data),
        SseData::Many(data) => Some(data.freeze()),
    };
    event
}

/// Most events have one data line, and then nothing is copied.
enum SseData {
    None,
    One(Bytes),
    Many(BytesMut),
}

impl SseData {
    fn add(&mut self, value: Bytes) {
        match self {
            SseData::None => *self = SseData::One(value),
            SseData::One(first) => {
                let mut joined = BytesMut::with_capacity(first.len() + value.len() + 1);
                joined.extend_from_slice(first);
                joined.put_u8(b'\n');
                joined.extend_from_slice(&value);
                *self = SseData::Many(joined);
            }
            SseData::Many(joined) => {
                joined.put_u8(b'\n');
                joined.extend_from_slice(&value);
            }
        }
    }
}

impl SseEvent {
    fn set(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"id" if !value.contains(&0) => {
                self.id = Some(String::from_utf8_lossy(value).into_owned())
            }
            b"event" => self.event = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let number = std::str::from_utf8(value)
                    .ok()
                    .and_then(|digits| digits.parse().ok());
                self.retry = number.or(self.retry);
            }
            _ => {}
        }
    }
}
