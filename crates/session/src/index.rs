//! The row index: 64 bytes a message, enough to list, sort, pair and filter without reading the record.
//!
//! It is a cache. It is built from the record in one pass over the envelopes, kept next to the record as `<record>.idx`, extended
//! from the offset that it covers when the record has grown, and thrown away when it does not fit the record.

mod build;
mod connections;
mod file;
mod row;
mod strings;

pub use row::Row;

pub(crate) use connections::ConnectionPlace;
pub(crate) use file::{load, path_for, store};

use strings::StringTable;

/// Everything the index knows.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) rows: Vec<Row>,
    pub(crate) strings: StringTable,
    /// Verdicts, by row and then in file order.
    pub(crate) acts: Vec<VerdictLocation>,
    /// Connections, by number.
    pub(crate) connections: Vec<ConnectionPlace>,
    /// Where the last `end` line is.
    pub(crate) end: Option<LineLocation>,
    /// Everything before this offset is in the index. Always the start of a line.
    pub(crate) covered: u64,
    /// Lines that are not record lines.
    pub(crate) damaged: u64,
    /// Bytes after the last whole line, when last looked.
    pub(crate) torn: u64,
}

/// A line in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineLocation {
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

/// A verdict's line and the row it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VerdictLocation {
    pub(crate) row: u32,
    pub(crate) line: LineLocation,
}

impl Index {
    /// The row of the message with this sequence number.
    ///
    /// Rows are in the order in which their lines were written, which is the order of sequence numbers except that a large body
    /// is written when its end has come. So: a binary search, then a look at the neighbours.
    pub(crate) fn find(&self, sequence: u64) -> Option<usize> {
        const NEIGHBOURS: usize = 1024;
        let near = self.rows.partition_point(|row| row.sequence() < sequence);
        if self
            .rows
            .get(near)
            .is_some_and(|row| row.sequence() == sequence)
        {
            return Some(near);
        }
        let from = near.saturating_sub(NEIGHBOURS);
        let to = (near + NEIGHBOURS).min(self.rows.len());
        (from..to).find(|row| self.rows[*row].sequence() == sequence)
    }

    /// The verdicts on a row, in file order.
    pub(crate) fn acts_on(&self, row: usize) -> impl Iterator<Item = LineLocation> + '_ {
        let row = u32::try_from(row).unwrap_or(u32::MAX);
        let from = self.acts.partition_point(|act| act.row < row);
        self.acts[from..]
            .iter()
            .take_while(move |act| act.row == row)
            .map(|act| act.line)
    }

    /// Leaves only `kept` of the rows, which are in order. What points at another row points at nothing then.
    pub(crate) fn thin_out(&mut self, kept: &[usize]) {
        let moved = |row: u32| {
            kept.binary_search(&(row as usize))
                .ok()
                .map(|row| row as u32)
        };
        self.rows = kept
            .iter()
            .filter_map(|row| self.rows.get(*row))
            .map(|row| row.with_peer(moved))
            .collect();
        self.acts.retain_mut(|act| match moved(act.row) {
            Some(row) => {
                act.row = row;
                true
            }
            None => false,
        });
    }

    /// Verdicts come soon after their messages, so the place is nearly always the end.
    fn insert_act(&mut self, act: VerdictLocation) {
        let at = self.acts.partition_point(|known| known.row <= act.row);
        self.acts.insert(at, act);
    }
}
