//! Lines that were typed before: filters, searches, commands.

/// Lines that are remembered.
const KEPT_LINES: usize = 100;

/// Lines typed before, the newest last.
#[derive(Clone, Debug, Default)]
pub(crate) struct InputHistory {
    lines: Vec<String>,
    at: Option<usize>,
}

impl InputHistory {
    /// Remembers a line.
    pub(crate) fn keep(&mut self, line: &str) {
        self.at = None;
        if line.is_empty() || self.lines.last().is_some_and(|last| last == line) {
            return;
        }
        if self.lines.len() == KEPT_LINES {
            self.lines.remove(0);
        }
        self.lines.push(line.to_owned());
    }

    /// The line before.
    pub(crate) fn older(&mut self) -> Option<&str> {
        let at = self.at.unwrap_or(self.lines.len()).checked_sub(1)?;
        self.at = Some(at);
        self.lines.get(at).map(String::as_str)
    }

    /// The line after; behind the newest an empty one.
    pub(crate) fn newer(&mut self) -> Option<&str> {
        let at = self.at? + 1;
        self.at = (at < self.lines.len()).then_some(at);
        Some(self.lines.get(at).map_or("", String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_lines_come_back() {
        let mut history = InputHistory::default();
        history.keep("one");
        history.keep("two");
        history.keep("two");
        assert_eq!(history.older(), Some("two"));
        assert_eq!(history.older(), Some("one"));
        assert_eq!(history.older(), None);
        assert_eq!(history.newer(), Some("two"));
        assert_eq!(history.newer(), Some(""));
    }
}
