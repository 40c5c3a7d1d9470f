//! The table of connections: where each began, what its server is called, what caused it, and whether it ended.
//!
//! Clients and callers stay in the record. A session may have as many connections as messages, so each costs a few words here.

use super::strings::StringId;
use super::{Index, LineLocation};
use std::num::NonZeroU64;

/// A connection's `open` line, and what a row or a list asks about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionPlace {
    pub(crate) number: u32,
    pub(crate) line: LineLocation,
    /// The call that caused it.
    pub(crate) parent: Option<NonZeroU64>,
    pub(crate) closed: bool,
    /// The name of its server, if it has one.
    pub(crate) server: StringId,
}

impl ConnectionPlace {
    /// Words of one on disk.
    pub(super) const WORDS: usize = 4;

    pub(super) fn to_words(self) -> [u64; ConnectionPlace::WORDS] {
        [
            self.line.offset,
            self.parent.map_or(0, NonZeroU64::get),
            u64::from(self.number) << 32 | u64::from(self.line.len),
            u64::from(self.server.0) << 32 | u64::from(self.closed),
        ]
    }

    pub(super) fn from_words(words: [u64; ConnectionPlace::WORDS]) -> ConnectionPlace {
        let [offset, parent, number_and_len, server_and_closed] = words;
        ConnectionPlace {
            number: (number_and_len >> 32) as u32,
            line: LineLocation {
                offset,
                len: number_and_len as u32,
            },
            parent: NonZeroU64::new(parent),
            closed: server_and_closed & 1 != 0,
            server: StringId((server_and_closed >> 32) as u32),
        }
    }
}

impl Index {
    /// The connection with this number. Records without `open` lines have none.
    pub(crate) fn connection(&self, number: u32) -> Option<&ConnectionPlace> {
        let place = self.find_connection(number).ok()?;
        self.connections.get(place)
    }

    /// Numbers are given in order, so the place is nearly always the end. A number that is there already stays as it is.
    pub(super) fn open_connection(&mut self, opened: ConnectionPlace) {
        if let Err(place) = self.find_connection(opened.number) {
            self.connections.insert(place, opened);
        }
    }

    pub(super) fn close_connection(&mut self, number: u32) {
        if let Ok(place) = self.find_connection(number) {
            self.connections[place].closed = true;
        }
    }

    fn find_connection(&self, number: u32) -> Result<usize, usize> {
        self.connections
            .binary_search_by_key(&number, |known| known.number)
    }
}
