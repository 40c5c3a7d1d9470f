//! A filter on its way through the rows, a slice at a time.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use mcp_proxy_session::{Error, Filter, SessionRecord};

use super::RowGrouping;
use super::rows;
use super::worker::{ViewUpdate, WantedRows};

/// A search looks up this often to see what else is wanted, and to tell what it found.
const SLICE: Duration = Duration::from_millis(8);
/// Rows that cannot be read before a search is given up.
const PATIENCE: u32 = 100;

/// Which rows are shown.
#[derive(Debug, Clone, Default)]
pub(super) struct RowSelection {
    /// By which the screen tells an old search from a new one: 0 before the first filter.
    pub(super) number: u64,
    pub(super) filter: Filter,
    pub(super) grouping: RowGrouping,
}

impl RowSelection {
    /// Whether that is all of them.
    pub(super) fn is_all(&self) -> bool {
        self.filter.is_empty() && self.grouping == RowGrouping::Messages
    }

    /// The row that shows this one.
    fn row_of(&self, session: &SessionRecord, row: usize) -> usize {
        match self.grouping {
            RowGrouping::Messages => row,
            RowGrouping::Calls => rows::call_of(session, row).unwrap_or(row),
        }
    }
}

/// A search. It never ends: rows that come later are tried when they come.
#[derive(Debug, Default)]
pub(super) struct FilterSearch {
    selection: RowSelection,
    /// The next row to try.
    pub(super) next: usize,
    unreadable: u32,
    /// Why it was given up.
    pub(super) trouble: Option<String>,
}

impl FilterSearch {
    pub(super) fn new(selection: RowSelection) -> FilterSearch {
        FilterSearch {
            selection,
            ..FilterSearch::default()
        }
    }

    /// The number of what is searched for.
    pub(super) fn number(&self) -> u64 {
        self.selection.number
    }

    /// Tries rows for a while, as long as nobody wants another filter.
    pub(super) fn scan_slice(
        &mut self,
        session: &SessionRecord,
        wanted: &WantedRows,
        update: &mut ViewUpdate,
    ) {
        let end = session.len();
        if self.selection.is_all() || self.trouble.is_some() {
            self.next = end;
            return;
        }
        let until = Instant::now() + SLICE;
        let mut paused = false;
        let from = self.next;
        let selection = &self.selection;
        let seen = |row: usize, matches: bool| {
            match selection.row_of(session, row) {
                own if matches && own == row => update.found.push(row as u32),
                // An answer that matches shows its call.
                call if matches => update.rechecked.push((call as u32, true)),
                _ => {}
            }
            self.next = row + 1;
            // Looking at the clock costs as much as trying some rows.
            let pause = row % 16 == 15 && Instant::now() >= until;
            paused = pause || !wanted.is_current(selection.number);
            if paused {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let searched = scan(session, &selection.filter, from, seen);
        match searched {
            Ok(()) if paused => {}
            Ok(()) => self.next = end,
            // One line that cannot be read does not match; a program without an end never gets through.
            Err(error) => {
                self.next += 1;
                self.unreadable += 1;
                if matches!(error, Error::FilterStopped(_)) || self.unreadable > PATIENCE {
                    self.trouble = Some(error.to_string());
                }
            }
        }
    }

    /// Tries rows again that were passed: a verdict may have changed what the filter asks for.
    pub(super) fn retry(&self, session: &SessionRecord, update: &mut ViewUpdate) {
        let filter = &self.selection.filter;
        if filter.is_empty() {
            return;
        }
        let passed = update.changed.iter().map(|row| *row as usize);
        for changed in passed.filter(|row| *row < self.next) {
            let row = self.selection.row_of(session, changed);
            let answer = match self.selection.grouping {
                RowGrouping::Messages => None,
                RowGrouping::Calls => rows::peer(session, row),
            };
            let mut tried = std::iter::once(row).chain(answer);
            let matches = tried.any(|row| rows::matches(session, filter, row));
            update.rechecked.push((row as u32, matches));
        }
    }
}

/// Tells of every row from `from` on whether it matches, until `seen` stops it.
fn scan(
    session: &SessionRecord,
    filter: &Filter,
    from: usize,
    mut seen: impl FnMut(usize, bool) -> ControlFlow<()>,
) -> Result<(), Error> {
    // No line has to be read for that.
    if filter.is_empty() {
        let _ = (from..session.len()).try_for_each(|row| seen(row, true));
        return Ok(());
    }
    filter.scan(session, from, seen)
}
