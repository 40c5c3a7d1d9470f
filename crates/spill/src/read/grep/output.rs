//! The lines that a search shows: matches as `12: text`, lines around them as `12- text`, `---` between groups.

use std::collections::VecDeque;
use std::io::Write;

use crate::line_index::char_boundary;

/// Of a longer line only a part is shown.
const LINE: usize = 1024;
/// How much of that stands in front of the match.
const BEFORE_MATCH: usize = 256;

/// Collects lines until the answer is full; then it only counts.
pub(super) struct GrepOutput {
    context: u64,
    /// How much text fits.
    room: usize,
    text: Vec<u8>,
    is_full: bool,
    /// The time was over before the end of the file.
    is_stopped: bool,
    /// The first line that is not shown whole, and the column in which its shown part ends.
    first_cut: Option<(u64, usize)>,
    /// Lines that were searched.
    passed: u64,
    last_shown: u64,
    last_match: Option<u64>,
    match_count: u64,
    occurrence_count: u64,
    returned_matches: u64,
    /// The last lines that were not shown, for the next match.
    earlier: VecDeque<Vec<u8>>,
}

/// What a shown line is.
#[derive(Clone, Copy)]
enum ShownLine {
    /// With the place of the match in it.
    Match(usize),
    Context,
}

impl GrepOutput {
    pub(super) fn new(context: u64, room: usize) -> GrepOutput {
        GrepOutput {
            context,
            room,
            text: Vec::new(),
            is_full: false,
            is_stopped: false,
            first_cut: None,
            passed: 0,
            last_shown: 0,
            last_match: None,
            match_count: 0,
            occurrence_count: 0,
            returned_matches: 0,
            earlier: VecDeque::new(),
        }
    }

    pub(super) fn match_count(&self) -> u64 {
        self.match_count
    }

    pub(super) fn occurrence_count(&self) -> u64 {
        self.occurrence_count
    }

    pub(super) fn returned_matches(&self) -> u64 {
        self.returned_matches
    }

    /// The rest of the file is not searched.
    pub(super) fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Whether there may be more than is shown.
    pub(super) fn is_incomplete(&self) -> bool {
        self.is_stopped || self.is_full || self.returned_matches < self.match_count
    }

    /// Takes a line that does not match.
    pub(super) fn push_other(&mut self, line: &[u8]) {
        self.passed += 1;
        if self.is_full || self.context == 0 {
            return;
        }
        let is_behind_match = |last| self.passed <= last + self.context;
        if self.last_match.is_some_and(is_behind_match) {
            return self.show(self.passed, line, ShownLine::Context);
        }
        if self.earlier.len() as u64 == self.context {
            self.earlier.pop_front();
        }
        let start = &line[..line.len().min(LINE + 1)];
        self.earlier.push_back(start.to_vec());
    }

    /// Takes a line with `count` matches, the first of which begins at `place`.
    pub(super) fn push_match(&mut self, line: &[u8], place: usize, count: u64) {
        self.passed += 1;
        self.match_count += 1;
        self.occurrence_count += count;
        self.last_match = Some(self.passed);
        if self.is_full {
            return;
        }
        let earlier = std::mem::take(&mut self.earlier);
        let first = self.passed - earlier.len() as u64;
        for (line, number) in earlier.iter().zip(first..) {
            self.show(number, line, ShownLine::Context);
        }
        self.show(self.passed, line, ShownLine::Match(place));
    }

    pub(super) fn into_text(mut self) -> Vec<u8> {
        if self.match_count == 0 {
            let note: &[u8] = match self.is_stopped {
                true => b"(no matches in the part that was searched)",
                false => b"(no matches)",
            };
            self.text.extend_from_slice(note);
        }
        if self.is_stopped {
            let note = b"\n[Stopped: the search takes too long, and the rest of the file was not searched. Use a simpler pattern.]";
            self.text.extend_from_slice(note);
        }
        if self.is_full || self.returned_matches < self.match_count {
            let (shown, count) = (self.returned_matches, self.match_count);
            let note = format!(
                "\n[TRUNCATED after {shown} of {count} matches. Use a narrower pattern, op='slice' around a line, or a larger maxBytes.]"
            );
            self.text.extend_from_slice(note.as_bytes());
        }
        if let Some((line, column)) = self.first_cut {
            let note = format!(
                "\n[Long lines are cut. Read on with op='slice' fromLine={line} toLine={line} fromColumn={column}]"
            );
            self.text.extend_from_slice(note.as_bytes());
        }
        self.text
    }

    fn show(&mut self, number: u64, line: &[u8], shown: ShownLine) {
        if self.is_full {
            return;
        }
        let end = self.text.len();
        let _ = self.write_line(number, line, shown);
        if self.text.len() > self.room {
            self.text.truncate(end);
            self.is_full = true;
            return;
        }
        self.last_shown = number;
        if let ShownLine::Match(_) = shown {
            self.returned_matches += 1;
        }
    }

    /// Writing to memory does not fail.
    fn write_line(&mut self, number: u64, line: &[u8], shown: ShownLine) -> std::io::Result<()> {
        let text = &mut self.text;
        if !text.is_empty() {
            text.push(b'\n');
            if number > self.last_shown + 1 {
                text.extend_from_slice(b"---\n");
            }
        }
        let (mark, place) = match shown {
            ShownLine::Match(place) => (':', place),
            ShownLine::Context => ('-', 0),
        };
        write!(text, "{number}{mark} ")?;
        if line.len() <= LINE {
            text.extend_from_slice(line);
            return Ok(());
        }
        let start = char_boundary(line, place.saturating_sub(BEFORE_MATCH));
        if start > 0 {
            write!(text, "[{start} bytes] ")?;
        }
        let length = char_boundary(&line[start..], LINE);
        if start + length < line.len() {
            self.first_cut = self.first_cut.or(Some((number, start + length + 1)));
        }
        let text = &mut self.text;
        text.extend_from_slice(&line[start..start + length]);
        match (line.len() - start - length, shown) {
            (0, _) => Ok(()),
            // Of a line of an earlier piece the rest is not known.
            (_, ShownLine::Context) => write!(text, " [cut]"),
            (rest, ShownLine::Match(_)) => write!(text, " [{rest} bytes]"),
        }
    }
}
