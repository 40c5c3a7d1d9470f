//! Rows by their places on the screen, and messages by their sequence numbers.

use std::sync::{PoisonError, RwLockReadGuard};

use mcp_proxy_session::{MessageWithContext, SessionRecord};

use super::{MessageRow, RowGrouping, SessionView, StrayLines, rows};
use crate::tab::CarriedMessage;

/// Rows that are kept so that a screen that stays costs nothing to draw again: more than the largest screen has.
const MOST_CACHED: usize = 1_000;

impl SessionView {
    /// How many messages there are.
    pub fn total(&self) -> usize {
        self.progress.rows
    }

    /// How many rows the filter lets through, so far.
    pub fn len(&self) -> usize {
        if self.shows_all() {
            self.total()
        } else {
            self.shown.len()
        }
    }

    /// Whether no row is shown.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows at these places among the shown ones: one screen of them.
    pub fn window(&mut self, from: usize, count: usize) -> Vec<MessageRow> {
        let to = from.saturating_add(count).min(self.len());
        let wanted: Vec<u32> = (from..to).filter_map(|place| self.row_at(place)).collect();
        if self.cached.len() > MOST_CACHED {
            self.cached.clear();
        }
        let unknown = wanted.iter().any(|row| !self.cached.contains_key(row));
        if let Some(session) = self.rows.clone().filter(|_| unknown) {
            let session = session.read().unwrap_or_else(PoisonError::into_inner);
            for row in &wanted {
                if !self.cached.contains_key(row)
                    && let Some(line) = rows::line(&session, *row as usize, self.grouping())
                {
                    self.cached.insert(*row, line);
                }
            }
        }
        let lines = wanted.iter().filter_map(|row| self.cached.get(row));
        lines.cloned().collect()
    }

    /// The stray lines among the rows at these places, each with the place of the row below it. Filters are about messages:
    /// with one, no others are shown.
    pub fn stray_lines(&self, from: usize, count: usize) -> Vec<(usize, StrayLines)> {
        if !self.selection.filter.is_empty() {
            return Vec::new();
        }
        let to = from.saturating_add(count).min(self.len());
        let before = from.checked_sub(1).and_then(|place| self.row_at(place));
        let mut next = before.map_or(0, |row| row as usize + 1);
        let mut found = Vec::new();
        for place in from..to {
            let row = self.row_at(place).map_or(next, |row| row as usize);
            found.extend(self.strays.within(next..=row).map(|lines| (place, lines)));
            next = row + 1;
        }
        if to == self.len() {
            found.extend(self.strays.within(next..).map(|lines| (to, lines)));
        }
        found
    }

    /// The sequence number of the row at a place among the shown ones.
    pub fn sequence_at(&self, place: usize) -> Option<u64> {
        let row = self.row_at(place)?;
        rows::sequence(&*self.rows()?, row as usize)
    }

    /// The place of a message among the shown rows; `None` if it is not shown. An answer is at the place of its call.
    pub fn place_of(&self, sequence: u64) -> Option<usize> {
        let row = self.rows()?.find(sequence)?;
        let row = Some(row).filter(|row| *row < self.progress.rows)?;
        if self.shows_all() {
            return Some(row);
        }
        let place = |row: usize| self.shown.binary_search(&(row as u32)).ok();
        let call = || match self.grouping() {
            RowGrouping::Messages => None,
            RowGrouping::Calls => rows::call_of(&*self.rows()?, row),
        };
        place(row).or_else(|| place(call()?))
    }

    /// The place of the shown row with this sequence number, else of the next, else of the last.
    pub fn nearest(&self, sequence: u64) -> Option<usize> {
        let row = rows::at_or_after(&*self.rows()?, sequence);
        let place = if self.shows_all() {
            row
        } else {
            self.shown.partition_point(|shown| (*shown as usize) < row)
        };
        Some(place.min(self.len().checked_sub(1)?))
    }

    /// A whole message.
    pub fn message_with_context(&self, sequence: u64) -> Result<MessageWithContext, String> {
        let session = self.rows().ok_or("the record is not open yet")?;
        rows::told(&session, sequence)
    }

    /// A whole message with the HTTP head that carried it.
    pub fn carried_message(&self, sequence: u64) -> Result<CarriedMessage, String> {
        let session = self.rows().ok_or("the record is not open yet")?;
        let told = rows::told(&session, sequence)?;
        let http = rows::http_head(&session, &told.message);
        Ok(CarriedMessage { told, http })
    }

    /// Where calls are shown: the answer to the request of this number.
    pub fn answer_of_call(&self, sequence: u64) -> Option<CarriedMessage> {
        if self.grouping() == RowGrouping::Messages {
            return None;
        }
        let session = self.rows()?;
        let row = session.find(sequence)?;
        // An answer stands for itself where its request is not here.
        let answer = rows::peer(&session, row).filter(|_| rows::call_of(&session, row).is_none());
        let answer = rows::sequence(&session, answer?)?;
        drop(session);
        self.carried_message(answer).ok()
    }

    /// Of an answer: the request whose row shows the whole call.
    pub fn request_of(&self, sequence: u64) -> Option<u64> {
        let session = self.rows()?;
        let call = rows::call_of(&session, session.find(sequence)?)?;
        rows::sequence(&session, call)
    }

    /// The message that answers this one, or the request that this one answers.
    pub fn peer(&self, sequence: u64) -> Option<u64> {
        let session = self.rows()?;
        let row = session.find(sequence)?;
        let peer = rows::peer(&session, row).or_else(|| session.exchange_peer(row))?;
        rows::sequence(&session, peer)
    }

    /// The number of the row at a place.
    fn row_at(&self, place: usize) -> Option<u32> {
        if self.shows_all() {
            return (place < self.total()).then_some(place as u32);
        }
        self.shown.get(place).copied()
    }

    fn rows(&self) -> Option<RwLockReadGuard<'_, SessionRecord>> {
        let rows = self.rows.as_ref()?;
        Some(rows.read().unwrap_or_else(PoisonError::into_inner))
    }
}
