//! Lines that were shown lately, so that a screen that stays costs nothing to draw again.

use std::collections::HashMap;

use super::MessageRow;

/// Lines in one half: more than the largest screen has, so that a screen never pushes itself out.
const HALF: usize = 512;

/// The lines shown lately, by row. Two halves: what is used moves to the young one, and the old one is thrown away whole.
#[derive(Debug, Default)]
pub(super) struct RowCache {
    young: HashMap<u32, MessageRow>,
    old: HashMap<u32, MessageRow>,
}

impl RowCache {
    pub(super) fn get(&mut self, row: u32) -> Option<MessageRow> {
        if let Some(line) = self.young.get(&row) {
            return Some(line.clone());
        }
        let line = self.old.remove(&row)?;
        self.put(row, line.clone());
        Some(line)
    }

    pub(super) fn put(&mut self, row: u32, line: MessageRow) {
        if self.young.len() >= HALF {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(row, line);
    }

    /// The row is not what it was.
    pub(super) fn forget(&mut self, row: u32) {
        self.young.remove(&row);
        self.old.remove(&row);
    }
}
