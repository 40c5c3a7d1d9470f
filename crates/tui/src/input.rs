//! One line that is typed: filters, searches, commands.

use crate::command::UiCommand;

/// Lines that are remembered.
const HISTORY: usize = 100;

/// A line and the place in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputLine {
    text: String,
    /// In characters.
    place: usize,
}

/// Lines typed before, the newest last.
#[derive(Clone, Debug, Default)]
pub(crate) struct InputHistory {
    lines: Vec<String>,
    at: Option<usize>,
}

impl InputLine {
    /// With a text to begin with.
    pub fn of(text: &str) -> InputLine {
        InputLine {
            text: text.to_owned(),
            place: text.chars().count(),
        }
    }

    /// What is typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where the cursor is, in characters.
    pub fn place(&self) -> usize {
        self.place
    }

    /// Text that is typed or pasted, on one line.
    pub fn paste(&mut self, text: &str) {
        for letter in text.chars() {
            let letter = if letter.is_control() { ' ' } else { letter };
            self.insert(letter);
        }
    }

    /// Does what a key stands for.
    pub fn run(&mut self, command: UiCommand) {
        match command {
            UiCommand::TextStart => self.place = 0,
            UiCommand::TextEnd | UiCommand::LineEnd => self.place = self.len(),
            UiCommand::CutBefore => {
                self.text = self.text.chars().skip(self.place).collect();
                self.place = 0;
            }
            UiCommand::CutWord => self.delete_word(),
            UiCommand::Backspace if self.place > 0 => {
                self.place -= 1;
                self.remove();
            }
            UiCommand::Delete => self.remove(),
            UiCommand::TextLeft => self.place = self.place.saturating_sub(1),
            UiCommand::TextRight => self.place = (self.place + 1).min(self.len()),
            _ => {}
        }
    }

    fn len(&self) -> usize {
        self.text.chars().count()
    }

    fn byte(&self, place: usize) -> usize {
        self.text
            .char_indices()
            .nth(place)
            .map_or(self.text.len(), |(byte, _)| byte)
    }

    fn insert(&mut self, letter: char) {
        self.text.insert(self.byte(self.place), letter);
        self.place += 1;
    }

    fn remove(&mut self) {
        if self.place < self.len() {
            self.text.remove(self.byte(self.place));
        }
    }

    fn delete_word(&mut self) {
        let before: Vec<char> = self.text.chars().take(self.place).collect();
        let is_space = |letter: &char| letter.is_whitespace();
        let end = before.iter().rposition(|letter| !is_space(letter));
        let word = end.map_or(0, |end| {
            before[..end]
                .iter()
                .rposition(is_space)
                .map_or(0, |at| at + 1)
        });
        let rest: String = self.text.chars().skip(self.place).collect();
        self.text = before[..word].iter().collect::<String>() + &rest;
        self.place = word;
    }
}

impl InputHistory {
    /// Remembers a line.
    pub(crate) fn keep(&mut self, line: &str) {
        self.at = None;
        if line.is_empty() || self.lines.last().is_some_and(|last| last == line) {
            return;
        }
        if self.lines.len() == HISTORY {
            self.lines.remove(0);
        }
        self.lines.push(line.to_owned());
    }

    /// The line before.
    pub(crate) fn older(&mut self) -> Option<InputLine> {
        let at = self.at.unwrap_or(self.lines.len()).checked_sub(1)?;
        self.at = Some(at);
        self.lines.get(at).map(|line| InputLine::of(line))
    }

    /// The line after.
    pub(crate) fn newer(&mut self) -> Option<InputLine> {
        let at = self.at? + 1;
        self.at = (at < self.lines.len()).then_some(at);
        Some(
            self.lines
                .get(at)
                .map_or_else(InputLine::default, |line| InputLine::of(line)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_any_width_are_typed_and_taken_back() {
        let mut input = InputLine::of("aé");
        input.run(UiCommand::TextLeft);
        input.paste("漢");
        assert_eq!((input.text(), input.place()), ("a漢é", 2));
        input.run(UiCommand::Backspace);
        input.run(UiCommand::Delete);
        assert_eq!(input.text(), "a");
        input.paste("b\nc\u{1b}");
        assert_eq!(input.text(), "ab c ");
        input.run(UiCommand::CutWord);
        assert_eq!(input.text(), "ab ");
    }

    #[test]
    fn earlier_lines_come_back() {
        let mut history = InputHistory::default();
        history.keep("one");
        history.keep("two");
        history.keep("two");
        assert_eq!(history.older().unwrap().text(), "two");
        assert_eq!(history.older().unwrap().text(), "one");
        assert_eq!(history.older(), None);
        assert_eq!(history.newer().unwrap().text(), "two");
        assert_eq!(history.newer().unwrap().text(), "");
    }
}
