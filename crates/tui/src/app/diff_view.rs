//! Two bodies side by side: which lines differ, and the rows that they take on the screen.

use crate::text::{BodyLayout, DiffRow, IdComparison, LineDifference, TextRow, compare};

/// Two bodies side by side.
pub struct DiffView {
    /// The numbers of their messages.
    pub sequences: [u64; 2],
    /// What they are.
    pub titles: [String; 2],
    /// The bodies.
    pub bodies: [BodyLayout; 2],
    /// Line by line.
    pub lines: Vec<DiffRow>,
    /// The rows of the screen.
    pub rows: Vec<DiffScreenRow>,
    /// The first row shown.
    pub top: usize,
    /// The columns that each side is wrapped at.
    columns: Option<[usize; 2]>,
}

/// A row of the screen with two bodies: parts of lines that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffScreenRow {
    /// The part of the left line and of the right one, where there are any.
    pub sides: [Option<TextRow>; 2],
    /// How the whole lines differ.
    pub kind: LineDifference,
}

impl DiffView {
    pub(super) fn new(
        sequences: [u64; 2],
        titles: [String; 2],
        bodies: [BodyLayout; 2],
        ids: IdComparison,
    ) -> DiffView {
        let lines = compare(&bodies[0], &bodies[1], ids);
        let mut view = DiffView {
            sequences,
            titles,
            bodies,
            lines,
            rows: Vec::new(),
            top: 0,
            columns: None,
        };
        view.lay_out();
        view
    }

    /// Wraps long lines at these columns of the two sides, or cuts them. The first line shown stays.
    pub(crate) fn wrap_at(&mut self, columns: Option<[usize; 2]>) {
        if self.columns == columns {
            return;
        }
        self.columns = columns;
        let first = self.rows.get(self.top).map(|row| row.sides);
        self.lay_out();
        let line_of = |side: Option<TextRow>| side.map(|row| row.line);
        let lines = first.map(|sides| sides.map(line_of));
        let same = self
            .rows
            .iter()
            .position(|row| Some(row.sides.map(line_of)) == lines);
        self.top = same.unwrap_or(0);
    }

    fn lay_out(&mut self) {
        self.rows.clear();
        for line in &self.lines {
            let rows_of = |side: usize, line: Option<usize>| {
                let columns = self.columns.map(|columns| columns[side]);
                self.bodies[side].rows(line.as_slice(), columns)
            };
            let sides = [rows_of(0, line.left), rows_of(1, line.right)];
            let height = sides[0].len().max(sides[1].len());
            self.rows.extend((0..height).map(|row| DiffScreenRow {
                sides: [0, 1].map(|side: usize| sides[side].get(row).copied()),
                kind: line.kind,
            }));
        }
    }
}
