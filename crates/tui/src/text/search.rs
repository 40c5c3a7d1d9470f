//! Looking for text in what is shown of a body.

use super::{BodyLayout, BodyLine};

/// Whether a text has `needle` in it. As in `vi` with `smartcase`, lower case finds both cases. Nothing has an empty one.
pub(crate) fn has(text: &str, needle: &str) -> bool {
    let ignores_case = !needle.chars().any(char::is_uppercase);
    !needle.is_empty()
        && (text.contains(needle) || ignores_case && text.to_lowercase().contains(needle))
}

impl BodyLayout {
    /// The first line at `from_line` or after it, and then from the top, that has `needle` in it. Nothing has an empty one.
    pub fn find(&self, needle: &str, from_line: usize) -> Option<usize> {
        let from = from_line.min(self.lines().len());
        self.first(needle, (from..self.lines().len()).chain(0..from))
    }

    /// The first line at `from_line` or before it, and then from the bottom, that has `needle` in it.
    pub fn find_back(&self, needle: &str, from_line: usize) -> Option<usize> {
        let from = from_line.saturating_add(1).min(self.lines().len());
        let after = (from..self.lines().len()).rev();
        self.first(needle, (0..from).rev().chain(after))
    }

    /// The byte of a line's text that `needle` begins with, by the same rule.
    pub(crate) fn place_in_line(&self, needle: &str, line: usize) -> usize {
        let text = self.lines().get(line).map(BodyLine::text);
        let text = text.unwrap_or_default();
        // Lower case is hardly ever longer or shorter, and then a row more or less does not matter.
        let found = text.find(needle);
        let found = found.or_else(|| text.to_lowercase().find(needle));
        found.unwrap_or_default()
    }

    fn first(&self, needle: &str, mut lines: impl Iterator<Item = usize>) -> Option<usize> {
        let mut text = String::new();
        lines.find(|&line| {
            text.clear();
            self.lines()[line].push_text(&mut text);
            has(&text, needle)
        })
    }
}
