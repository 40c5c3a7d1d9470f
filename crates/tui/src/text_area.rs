//! Lines of text and a cursor in them: what the inline editor types into.
//!
//! Our own instead of `ratatui-textarea`: the undo history is bounded by bytes, because messages can be large, and the editor
//! needs little else of that crate.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::command::UiCommand;

/// Changes that can be taken back, and the most bytes they may keep.
const UNDO_STEPS: usize = 100;
const UNDO_BYTES: usize = 32 << 20;
/// Rows that a page key moves.
const PAGE: usize = 15;

/// A text and a place in it.
#[derive(Clone, Debug, Default)]
pub struct TextArea {
    /// Never empty.
    lines: Vec<String>,
    row: usize,
    /// In characters.
    column: usize,
    top: usize,
    left: usize,
    /// The size of the screen that `top` and `left` are for.
    size: (usize, usize),
    undo: Vec<UndoState>,
}

#[derive(Clone, Debug)]
struct UndoState {
    lines: Vec<String>,
    row: usize,
    column: usize,
}

impl TextArea {
    /// With the cursor at the beginning.
    pub fn new(text: &str) -> TextArea {
        TextArea {
            lines: lines(text),
            ..TextArea::default()
        }
    }

    /// The text.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Another text, which can be taken back.
    pub fn replace(&mut self, text: &str) {
        self.remember();
        self.lines = lines(text);
        (self.row, self.column) = (0, 0);
    }

    /// Does what a key stands for. True: the text has changed.
    pub fn run(&mut self, command: UiCommand) -> bool {
        match command {
            UiCommand::Undo => return self.take_back(),
            UiCommand::CutLine => return self.cut_line(),
            UiCommand::Backspace => return self.backspace(),
            UiCommand::Delete => return self.delete(),
            UiCommand::Indent => {
                self.insert("  ");
                return true;
            }
            UiCommand::NewLine => {
                self.insert("\n");
                return true;
            }
            UiCommand::TextLeft if self.column > 0 => self.column -= 1,
            UiCommand::TextLeft if self.row > 0 => {
                self.row -= 1;
                self.column = self.len();
            }
            UiCommand::TextRight if self.column < self.len() => self.column += 1,
            UiCommand::TextRight if self.row + 1 < self.lines.len() => {
                self.row += 1;
                self.column = 0;
            }
            UiCommand::LineUp => self.go(self.row.saturating_sub(1)),
            UiCommand::LineDown => self.go(self.row + 1),
            UiCommand::LinesUp => self.go(self.row.saturating_sub(PAGE)),
            UiCommand::LinesDown => self.go(self.row + PAGE),
            UiCommand::TextStart => self.column = 0,
            UiCommand::TextEnd => self.column = self.len(),
            _ => {}
        }
        false
    }

    /// Puts text in at the cursor; `\n` makes a new line.
    pub fn insert(&mut self, text: &str) {
        self.remember();
        let place = self.byte();
        let rest = self.lines[self.row].split_off(place);
        let mut parts = text.split('\n');
        self.lines[self.row].push_str(parts.next().unwrap_or_default());
        for part in parts {
            self.row += 1;
            self.lines.insert(self.row, part.to_owned());
        }
        self.column = self.len();
        self.lines[self.row].push_str(&rest);
    }

    /// The first line and the first column that are shown, so that the cursor is on a screen of this size.
    pub fn scroll(&mut self, width: usize, height: usize) -> (usize, usize) {
        let (width, height) = (width.max(1), height.max(1));
        let (row, column) = self.cursor();
        let shown = (column + 1).saturating_sub(width);
        if self.size != (width, height) {
            // What was scrolled away on a smaller screen may fit now.
            self.size = (width, height);
            self.left = shown;
            self.top = self.top.min(self.lines.len().saturating_sub(height));
        }
        self.top = self.top.clamp((row + 1).saturating_sub(height), row);
        self.left = self.left.clamp(shown, column.max(shown));
        (self.top, self.left)
    }

    /// The line of the cursor, and its column on the screen.
    pub fn cursor(&self) -> (usize, usize) {
        let before = &self.lines[self.row][..self.byte()];
        (self.row, before.width())
    }

    fn len(&self) -> usize {
        self.lines[self.row].chars().count()
    }

    fn byte(&self) -> usize {
        let line = &self.lines[self.row];
        let place = line.char_indices().nth(self.column);
        place.map_or(line.len(), |(place, _)| place)
    }

    /// To another line, at about the same place on the screen.
    fn go(&mut self, row: usize) {
        let (_, wanted) = self.cursor();
        self.row = row.min(self.lines.len() - 1);
        let mut used = 0;
        let line = self.lines[self.row].chars();
        self.column = line
            .take_while(|letter| {
                used += letter.width().unwrap_or(0);
                used <= wanted
            })
            .count();
    }

    fn backspace(&mut self) -> bool {
        if self.column == 0 && self.row == 0 {
            return false;
        }
        self.remember();
        if self.column > 0 {
            self.column -= 1;
            let place = self.byte();
            self.lines[self.row].remove(place);
        } else {
            let line = self.lines.remove(self.row);
            self.row -= 1;
            self.column = self.len();
            self.lines[self.row].push_str(&line);
        }
        true
    }

    fn delete(&mut self) -> bool {
        let is_end = self.column == self.len();
        if is_end && self.row + 1 == self.lines.len() {
            return false;
        }
        self.remember();
        if is_end {
            let next = self.lines.remove(self.row + 1);
            self.lines[self.row].push_str(&next);
        } else {
            let place = self.byte();
            self.lines[self.row].remove(place);
        }
        true
    }

    /// Cuts the rest of the line off, or joins the next one where there is none.
    fn cut_line(&mut self) -> bool {
        if self.column == self.len() {
            return self.delete();
        }
        self.remember();
        let place = self.byte();
        self.lines[self.row].truncate(place);
        true
    }

    fn remember(&mut self) {
        let size = |lines: &[String]| lines.iter().map(String::len).sum::<usize>();
        let mut bytes = size(&self.lines);
        let kept = self.undo.iter().rev().take(UNDO_STEPS - 1);
        let kept = kept
            .take_while(|before| {
                bytes += size(&before.lines);
                bytes <= UNDO_BYTES
            })
            .count();
        self.undo.drain(..self.undo.len() - kept);
        self.undo.push(UndoState {
            lines: self.lines.clone(),
            row: self.row,
            column: self.column,
        });
    }

    fn take_back(&mut self) -> bool {
        let Some(before) = self.undo.pop() else {
            return false;
        };
        self.lines = before.lines;
        (self.row, self.column) = (before.row, before.column);
        true
    }
}

fn lines(text: &str) -> Vec<String> {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    match lines.is_empty() {
        true => vec![String::new()],
        false => lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_are_split_joined_and_taken_back() {
        let mut area = TextArea::new("aé\nb");
        area.run(UiCommand::TextRight);
        assert!(area.run(UiCommand::NewLine));
        assert_eq!(area.lines(), ["a", "é", "b"]);
        assert!(area.run(UiCommand::Backspace));
        assert_eq!(area.lines(), ["aé", "b"]);
        area.run(UiCommand::TextEnd);
        assert!(area.run(UiCommand::Delete));
        assert_eq!(area.lines(), ["aéb"]);
        area.insert("1\n2");
        assert_eq!(area.lines(), ["aé1", "2b"]);
        for _ in 0..4 {
            assert!(area.run(UiCommand::Undo));
        }
        assert_eq!(area.lines(), ["aé", "b"]);
        assert!(!area.run(UiCommand::LineDown));
    }

    #[test]
    fn wide_letters_keep_their_columns() {
        let mut area = TextArea::new("漢字\nabcd");
        area.run(UiCommand::TextEnd);
        assert_eq!(area.cursor(), (0, 4));
        area.run(UiCommand::LineDown);
        assert_eq!(area.cursor(), (1, 4));
        area.run(UiCommand::TextLeft);
        area.run(UiCommand::LineUp);
        assert_eq!(area.cursor(), (0, 2));
        assert_eq!(area.scroll(2, 1), (0, 1));
    }

    #[test]
    fn a_larger_screen_shows_what_a_smaller_one_scrolled_away() {
        let mut area = TextArea::new(&format!("{}\nb\nc\nd", "x".repeat(50)));
        area.run(UiCommand::LinesDown);
        area.run(UiCommand::LinesUp);
        area.run(UiCommand::TextEnd);
        assert_eq!(area.scroll(20, 1), (0, 31));
        assert_eq!(area.scroll(120, 40), (0, 0));
        area.run(UiCommand::LinesDown);
        assert_eq!(area.scroll(20, 2).0, 2);
        assert_eq!(area.scroll(20, 10).0, 0);
    }

    proptest! {
        #[test]
        fn no_key_leads_out_of_the_text(
            text in "[a漢\n]{0,12}",
            keys in prop::collection::vec(0..12usize, 0..60),
        ) {
            let mut area = TextArea::new(&text);
            let commands = [
                UiCommand::TextLeft, UiCommand::TextRight, UiCommand::LineUp, UiCommand::LineDown, UiCommand::TextStart, UiCommand::TextEnd,
                UiCommand::Backspace, UiCommand::Delete, UiCommand::NewLine, UiCommand::Indent, UiCommand::LinesUp, UiCommand::LinesDown,
            ];
            for key in keys {
                area.run(commands[key]);
                area.scroll(3, 2);
                let (row, _) = area.cursor();
                prop_assert!(row < area.lines().len());
            }
        }
    }
}
