//! One row of the index, packed into 48 bytes.

use super::LinePlace;
use super::strings::StringId;
use crate::stamp;
use mcp_proxy_wire::{Direction, Kind, Transport};
use std::time::{Duration, SystemTime};

/// No peer, no id.
const NONE: u32 = u32::MAX;

/// Bits below the connection number: one of direction, two of transport, three of kind, eight flags.
const CONNECTION_SHIFT: u32 = 14;

/// What a list needs to know about one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub(super) offset: u64,
    pub(super) micros: i64,
    pub(super) len: u32,
    pub(super) sequence: u32,
    pub(crate) method: StringId,
    pub(crate) name: StringId,
    pub(super) id_hash: u32,
    pub(super) peer: u32,
    /// Microseconds; `u32::MAX` is none, the value before it "that or longer".
    pub(super) latency: u32,
    pub(super) bits: u32,
}

/// Things that are true or not of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flag {
    Modified = 6,
    Dropped = 7,
    Refused = 8,
    Late = 9,
    Duplicate = 10,
    Proxy = 11,
    /// Carried by HTTP or SSE, with facts in its line.
    Carried = 12,
    Undelivered = 13,
}

impl Row {
    /// Bytes of a row in memory and on disk.
    pub const SIZE: usize = 48;

    pub(super) fn new(line: LinePlace) -> Row {
        Row {
            offset: line.offset,
            micros: 0,
            len: line.len,
            sequence: 0,
            method: StringId::NONE,
            name: StringId::NONE,
            id_hash: 0,
            peer: NONE,
            latency: NONE,
            bits: kind_bits(Kind::Other),
        }
    }

    /// Where the line starts in the record.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Length of the line, without its newline.
    pub fn line_len(&self) -> u32 {
        self.len
    }

    pub(crate) fn line(&self) -> LinePlace {
        LinePlace {
            offset: self.offset,
            len: self.len,
        }
    }

    /// The message's sequence number.
    pub fn sequence(&self) -> u64 {
        u64::from(self.sequence)
    }

    /// When it was received.
    pub fn time(&self) -> SystemTime {
        stamp::from_micros(self.micros)
    }

    /// Which way it travels.
    pub fn direction(&self) -> Direction {
        if self.bits & 1 == 0 {
            Direction::ClientToServer
        } else {
            Direction::ServerToClient
        }
    }

    /// The transport of the link it was read from.
    pub fn transport(&self) -> Transport {
        match (self.bits >> 1) & 3 {
            0 => Transport::Stdio,
            1 => Transport::Sse,
            _ => Transport::StreamableHttp,
        }
    }

    /// What kind of message it is.
    pub fn kind(&self) -> Kind {
        match (self.bits >> 3) & 7 {
            0 => Kind::Request,
            1 => Kind::Notification,
            2 => Kind::Response,
            3 => Kind::Error,
            4 => Kind::Batch,
            5 => Kind::Other,
            _ => Kind::Malformed,
        }
    }

    /// The connection's number (at most 262,143; a session with more shows that for the rest).
    pub fn connection(&self) -> u32 {
        self.bits >> CONNECTION_SHIFT
    }

    /// A hash of the JSON-RPC id's token, 0 for none: equal ids have equal hashes.
    pub fn id_hash(&self) -> u32 {
        self.id_hash
    }

    /// For an answer the row of its request, for a request the row of its answer.
    pub fn peer(&self) -> Option<usize> {
        (self.peer != NONE).then_some(self.peer as usize)
    }

    /// The same row with its peer elsewhere.
    pub(super) fn with_peer(mut self, moved: impl Fn(u32) -> Option<u32>) -> Row {
        if self.peer != NONE {
            self.peer = moved(self.peer).unwrap_or(NONE);
        }
        self
    }

    /// For an answer: how long it took. At most 71 minutes are told apart.
    pub fn latency(&self) -> Option<Duration> {
        (self.latency != NONE).then(|| Duration::from_micros(u64::from(self.latency)))
    }

    /// A verdict changed it.
    pub fn is_modified(&self) -> bool {
        self.has(Flag::Modified)
    }

    /// A verdict dropped it.
    pub fn is_dropped(&self) -> bool {
        self.has(Flag::Dropped)
    }

    /// A verdict refused it.
    pub fn is_refused(&self) -> bool {
        self.has(Flag::Refused)
    }

    /// It answers a request that was given up.
    pub fn is_late(&self) -> bool {
        self.has(Flag::Late)
    }

    /// It answers a request that had its answer.
    pub fn is_duplicate(&self) -> bool {
        self.has(Flag::Duplicate)
    }

    /// The proxy made it.
    pub fn is_from_proxy(&self) -> bool {
        self.has(Flag::Proxy)
    }

    /// It could not be delivered.
    pub fn is_undelivered(&self) -> bool {
        self.has(Flag::Undelivered)
    }

    pub(crate) fn has(&self, flag: Flag) -> bool {
        self.bits & (1 << flag as u32) != 0
    }

    pub(super) fn set(&mut self, flag: Flag) {
        self.bits |= 1 << flag as u32;
    }

    pub(super) fn set_direction(&mut self, direction: &[u8]) {
        self.bits = (self.bits & !1) | u32::from(direction == b"server_to_client");
    }

    pub(super) fn set_transport(&mut self, transport: &[u8]) {
        let bits = match transport {
            b"stdio" => 0,
            b"sse" => 1,
            _ => 2,
        };
        self.bits = (self.bits & !(3 << 1)) | bits << 1;
    }

    pub(super) fn set_kind(&mut self, kind: &[u8]) {
        let kind = match kind {
            b"request" => Kind::Request,
            b"notification" => Kind::Notification,
            b"response" => Kind::Response,
            b"error" => Kind::Error,
            b"batch" => Kind::Batch,
            b"malformed" => Kind::Malformed,
            _ => Kind::Other,
        };
        self.bits = (self.bits & !(7 << 3)) | kind_bits(kind);
    }

    pub(super) fn set_connection(&mut self, connection: u32) {
        let shown = connection.min(u32::MAX >> CONNECTION_SHIFT);
        self.bits = (self.bits & ((1 << CONNECTION_SHIFT) - 1)) | shown << CONNECTION_SHIFT;
    }

    pub(super) fn set_latency(&mut self, micros: u64) {
        self.latency = u32::try_from(micros).unwrap_or(NONE).min(NONE - 1);
    }

    pub(super) fn to_bytes(self) -> [u8; Row::SIZE] {
        let mut bytes = [0; Row::SIZE];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.micros.to_le_bytes());
        let words = [
            self.len,
            self.sequence,
            self.method.0,
            self.name.0,
            self.id_hash,
            self.peer,
            self.latency,
            self.bits,
        ];
        for (slot, word) in bytes[16..].chunks_exact_mut(4).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; Row::SIZE]) -> Row {
        let word = |index: usize| {
            let at = 16 + index * 4;
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let long = |at: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(eight)
        };
        Row {
            offset: long(0),
            micros: long(8) as i64,
            len: word(0),
            sequence: word(1),
            method: StringId(word(2)),
            name: StringId(word(3)),
            id_hash: word(4),
            peer: word(5),
            latency: word(6),
            bits: word(7),
        }
    }
}

fn kind_bits(kind: Kind) -> u32 {
    let bits = match kind {
        Kind::Request => 0,
        Kind::Notification => 1,
        Kind::Response => 2,
        Kind::Error => 3,
        Kind::Batch => 4,
        Kind::Other => 5,
        Kind::Malformed => 6,
    };
    bits << 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_48_bytes_and_reads_back() {
        assert_eq!(size_of::<Row>(), Row::SIZE);
        let mut row = Row::new(LinePlace {
            offset: 1 << 40,
            len: 77,
        });
        row.micros = -5;
        row.sequence = 9;
        row.set_direction(b"server_to_client");
        row.set_transport(b"streamable_http");
        row.set_kind(b"error");
        row.set_connection(9_000_000);
        row.set(Flag::Undelivered);
        row.set_latency(u64::MAX);
        assert_eq!(Row::from_bytes(&row.to_bytes()), row);
        assert_eq!(row.direction(), Direction::ServerToClient);
        assert_eq!(row.transport(), Transport::StreamableHttp);
        assert_eq!(row.kind(), Kind::Error);
        assert_eq!(row.connection(), 262_143);
        assert!(row.is_undelivered() && !row.is_modified());
        assert_eq!(
            row.latency(),
            Some(Duration::from_micros(u64::from(u32::MAX) - 1))
        );
        assert_eq!(row.peer(), None);
    }
}
