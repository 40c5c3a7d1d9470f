//! Where a server wrote lines on stdout that are not messages: between which rows, how many, and how the first one reads.

use std::collections::VecDeque;
use std::ops::RangeBounds;

/// Places that are kept.
const KEPT_PLACES: usize = 2_000;

/// Lines between two rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrayLines {
    /// How many rows come before them.
    pub row: usize,
    /// How many lines there are.
    pub count: u64,
    /// The first of them.
    pub first: String,
}

/// All such places, in order.
#[derive(Debug, Default)]
pub(super) struct StrayPlaces {
    places: VecDeque<StrayLines>,
}

impl StrayPlaces {
    /// A line was written when there were this many rows.
    pub(super) fn push(&mut self, row: usize, text: &str) {
        match self.places.back_mut() {
            Some(last) if last.row == row => last.count += 1,
            _ => {
                if self.places.len() == KEPT_PLACES {
                    self.places.pop_front();
                }
                self.places.push_back(StrayLines {
                    row,
                    count: 1,
                    first: text.to_owned(),
                });
            }
        }
    }

    /// What was written at these places, together.
    pub(super) fn within(&self, rows: impl RangeBounds<usize>) -> Option<StrayLines> {
        let start = match rows.start_bound() {
            std::ops::Bound::Included(row) => *row,
            _ => 0,
        };
        let first = self.places.partition_point(|place| place.row < start);
        let places = self.places.range(first..);
        let mut places = places.take_while(|place| rows.contains(&place.row));
        let mut all = places.next()?.clone();
        all.count += places.map(|place| place.count).sum::<u64>();
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_at_one_place_are_counted_together() {
        let mut places = StrayPlaces::default();
        for (row, text) in [(0, "a"), (2, "b"), (2, "c"), (5, "d")] {
            places.push(row, text);
        }
        let found = |from, to| {
            let lines = places.within(from..=to)?;
            Some((lines.first, lines.count))
        };
        assert_eq!(found(0, 0), Some(("a".to_owned(), 1)));
        assert_eq!(found(1, 2), Some(("b".to_owned(), 2)));
        assert_eq!(found(3, 4), None);
        assert_eq!(found(1, 9), Some(("b".to_owned(), 3)));
    }
}
