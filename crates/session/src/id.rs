//! `MessageId`: the proxy's own name for one message.
//!
//! The seed asks for a UUID per message. Ours is shaped like UUID version 7 (milliseconds first, so ids sort by time) with the
//! session's salt and the sequence number where version 7 has random bits: unique without asking for randomness per message.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

/// The proxy-assigned id of a message. Not the JSON-RPC id.
#[derive(Copy, Clone, Eq, PartialEq, Hash, PartialOrd, Ord)]
pub struct MessageId([u8; 16]);

impl MessageId {
    /// The id of message `sequence`, seen at `time`, in the session whose salt is `salt` (see [`new_salt`]).
    pub fn new(time: SystemTime, salt: u64, sequence: u64) -> MessageId {
        let millis = time
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as u64);
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
        bytes[6..8].copy_from_slice(&(0x7000 | (salt >> 52) as u16).to_be_bytes());
        // 30 bits of salt behind the variant, then the low 32 bits of the sequence.
        let salt_bits = (salt as u32) & 0x3fff_ffff;
        bytes[8..12].copy_from_slice(&(0x8000_0000 | salt_bits).to_be_bytes());
        bytes[12..].copy_from_slice(&(sequence as u32).to_be_bytes());
        MessageId(bytes)
    }

    /// An id from its sixteen bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> MessageId {
        MessageId(bytes)
    }

    /// The sixteen bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Reads a UUID of any version, with or without hyphens.
    pub fn parse(text: &str) -> Option<MessageId> {
        let mut bytes = [0; 16];
        let mut digits = text.bytes().filter(|byte| *byte != b'-');
        for byte in &mut bytes {
            let high = char::from(digits.next()?).to_digit(16)?;
            let low = char::from(digits.next()?).to_digit(16)?;
            *byte = (high << 4 | low) as u8;
        }
        digits.next().is_none().then_some(MessageId(bytes))
    }

    /// The hyphenated form, 36 ASCII bytes, without allocating.
    pub fn hyphenated(&self) -> [u8; 36] {
        // Where each byte's two digits stand.
        const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
        let mut out = [b'-'; 36];
        for (byte, place) in self.0.iter().zip(PLACES) {
            out[place..place + 2].copy_from_slice(&HEX_PAIRS[usize::from(*byte)]);
        }
        out
    }
}

/// The two hex digits of every byte.
const HEX_PAIRS: [[u8; 2]; 256] = {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [HEX[byte >> 4], HEX[byte & 15]];
        byte += 1;
    }
    pairs
};

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.hyphenated() {
            fmt::Write::write_char(f, char::from(byte))?;
        }
        Ok(())
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A fresh salt: one per session, taken from the randomness the standard library seeds its hash maps with.
pub fn new_salt() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A fresh session id.
pub fn new_session_id(now: SystemTime) -> String {
    MessageId::new(now, new_salt(), new_salt()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_id_is_a_version_7_uuid_and_sorts_by_time_then_sequence() {
        let time = UNIX_EPOCH + Duration::from_millis(0x0197_0000_1234);
        let first = MessageId::new(time, 0xabcd_ef01_2345_6789, 1);
        let second = MessageId::new(time, 0xabcd_ef01_2345_6789, 2);
        assert_eq!(first.to_string(), "01970000-1234-7abc-a345-678900000001");
        assert!(first < second);
        assert_eq!(MessageId::parse(&first.to_string()), Some(first));
    }

    #[test]
    fn what_is_no_uuid_does_not_parse() {
        for text in [
            "",
            "01970000",
            "01970000-1234-7abc-a345-67890000000g",
            "01970000-1234-7abc-a345-67890000000100",
        ] {
            assert_eq!(MessageId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn salts_differ() {
        assert_ne!(new_salt(), new_salt());
    }
}
