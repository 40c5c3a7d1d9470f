//! WebSocket frames as a load generator needs them: a client's frames with a mask of zero, which leaves the payload as it
//! is, and a server's frames without a copy. What a library does beyond that would be measured with the relay.

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const PONG: u8 = 0xA;
const LAST: u8 = 0x80;
const MASKED: u8 = 0x80;

/// What a server's frame is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// A message, or the last piece of one.
    Text,
    /// A piece of a message that is not the last.
    Piece,
    Ping,
    Pong,
    Close,
}

/// Bytes of a server, cut into frames.
#[derive(Default)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    start: usize,
}

impl FrameBuffer {
    /// Where the next bytes go, behind the part of a frame that is there already.
    pub fn room(&mut self) -> &mut Vec<u8> {
        self.bytes.drain(..self.start);
        self.start = 0;
        &mut self.bytes
    }

    /// The next whole frame.
    pub fn next_frame(&mut self) -> Option<(FrameKind, &[u8])> {
        let bytes = &self.bytes[self.start..];
        let (first, second) = (*bytes.first()?, *bytes.get(1)?);
        let (length, head) = match second {
            126 => {
                let length = bytes.get(2..4)?.first_chunk()?;
                (usize::from(u16::from_be_bytes(*length)), 4)
            }
            127 => {
                let length = bytes.get(2..10)?.first_chunk()?;
                (usize::try_from(u64::from_be_bytes(*length)).ok()?, 10)
            }
            length => (usize::from(length), 2),
        };
        let payload = self.start + head..self.start + head + length;
        if payload.end > self.bytes.len() {
            return None;
        }
        self.start = payload.end;
        let kind = match first & 0x0f {
            0x8 => FrameKind::Close,
            0x9 => FrameKind::Ping,
            PONG => FrameKind::Pong,
            _ if first & LAST == 0 => FrameKind::Piece,
            _ => FrameKind::Text,
        };
        Some((kind, &self.bytes[payload]))
    }
}

/// Appends a message of a client that is made of `parts`.
pub fn push_text(out: &mut Vec<u8>, parts: &[&[u8]]) {
    push_frame(out, TEXT | LAST, parts);
}

/// Appends the answer to a ping.
pub fn push_pong(out: &mut Vec<u8>, payload: &[u8]) {
    push_frame(out, PONG | LAST, &[payload]);
}

/// Appends a message in frames of at most `piece` bytes, as browsers send long ones.
pub fn push_in_pieces(out: &mut Vec<u8>, text: &[u8], piece: usize) {
    let count = text.chunks(piece).count();
    for (at, part) in text.chunks(piece).enumerate() {
        let kind = if at == 0 { TEXT } else { CONTINUATION };
        let last = if at + 1 == count { LAST } else { 0 };
        push_frame(out, kind | last, &[part]);
    }
}

fn push_frame(out: &mut Vec<u8>, first: u8, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    out.push(first);
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if short < 126 => out.push(MASKED | short),
        (_, Ok(medium)) => {
            out.push(MASKED | 126);
            out.extend_from_slice(&medium.to_be_bytes());
        }
        _ => {
            out.push(MASKED | 127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&[0; 4]);
    for part in parts {
        out.extend_from_slice(part);
    }
}
