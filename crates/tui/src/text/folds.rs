//! Which brackets of a body are folded, and what is left to draw.

use super::BodyLayout;
use std::collections::BTreeSet;

/// The folded lines of one body. Only lines that open a bracket fold; others may be in here and change nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folds {
    lines: BTreeSet<usize>,
}

impl Folds {
    /// Folds a line, or unfolds it.
    pub fn toggle(&mut self, line: usize) {
        if !self.lines.remove(&line) {
            self.lines.insert(line);
        }
    }

    /// Whether a line is folded.
    pub fn is_folded(&self, line: usize) -> bool {
        self.lines.contains(&line)
    }

    /// Folds every bracket that stands in `depth` others or more, and only those: 0 folds all, 1 leaves the outermost open.
    pub fn fold_below(&mut self, body: &BodyLayout, depth: usize) {
        self.lines.clear();
        let mut closings = Vec::new();
        for (index, line) in body.lines().iter().enumerate() {
            while closings.last().is_some_and(|closing| *closing <= index) {
                closings.pop();
            }
            if let Some(closing) = line.opens {
                if closings.len() >= depth {
                    self.lines.insert(index);
                }
                closings.push(closing);
            }
        }
    }

    /// Folds this line too.
    pub fn fold(&mut self, line: usize) {
        self.lines.insert(line);
    }

    /// Unfolds everything.
    pub fn unfold_all(&mut self) {
        self.lines.clear();
    }

    /// Unfolds what hides a line, such as one that a search found.
    pub fn reveal(&mut self, body: &BodyLayout, line: usize) {
        self.lines.retain(|&folded| {
            let closing = body.lines().get(folded).and_then(|folded| folded.opens);
            folded >= line || closing.is_none_or(|closing| closing < line)
        });
    }
}

impl BodyLayout {
    /// The lines to draw, in order. For a folded line only itself is there: the closing bracket is in its [`BodyLayout::summary`].
    pub fn shown(&self, folds: &Folds) -> Vec<usize> {
        let mut shown = Vec::with_capacity(self.lines().len());
        let mut folded = folds.lines.iter().copied().peekable();
        let mut index = 0;
        while let Some(line) = self.lines().get(index) {
            shown.push(index);
            while folded.next_if(|&folded| folded < index).is_some() {}
            index = match line.opens {
                Some(closing) if folded.peek() == Some(&index) => closing + 1,
                _ => index + 1,
            };
        }
        shown
    }

    /// What to draw behind a folded line: `… 3 members }`. Empty for a line that opens nothing.
    pub fn summary(&self, line: usize) -> String {
        let Some(opening) = self.lines().get(line) else {
            return String::new();
        };
        let Some(closing) = opening.opens.and_then(|closing| self.lines().get(closing)) else {
            return String::new();
        };
        // With its comma, if there is one.
        let bracket = closing.text();
        let count = opening.members;
        let plural = if count == 1 { "" } else { "s" };
        match bracket.chars().next() {
            Some('}') => format!("… {count} member{plural} {bracket}"),
            Some(_) => format!("… {count} item{plural} {bracket}"),
            // An HTTP head ends with an empty line.
            None => format!(" … {count} header{plural}"),
        }
    }

    /// The line to fold when somebody on `line` wants to fold: itself, or the innermost one that encloses it.
    pub fn opener(&self, line: usize) -> Option<usize> {
        let before = self.lines().get(..=line)?;
        before
            .iter()
            .rposition(|candidate| candidate.opens.is_some_and(|closing| closing >= line))
    }
}
