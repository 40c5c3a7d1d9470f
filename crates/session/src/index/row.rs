//! One row of the index, packed into 64 bytes.

use super::LineLocation;
use super::strings::StringId;
use crate::timestamp;
use mcp_proxy_wire::{Direction, Kind, Origin, Transport};
use std::num::NonZeroU64;
use std::time::{Duration, SystemTime};

/// No peer, no latency.
const NONE: u32 = u32::MAX;

/// Every kind, in the order of their numbers in the index.
const KINDS: [Kind; 7] = [
    Kind::Request,
    Kind::Notification,
    Kind::Response,
    Kind::Error,
    Kind::Batch,
    Kind::Other,
    Kind::Malformed,
];

/// The place of [`Kind::Other`] among them, which stands for kinds that this build does not know.
const OTHER: u8 = 5;

/// What a list needs to know about one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub(super) offset: u64,
    pub(super) micros: i64,
    pub(super) sequence: u64,
    /// The call that caused it. Sequence numbers start at 1.
    pub(super) parent: Option<NonZeroU64>,
    pub(super) len: u32,
    pub(crate) method: StringId,
    pub(crate) name: StringId,
    pub(super) id_hash: u32,
    pub(super) peer: u32,
    /// Microseconds; `u32::MAX` is none, the value before it "that or longer".
    pub(super) latency: u32,
    pub(super) connection: u32,
    pub(super) flags: u16,
    pub(super) transport: u8,
    pub(super) kind: u8,
}

/// Things that are true or not of a row, by their bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flag {
    /// It goes to the client.
    ServerToClient,
    Modified,
    Dropped,
    Refused,
    Late,
    Duplicate,
    /// The proxy wrote it.
    Proxy,
    /// A replay wrote it.
    Replay,
    /// Carried by HTTP or SSE, with facts in its line.
    Carried,
    Undelivered,
    Held,
    Delayed,
    Redirected,
    /// The proxy answered it.
    Answered,
}

impl Row {
    /// Bytes of a row in memory and on disk.
    pub const SIZE: usize = 64;

    pub(super) fn new(line: LineLocation) -> Row {
        Row {
            offset: line.offset,
            micros: 0,
            sequence: 0,
            parent: None,
            len: line.len,
            method: StringId::NONE,
            name: StringId::NONE,
            id_hash: 0,
            peer: NONE,
            latency: NONE,
            connection: 0,
            flags: 0,
            transport: 0,
            kind: OTHER,
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

    pub(crate) fn line(&self) -> LineLocation {
        LineLocation {
            offset: self.offset,
            len: self.len,
        }
    }

    /// The message's sequence number.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// When it was received.
    pub fn time(&self) -> SystemTime {
        timestamp::from_micros(self.micros)
    }

    /// Which way it travels.
    pub fn direction(&self) -> Direction {
        match self.has(Flag::ServerToClient) {
            false => Direction::ClientToServer,
            true => Direction::ServerToClient,
        }
    }

    /// The transport of the link it was read from.
    pub fn transport(&self) -> Transport {
        let known = Transport::ALL.get(usize::from(self.transport)).copied();
        known.unwrap_or(Transport::Stdio)
    }

    /// What kind of message it is.
    pub fn kind(&self) -> Kind {
        let known = KINDS.get(usize::from(self.kind)).copied();
        known.unwrap_or(Kind::Other)
    }

    /// The connection's number.
    pub fn connection(&self) -> u32 {
        self.connection
    }

    /// The sequence number of the call that caused it: its own, that of its request, or that of its connection.
    pub fn parent(&self) -> Option<u64> {
        self.parent.map(NonZeroU64::get)
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

    /// For an answer: how long the server took for it, without what its request was held here. At most 71 minutes are told apart.
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

    /// It was held, or is.
    pub fn is_held(&self) -> bool {
        self.has(Flag::Held)
    }

    /// A rule delayed it.
    pub fn is_delayed(&self) -> bool {
        self.has(Flag::Delayed)
    }

    /// A rule sent it to another server.
    pub fn is_redirected(&self) -> bool {
        self.has(Flag::Redirected)
    }

    /// The proxy answered it in the place of the peer.
    pub fn is_answered(&self) -> bool {
        self.has(Flag::Answered)
    }

    /// It answers a request that was given up.
    pub fn is_late(&self) -> bool {
        self.has(Flag::Late)
    }

    /// It answers a request that had its answer.
    pub fn is_duplicate(&self) -> bool {
        self.has(Flag::Duplicate)
    }

    /// Who wrote it.
    pub fn origin(&self) -> Origin {
        match (self.has(Flag::Proxy), self.has(Flag::Replay)) {
            (true, _) => Origin::Proxy,
            (false, true) => Origin::Replay,
            (false, false) => self.direction().from().into(),
        }
    }

    /// The client or the server of its connection wrote it, and not the proxy or a replay.
    pub fn is_from_peer(&self) -> bool {
        !self.has(Flag::Proxy) && !self.has(Flag::Replay)
    }

    /// It could not be delivered.
    pub fn is_undelivered(&self) -> bool {
        self.has(Flag::Undelivered)
    }

    pub(crate) fn has(&self, flag: Flag) -> bool {
        self.flags & (1 << flag as u16) != 0
    }

    pub(super) fn set(&mut self, flag: Flag) {
        self.flags |= 1 << flag as u16;
    }

    pub(super) fn set_direction(&mut self, direction: &[u8]) {
        if direction == b"server_to_client" {
            self.set(Flag::ServerToClient);
        }
    }

    pub(super) fn set_transport(&mut self, transport: &[u8]) {
        let known = Transport::ALL
            .iter()
            .position(|known| known.as_str().as_bytes() == transport);
        // There are a handful, and the rest of a byte is room for more.
        self.transport = known.unwrap_or(0) as u8;
    }

    pub(super) fn set_origin(&mut self, origin: &[u8]) {
        match origin {
            b"proxy" => self.set(Flag::Proxy),
            b"replay" => self.set(Flag::Replay),
            _ => {}
        }
    }

    pub(super) fn set_kind(&mut self, kind: &[u8]) {
        let known = KINDS
            .iter()
            .position(|known| known.as_str().as_bytes() == kind);
        self.kind = known.map_or(OTHER, |place| place as u8);
    }

    pub(super) fn set_latency(&mut self, micros: u64) {
        self.latency = u32::try_from(micros).unwrap_or(NONE).min(NONE - 1);
    }

    pub(super) fn to_bytes(self) -> [u8; Row::SIZE] {
        let mut bytes = [0; Row::SIZE];
        let longs = [
            self.offset,
            self.micros as u64,
            self.sequence,
            self.parent.map_or(0, NonZeroU64::get),
        ];
        let (front, back) = bytes.split_at_mut(32);
        for (slot, long) in front.chunks_exact_mut(8).zip(longs) {
            slot.copy_from_slice(&long.to_le_bytes());
        }
        let words = [
            self.len,
            self.method.0,
            self.name.0,
            self.id_hash,
            self.peer,
            self.latency,
            self.connection,
            u32::from(self.flags) | u32::from(self.transport) << 16 | u32::from(self.kind) << 24,
        ];
        for (slot, word) in back.chunks_exact_mut(4).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; Row::SIZE]) -> Row {
        let long = |index: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&bytes[index * 8..index * 8 + 8]);
            u64::from_le_bytes(eight)
        };
        let word = |index: usize| {
            let at = 32 + index * 4;
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let [flags_low, flags_high, transport, kind] = word(7).to_le_bytes();
        Row {
            offset: long(0),
            micros: long(1) as i64,
            sequence: long(2),
            parent: NonZeroU64::new(long(3)),
            len: word(0),
            method: StringId(word(1)),
            name: StringId(word(2)),
            id_hash: word(3),
            peer: word(4),
            latency: word(5),
            connection: word(6),
            flags: u16::from_le_bytes([flags_low, flags_high]),
            transport,
            kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row::new(LineLocation {
            offset: 1 << 40,
            len: 77,
        })
    }

    #[test]
    fn a_row_is_64_bytes_and_reads_back() {
        assert_eq!(size_of::<Row>(), Row::SIZE);
        let mut row = row();
        row.micros = -5;
        row.sequence = 1 << 50;
        row.parent = NonZeroU64::new((1 << 50) - 1);
        row.connection = u32::MAX - 1;
        row.set_direction(b"server_to_client");
        row.set_transport(b"streamable_http");
        row.set_kind(b"error");
        row.set_origin(b"replay");
        row.set(Flag::Undelivered);
        row.set_latency(u64::MAX);
        assert_eq!(Row::from_bytes(&row.to_bytes()), row);
        assert_eq!(row.direction(), Direction::ServerToClient);
        assert_eq!(row.transport(), Transport::StreamableHttp);
        assert_eq!(row.kind(), Kind::Error);
        assert_eq!((row.sequence(), row.connection()), (1 << 50, u32::MAX - 1));
        assert_eq!(row.parent(), Some((1 << 50) - 1));
        assert_eq!((row.origin(), row.is_from_peer()), (Origin::Replay, false));
        assert!(row.is_undelivered() && !row.is_modified());
        assert_eq!(
            row.latency(),
            Some(Duration::from_micros(u64::from(u32::MAX) - 1))
        );
        assert_eq!(row.peer(), None);
    }

    #[test]
    fn every_transport_kind_and_origin_has_a_place() {
        for transport in Transport::ALL {
            let mut row = row();
            row.set_transport(transport.as_str().as_bytes());
            assert_eq!(Row::from_bytes(&row.to_bytes()).transport(), transport);
        }
        for kind in KINDS {
            let mut row = row();
            row.set_kind(kind.as_str().as_bytes());
            assert_eq!(Row::from_bytes(&row.to_bytes()).kind(), kind);
        }
        let mut row = row();
        assert_eq!((row.origin(), row.kind()), (Origin::Client, Kind::Other));
        row.set_direction(b"server_to_client");
        assert_eq!(row.origin(), Origin::Server);
        row.set_origin(b"proxy");
        assert_eq!(row.origin(), Origin::Proxy);
    }
}
