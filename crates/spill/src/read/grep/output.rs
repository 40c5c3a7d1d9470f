//! The lines that a search shows: matches as `12: text`, lines around them as `12- text`, `---` between groups.

use std::collections::VecDeque;
use std::io::Write;
use std::ops::Range;

use memchr::memrchr;

use super::count_lines;
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
    /// Lines in front of where the search stands.
    passed: u64,
    last_shown: u64,
    last_match: Option<u64>,
    match_count: u64,
    occurrence_count: u64,
    returned_matches: u64,
    /// The last lines of the pieces before, for matches at the beginning of the next.
    earlier: VecDeque<Vec<u8>>,
    /// Lines in front of this piece.
    piece_start: u64,
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
            piece_start: 0,
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

    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// The rest of the file is not searched.
    pub(super) fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Whether there may be more than is shown.
    pub(super) fn is_incomplete(&self) -> bool {
        self.is_stopped || self.is_full || self.returned_matches < self.match_count
    }

    pub(super) fn begin_piece(&mut self) {
        self.piece_start = self.passed;
    }

    /// Goes past lines that do not match, and shows those that follow a match closely.
    pub(super) fn pass(&mut self, piece: &[u8], lines: Range<usize>) {
        let skipped = &piece[lines];
        if let Some(last_match) = self.last_match
            && !self.is_full
        {
            let end = last_match + self.context;
            for (line, number) in split_lines(skipped).zip(self.passed + 1..=end) {
                self.show(number, line, ShownLine::Context);
            }
        }
        self.passed += count_lines(skipped);
    }

    /// The line right behind what was passed matches.
    pub(super) fn push_match(&mut self, piece: &[u8], line: Range<usize>, place: usize) {
        let number = self.passed + 1;
        self.match_count += 1;
        if !self.is_full {
            self.show_before(piece, line.start, number);
            let place = place.saturating_sub(line.start);
            self.show(number, &piece[line], ShownLine::Match(place));
        }
        self.last_match = Some(number);
        self.passed = number;
    }

    /// A line matches that is not shown. Once the answer is full, which one does not matter.
    pub(super) fn count_match(&mut self) {
        self.match_count += 1;
    }

    /// So many matches are in a line that matches.
    pub(super) fn count_occurrences(&mut self, count: u64) {
        self.occurrence_count += count;
    }

    /// Keeps the last lines of a piece that is about to go.
    pub(super) fn end_piece(&mut self, piece: &[u8]) {
        if self.is_full || self.context == 0 {
            return;
        }
        let lines: Vec<_> = lines_backwards(piece)
            .take(usize::try_from(self.context).unwrap_or(usize::MAX))
            .map(|line| line[..line.len().min(LINE + 1)].to_vec())
            .collect();
        self.earlier.extend(lines.into_iter().rev());
        while self.earlier.len() as u64 > self.context {
            self.earlier.pop_front();
        }
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

    /// The lines in front of a match that were not shown yet.
    fn show_before(&mut self, piece: &[u8], start: usize, number: u64) {
        let first = number.saturating_sub(self.context).max(self.last_shown + 1);
        let wanted = number.saturating_sub(first);
        let in_piece = wanted.min(self.passed - self.piece_start);
        let from_earlier = usize::try_from(wanted - in_piece).unwrap_or(usize::MAX);
        let skipped = self.earlier.len().saturating_sub(from_earlier);
        let earlier: Vec<_> = self.earlier.iter().skip(skipped).cloned().collect();
        let mut lines: Vec<_> = lines_backwards(&piece[..start])
            .take(usize::try_from(in_piece).unwrap_or(usize::MAX))
            .collect();
        lines.reverse();
        let lines = earlier.iter().map(Vec::as_slice).chain(lines);
        for (line, number) in lines.zip(first..) {
            self.show(number, line, ShownLine::Context);
        }
    }

    fn show(&mut self, number: u64, line: &[u8], shown: ShownLine) {
        if self.is_full || number <= self.last_shown {
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

/// The lines of a text without their line breaks.
fn split_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text
        .strip_suffix(b"\n")
        .map_or((text, false), |text| (text, true));
    let is_empty = text.0.is_empty() && !text.1;
    let lines = text.0.split(|byte| *byte == b'\n');
    lines.take(if is_empty { 0 } else { usize::MAX })
}

/// The same, from the last one.
fn lines_backwards(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text.strip_suffix(b"\n").unwrap_or(text)).filter(|_| !text.is_empty());
    std::iter::from_fn(move || {
        let text = rest?;
        let start = match memrchr(b'\n', text) {
            Some(end) => {
                rest = Some(&text[..end]);
                end + 1
            }
            None => {
                rest = None;
                0
            }
        };
        Some(&text[start..])
    })
}
