//! What keys do to text that is typed: in the editor, and on the line of a prompt.

use ratatui_textarea::{CursorMove, TextArea};

use crate::command::UiCommand;

/// Rows that a page key moves.
const PAGE: usize = 15;
/// Changes that can be undone.
const UNDO_STEPS: usize = 1_000;

/// A text, with the cursor at its beginning.
pub(crate) fn text_area(text: &str) -> TextArea<'static> {
    let mut area = TextArea::from(text.lines());
    area.set_max_histories(UNDO_STEPS);
    area
}

/// One line of text, with the cursor at its end.
pub(crate) fn input_line(text: &str) -> TextArea<'static> {
    let mut line = text_area(text);
    line.move_cursor(CursorMove::End);
    line
}

/// Replaces all of the text, which can be undone. The cursor is at the beginning.
pub(crate) fn replace_text(area: &mut TextArea<'_>, text: &str) {
    area.select_all();
    area.insert_str(text.strip_suffix('\n').unwrap_or(text));
    area.move_cursor(CursorMove::Jump(0, 0));
}

/// Types or pastes text on a line: control characters, line breaks among them, become spaces.
pub(crate) fn type_on_line(line: &mut TextArea<'_>, text: &str) {
    line.insert_str(text.replace(char::is_control, " "));
}

/// Does what a key stands for. Returns whether the text has changed.
pub(crate) fn edit(area: &mut TextArea<'_>, command: UiCommand) -> bool {
    match command {
        UiCommand::Undo => undo(area),
        UiCommand::CutLine => area.delete_line_by_end(),
        UiCommand::CutBefore => area.delete_line_by_head(),
        UiCommand::CutWord => area.delete_word(),
        UiCommand::Backspace => area.delete_char(),
        UiCommand::Delete => area.delete_next_char(),
        UiCommand::Indent => area.insert_str("  "),
        UiCommand::NewLine => area.insert_str("\n"),
        movement => {
            move_cursor(area, movement);
            false
        }
    }
}

/// A replaced text is two steps of the history: the old text was deleted, and the new one inserted.
fn undo(area: &mut TextArea<'_>) -> bool {
    let undone = area.undo();
    if undone && area.is_empty() {
        area.undo();
    }
    undone
}

fn move_cursor(area: &mut TextArea<'_>, command: UiCommand) {
    let (movement, times) = match command {
        UiCommand::TextLeft => (CursorMove::Back, 1),
        UiCommand::TextRight => (CursorMove::Forward, 1),
        UiCommand::LineUp => (CursorMove::Up, 1),
        UiCommand::LineDown => (CursorMove::Down, 1),
        UiCommand::LinesUp => (CursorMove::Up, PAGE),
        UiCommand::LinesDown => (CursorMove::Down, PAGE),
        UiCommand::TextStart => (CursorMove::Head, 1),
        UiCommand::TextEnd | UiCommand::LineEnd => (CursorMove::End, 1),
        _ => return,
    };
    for _ in 0..times {
        area.move_cursor(movement);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_any_width_are_typed_and_taken_back() {
        let mut line = input_line("aé");
        edit(&mut line, UiCommand::TextLeft);
        type_on_line(&mut line, "漢");
        assert_eq!(line.lines(), ["a漢é"]);
        assert_eq!(line.cursor(), (0, 2));
        assert!(edit(&mut line, UiCommand::Backspace));
        assert!(edit(&mut line, UiCommand::Delete));
        assert_eq!(line.lines(), ["a"]);
        type_on_line(&mut line, "b\nc\u{1b}");
        assert_eq!(line.lines(), ["ab c "]);
        edit(&mut line, UiCommand::CutWord);
        assert_eq!(line.lines(), ["ab "]);
    }

    #[test]
    fn a_replaced_text_comes_back_with_one_undo() {
        let mut area = text_area("a\nb");
        replace_text(&mut area, "c\nd\n");
        assert_eq!(area.lines(), ["c", "d"]);
        assert_eq!(area.cursor(), (0, 0));
        assert!(edit(&mut area, UiCommand::Undo));
        assert_eq!(area.lines(), ["a", "b"]);
        assert!(!edit(&mut area, UiCommand::LineDown));
        assert!(edit(&mut area, UiCommand::NewLine));
        assert_eq!(area.lines(), ["a", "b", ""]);
    }
}
