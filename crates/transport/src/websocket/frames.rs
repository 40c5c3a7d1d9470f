//! Frames of RFC 6455: the heads that we accept from clients, the heads that we send, and the mask.

use std::io::Cursor;

use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::SocketViolation;

/// A longer payload of a control frame is a violation (5.5).
pub(super) const CONTROL_MAX: usize = 125;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    Continuation = 0,
    Text = 1,
    Binary = 2,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

impl FrameKind {
    pub(super) fn is_control(self) -> bool {
        matches!(self, FrameKind::Close | FrameKind::Ping | FrameKind::Pong)
    }
}

/// The head of a client's frame. Everything that it alone can tell is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHead {
    pub(super) kind: FrameKind,
    /// The last frame of its message.
    pub(super) is_final: bool,
    pub(super) mask: [u8; 4],
    /// Of the payload.
    pub(super) length: u64,
}

impl FrameHead {
    /// Reads a head and says how long it is itself. `None` if it is not complete.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<(FrameHead, usize)>, SocketViolation> {
        let mut cursor = Cursor::new(bytes);
        let (header, length) = match FrameHeader::parse(&mut cursor) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(_) => return Err(SocketViolation::Protocol("reserved opcode")),
        };
        let kind = match header.opcode {
            OpCode::Data(Data::Continue) => FrameKind::Continuation,
            OpCode::Data(Data::Text) => FrameKind::Text,
            OpCode::Data(Data::Binary) => FrameKind::Binary,
            OpCode::Control(Control::Close) => FrameKind::Close,
            OpCode::Control(Control::Ping) => FrameKind::Ping,
            OpCode::Control(Control::Pong) => FrameKind::Pong,
            OpCode::Data(Data::Reserved(_)) | OpCode::Control(Control::Reserved(_)) => {
                return Err(SocketViolation::Protocol("reserved opcode"));
            }
        };
        if header.rsv1 || header.rsv2 || header.rsv3 {
            return Err(SocketViolation::Protocol("reserved bits are set"));
        }
        let Some(mask) = header.mask else {
            return Err(SocketViolation::Protocol("frame is not masked"));
        };
        if length > i64::MAX as u64 {
            return Err(SocketViolation::Protocol("impossible frame length"));
        }
        if kind.is_control() && !header.is_final {
            return Err(SocketViolation::Protocol("fragmented control frame"));
        }
        if kind.is_control() && length > CONTROL_MAX as u64 {
            return Err(SocketViolation::Protocol("control frame is too long"));
        }
        let head = FrameHead {
            kind,
            is_final: header.is_final,
            mask,
            length,
        };
        // A head has at most 14 bytes.
        Ok(Some((head, cursor.position() as usize)))
    }
}

/// Appends the head of a frame to a client. Servers do not mask.
pub(super) fn push_head(into: &mut Vec<u8>, kind: FrameKind, is_final: bool, length: usize) {
    into.push(if is_final { 0x80 } else { 0 } | kind as u8);
    match length {
        0..=125 => into.push(length as u8),
        126..=0xffff => {
            into.push(126);
            into.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            into.push(127);
            into.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

/// Of frames that we send, one behind the other in `bytes`, where the last one may end later: how many messages begin in the first
/// `length` bytes, and where the frame ends that these bytes end in.
pub(super) fn begun_frames(bytes: &[u8], length: usize) -> (u64, usize) {
    let (mut messages, mut at) = (0, 0);
    while at < length
        && let Some([first, short, rest @ ..]) = bytes.get(at..)
    {
        messages += u64::from(first & 0x0f == FrameKind::Text as u8);
        let (head, payload) = match (short, rest) {
            (126, [high, low, ..]) => (4, usize::from(u16::from_be_bytes([*high, *low]))),
            (127, _) => match rest.first_chunk() {
                Some(long) => (10, u64::from_be_bytes(*long) as usize),
                None => break,
            },
            (short, _) => (2, usize::from(*short)),
        };
        at += head + payload;
    }
    (messages, at)
}

/// Appends a control frame. A longer payload is cut.
pub(super) fn push_control(into: &mut Vec<u8>, kind: FrameKind, payload: &[u8]) {
    let payload = &payload[..payload.len().min(CONTROL_MAX)];
    push_head(into, kind, true, payload.len());
    into.extend_from_slice(payload);
}

/// Removes the mask from the next bytes of a payload and moves the mask on, so that it fits the bytes behind them.
pub(super) fn unmask(bytes: &mut [u8], mask: &mut [u8; 4]) {
    let [a, b, c, d] = *mask;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (chunks, rest) = bytes.as_chunks_mut::<8>();
    for chunk in chunks {
        *chunk = (u64::from_ne_bytes(*chunk) ^ wide).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= key;
    }
    let moved = bytes.len() % mask.len();
    mask.rotate_left(moved);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violation(bytes: &[u8]) -> Option<SocketViolation> {
        FrameHead::read(bytes).err()
    }

    /// The masked examples of section 5.7, and our frames as in the unmasked ones.
    #[test]
    fn frames_are_those_of_the_rfc() {
        let hello = [
            0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58,
        ];
        let (head, length) = FrameHead::read(&hello).unwrap().unwrap();
        let mut mask = head.mask;
        let mut payload = hello[length..].to_vec();
        unmask(&mut payload, &mut mask);
        assert_eq!(payload, b"Hello");
        assert_eq!((head.kind, head.is_final), (FrameKind::Text, true));
        assert_eq!((head.length, length), (5, 6));

        let written = |kind, is_final, payload: usize| {
            let mut bytes = Vec::new();
            push_head(&mut bytes, kind, is_final, payload);
            bytes
        };
        assert_eq!(written(FrameKind::Text, true, 5), [0x81, 0x05]);
        assert_eq!(written(FrameKind::Text, false, 3), [0x01, 0x03]);
        assert_eq!(written(FrameKind::Continuation, true, 2), [0x80, 0x02]);
        assert_eq!(written(FrameKind::Ping, true, 5), [0x89, 0x05]);
        let binary = FrameKind::Binary;
        assert_eq!(written(binary, true, 256), [0x82, 0x7e, 0x01, 0x00]);
        let long = [0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0];
        assert_eq!(written(binary, true, 65_536), long);
    }

    #[test]
    fn a_head_that_is_not_complete_is_waited_for() {
        let head = [0x81, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 1, 2, 3, 4];
        for end in 0..head.len() {
            assert_eq!(FrameHead::read(&head[..end]), Ok(None), "{end} bytes");
        }
        let (read, length) = FrameHead::read(&head).unwrap().unwrap();
        assert_eq!((read.length, length), (65_536, 14));
    }

    #[test]
    fn heads_that_break_the_protocol_are_refused() {
        let mask = [1, 2, 3, 4];
        let mut heads: Vec<Vec<u8>> = Vec::new();
        for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
            heads.push([&[0x80 | opcode, 0x80][..], &mask].concat());
        }
        for reserved in [0x40, 0x20, 0x10] {
            heads.push([&[0x81 | reserved, 0x80][..], &mask].concat());
        }
        for control in [8, 9, 10] {
            heads.push([&[control, 0x80][..], &mask].concat());
            heads.push([&[0x80 | control, 0xfe, 0, 126][..], &mask].concat());
        }
        heads.push(vec![0x81, 0x05]);
        heads.push([&[0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0][..], &mask].concat());
        for head in heads {
            let found = violation(&head);
            let is_protocol = matches!(found, Some(SocketViolation::Protocol(_)));
            assert!(is_protocol, "{head:02x?}: {found:?}");
        }
    }

    #[test]
    fn a_mask_fits_wherever_a_payload_is_cut() {
        let mask = [0x37, 0xfa, 0x21, 0x3d];
        let plain: Vec<u8> = (0..100).collect();
        let pairs = plain.iter().zip(mask.iter().cycle());
        let masked: Vec<u8> = pairs.map(|(byte, key)| byte ^ key).collect();
        for cut in 0..=plain.len() {
            let mut bytes = masked.clone();
            let mut moving = mask;
            let (front, back) = bytes.split_at_mut(cut);
            unmask(front, &mut moving);
            unmask(back, &mut moving);
            assert_eq!(bytes, plain, "cut at {cut}");
        }
    }
}
