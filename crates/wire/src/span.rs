//! A byte range inside one message.
//!
//! Spans are how the head of a message points into its raw bytes, and how a splice names what it replaces.

use std::ops::Range;

/// A half-open byte range in [`Message::raw`](crate::Message::raw).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub struct Span {
    /// Index of the first byte.
    pub start: usize,
    /// Index after the last byte.
    pub end: usize,
}

impl Span {
    /// The span `start..end`.
    pub const fn new(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    /// How many bytes it covers; 0 when the ends are the wrong way round.
    pub const fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Whether it covers nothing, as the place of an insertion does.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The same span counted from a place `by` bytes earlier.
    pub const fn shift(self, by: usize) -> Span {
        Span {
            start: self.start.saturating_add(by),
            end: self.end.saturating_add(by),
        }
    }

    /// The span as an index range.
    pub const fn range(self) -> Range<usize> {
        self.start..self.end
    }
}
