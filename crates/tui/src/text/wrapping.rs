//! Lines of a body broken into the rows of a pane.

use unicode_width::UnicodeWidthChar as _;

use super::{BodyLayout, BodyLine, TextPieceKind};

/// How much further right the second row of a line begins.
const CONTINUATION_INDENT: usize = 2;

/// A row of a pane: a line of a body, or a part of a long one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextRow {
    /// The line of the body.
    pub line: usize,
    /// How many columns the row is moved to the right.
    pub indent: usize,
    /// The byte of the line's text that the row begins with.
    pub from: usize,
    /// The byte that the next row begins with; none on the last row of a line.
    pub to: Option<usize>,
}

impl BodyLayout {
    /// The rows that these lines take on a pane of this many columns, or one row for each line where they are cut.
    pub(crate) fn rows(&self, lines: &[usize], columns: Option<usize>) -> Vec<TextRow> {
        let mut rows = Vec::with_capacity(lines.len());
        for &line in lines {
            self.push_rows(line, columns, &mut rows);
        }
        rows
    }

    /// Adds the rows of one line; there is always one.
    fn push_rows(&self, line: usize, columns: Option<usize>, rows: &mut Vec<TextRow>) {
        let Some(text) = self.lines().get(line) else {
            return;
        };
        let indent = usize::from(text.indent);
        let mut row = TextRow {
            line,
            indent,
            from: 0,
            to: None,
        };
        if let Some(columns) = columns {
            // Text that is nested deeply still gets half of the pane.
            row.indent = indent.min(columns / 2);
            let continued = (indent + CONTINUATION_INDENT).min(columns / 2);
            let rooms = [row.indent, continued].map(|indent| columns.saturating_sub(indent));
            for end in text.row_ends(rooms) {
                rows.push(TextRow {
                    to: Some(end),
                    ..row
                });
                row.from = end;
                row.indent = continued;
            }
        }
        rows.push(row);
    }
}

impl BodyLine {
    /// Where rows end: the first has this room, the others that. The end of the line is not among them.
    fn row_ends(&self, [first, others]: [usize; 2]) -> Vec<usize> {
        let mut ends = Vec::new();
        let (mut room, mut used) = (first, 0);
        let mut row_start = 0;
        // Behind the last space: the place, and how much of the row is used up to there.
        let mut break_at = None;
        let mut place = 0;
        for character in self.pieces.iter().flat_map(|piece| piece.text.chars()) {
            let width = character.width().unwrap_or(0);
            if used + width > room && place > row_start {
                // Between words, unless that leaves most of the row empty.
                let between_words = break_at.filter(|(_, filled)| filled * 2 >= room);
                let (end, filled) = between_words.unwrap_or((place, used));
                ends.push(end);
                (row_start, room) = (end, others);
                used -= filled;
                break_at = None;
            }
            used += width;
            place += character.len_utf8();
            if character == ' ' {
                break_at = Some((place, used));
            }
        }
        ends
    }

    /// The pieces of the text on this row.
    pub(crate) fn row_pieces(&self, row: &TextRow) -> Vec<(&str, TextPieceKind)> {
        let mut pieces = Vec::new();
        let mut start = 0;
        for piece in &self.pieces {
            if row.to.is_some_and(|to| start >= to) {
                break;
            }
            let len = piece.text.len();
            let from = row.from.saturating_sub(start).min(len);
            let to = row.to.map_or(len, |to| (to - start).min(len));
            start += len;
            match piece.text.get(from..to) {
                Some(text) if !text.is_empty() => pieces.push((text, piece.kind)),
                _ => {}
            }
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands on each row.
    fn wrapped(body: &BodyLayout, columns: usize) -> Vec<String> {
        let lines: Vec<usize> = (0..body.lines().len()).collect();
        let rows = body.rows(&lines, Some(columns));
        let text = |row: &TextRow| {
            let pieces = body.lines()[row.line].row_pieces(row);
            let text: String = pieces.into_iter().map(|(text, _)| text).collect();
            " ".repeat(row.indent) + &text
        };
        rows.iter().map(text).collect()
    }

    #[test]
    fn lines_break_between_words_and_long_words_anywhere() {
        let body =
            BodyLayout::of(br#"{"text":"no such file or directory","id":"0123456789012345678"}"#);
        assert_eq!(
            wrapped(&body, 20),
            [
                "{",
                "  \"text\": \"no such ",
                "    file or ",
                "    directory\",",
                "  \"id\": \"01234567890",
                "    12345678\"",
                "}"
            ]
        );
    }

    #[test]
    fn no_character_is_lost_at_any_width() {
        let body = BodyLayout::of(r#"{"a":{"b":["wide 漢字 and é",1,"\u0007",""]}}"#.as_bytes());
        let whole: String = body.lines().iter().map(BodyLine::text).collect();
        for columns in 0..40 {
            let rows = wrapped(&body, columns);
            let found: String = rows.iter().map(|row| row.trim_start()).collect();
            assert_eq!(found.replace(' ', ""), whole.replace(' ', ""), "{columns}");
        }
    }
}
