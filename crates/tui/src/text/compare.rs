//! Two bodies side by side, line by line.

use super::json::STEP;
use super::{BodyLayout, BodyLine, TextPieceKind};
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use std::hash::Hash;
use std::ops::Range;
use std::time::{Duration, Instant};

/// After this the rest is compared roughly: a screen that stands still is worse than a coarse answer.
const PATIENCE: Duration = Duration::from_millis(200);

/// One row of two bodies side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiffRow {
    /// The line of the left body, if there is one in this row.
    pub left: Option<usize>,
    /// The line of the right body, if there is one in this row.
    pub right: Option<usize>,
    /// How the two differ.
    pub kind: LineDifference,
}

/// How two lines differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineDifference {
    /// Not at all, but maybe for the comma behind, which tells of the next line only.
    Same,
    /// There is one in place of the other.
    Changed,
    /// Only the right one is there.
    Added,
    /// Only the left one is there.
    Removed,
}

/// Whether messages with other JSON-RPC ids differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdComparison {
    /// They do.
    Compared,
    /// They do not: a request that is sent again has another id.
    Ignored,
}

/// Compares two bodies. Every line of both is in the answer once, in order.
pub(crate) fn compare(left: &BodyLayout, right: &BodyLayout, ids: IdComparison) -> Vec<DiffRow> {
    let deadline = Instant::now().checked_add(PATIENCE);
    // Where only one is JSON, the other has its layout in its text.
    let written = match left.form() == right.form() {
        true => written,
        false => only_text,
    };
    let keys = |body: &BodyLayout| {
        let keys = body.lines().iter().map(|line| match ids {
            IdComparison::Ignored if is_jsonrpc_id(line) => (line.indent, String::new()),
            _ => written(line),
        });
        keys.collect::<Vec<_>>()
    };
    let mut rows = DiffBuilder {
        left,
        right,
        ids,
        deadline,
        rows: Vec::with_capacity(left.lines().len().max(right.lines().len())),
    };
    for stretch in stretches(&keys(left), &keys(right), deadline) {
        match stretch {
            DiffBlock::Same(left, right) => rows.same(left, right),
            DiffBlock::Different(left, right) => rows.different(left, right),
        }
    }
    rows.rows
}

/// What is compared of a line: its place and its text, without the comma behind.
fn written(line: &BodyLine) -> (u16, String) {
    let mut text = line.text();
    let last = line.pieces.last().map(|last| last.kind);
    if last == Some(TextPieceKind::Punctuation) && text.ends_with(',') {
        text.pop();
    }
    (line.indent, text)
}

/// The same without its place.
fn only_text(line: &BodyLine) -> (u16, String) {
    let text = line.text();
    let text = text.trim();
    (0, text.strip_suffix(',').unwrap_or(text).to_owned())
}

/// The `id` of a message itself, one level deep.
fn is_jsonrpc_id(line: &BodyLine) -> bool {
    let key = line.pieces.first();
    usize::from(line.indent) == STEP && key.is_some_and(|key| key.text == "\"id\"")
}

/// Which member a line is of: its place and its key, as far as that can be seen.
fn member(line: &BodyLine) -> (u16, Option<&str>) {
    let key = line
        .pieces
        .iter()
        .find(|piece| piece.kind == TextPieceKind::Key);
    (line.indent, key.map(|key| key.text.as_str()))
}

enum DiffBlock {
    Same(Range<usize>, Range<usize>),
    Different(Range<usize>, Range<usize>),
}

/// What is the same and what is not, in turns.
fn stretches<T: Eq + Hash>(left: &[T], right: &[T], deadline: Option<Instant>) -> Vec<DiffBlock> {
    let mut stretches: Vec<DiffBlock> = Vec::new();
    for op in capture_diff_slices_deadline(Algorithm::Myers, left, right, deadline) {
        let (old, new) = (op.old_range(), op.new_range());
        match (op, stretches.last_mut()) {
            (DiffOp::Equal { .. }, _) => stretches.push(DiffBlock::Same(old, new)),
            (_, Some(DiffBlock::Different(left, right))) => {
                left.end = left.end.max(old.end);
                right.end = right.end.max(new.end);
            }
            _ => stretches.push(DiffBlock::Different(old, new)),
        }
    }
    stretches
}

struct DiffBuilder<'a> {
    left: &'a BodyLayout,
    right: &'a BodyLayout,
    ids: IdComparison,
    deadline: Option<Instant>,
    rows: Vec<DiffRow>,
}

impl DiffBuilder<'_> {
    /// Lines that are not the same. Those of the same member stand next to each other, the others as they come.
    fn different(&mut self, left: Range<usize>, right: Range<usize>) {
        if left.len() == right.len() || left.is_empty() || right.is_empty() {
            self.by_place(left, right);
            return;
        }
        let (left_lines, right_lines) = (self.left.lines(), self.right.lines());
        let left_keys: Vec<_> = left_lines[left.clone()].iter().map(member).collect();
        let right_keys: Vec<_> = right_lines[right.clone()].iter().map(member).collect();
        for stretch in stretches(&left_keys, &right_keys, self.deadline) {
            let (DiffBlock::Same(old, new) | DiffBlock::Different(old, new)) = stretch;
            self.by_place(shift(old, left.start), shift(new, right.start));
        }
    }

    fn by_place(&mut self, left: Range<usize>, right: Range<usize>) {
        let both = left.len().min(right.len());
        let (left_rest, right_rest) = (left.start + both..left.end, right.start + both..right.end);
        for (left, right) in left.zip(right) {
            // A comparison that ran out of time has not looked at every line.
            let lines = [&self.left.lines()[left], &self.right.lines()[right]];
            let is_ignored =
                self.ids == IdComparison::Ignored && lines.into_iter().all(is_jsonrpc_id);
            let is_same = is_ignored || written(lines[0]) == written(lines[1]);
            let kind = if is_same {
                LineDifference::Same
            } else {
                LineDifference::Changed
            };
            self.push(Some(left), Some(right), kind);
        }
        for line in left_rest {
            self.push(Some(line), None, LineDifference::Removed);
        }
        for line in right_rest {
            self.push(None, Some(line), LineDifference::Added);
        }
    }

    fn same(&mut self, left: Range<usize>, right: Range<usize>) {
        for (left, right) in left.zip(right) {
            self.push(Some(left), Some(right), LineDifference::Same);
        }
    }

    fn push(&mut self, left: Option<usize>, right: Option<usize>, kind: LineDifference) {
        self.rows.push(DiffRow { left, right, kind });
    }
}

fn shift(range: Range<usize>, by: usize) -> Range<usize> {
    range.start + by..range.end + by
}
