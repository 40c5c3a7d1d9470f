//! Lines of a file, and its beginning.

use std::io;

use memchr::memchr;

use super::pieces::read_piece;
use super::{PartText, ReadableFile};
use crate::line_index::{LineIndex, char_boundary};
use crate::{ReadFacts, ReadLimit};

const PIECE: usize = 64 << 10;
/// Among several lines, of a longer one only this much is shown.
const LONGEST_SHOWN: usize = 4096;
/// The most bytes of one character.
const CHARACTER: usize = 4;

/// Lines of a file, counted from 1, both included, and where in the first of them to begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineRange {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) from_column: u64,
}

impl LineRange {
    pub(super) fn new(from: u64, to: u64) -> LineRange {
        LineRange {
            from: from.max(1),
            to,
            from_column: 1,
        }
    }
}

impl ReadableFile {
    /// The lines of a range, as far as there are any and as they fit.
    pub(super) fn slice(
        &self,
        index: &LineIndex,
        range: LineRange,
        limit: ReadLimit,
    ) -> io::Result<PartText> {
        let to = range.to.min(index.line_count());
        if range.from > to {
            return Ok(lines(Vec::new(), range.from, range.from - 1));
        }
        let mut shown = ShownLines::new(range, to, limit.whole());
        self.collect(index, &mut shown)?;
        if limit.whole() > limit.get() && (shown.is_cut || shown.last < to) {
            // There will be notes, and they need room.
            shown = ShownLines::new(range, to, limit.get());
            self.collect(index, &mut shown)?;
        }
        let (mut text, last) = (shown.text, shown.last);
        if last < to {
            let (total, next) = (index.line_count(), last + 1);
            let note = format!(
                "\n[TRUNCATED at line {last} of {total}. Use op='slice' with fromLine={next} for more, or a larger maxBytes.]"
            );
            text.extend_from_slice(note.as_bytes());
        }
        let mut part = lines(text, range.from, last);
        part.truncated = shown.is_cut || last < to;
        Ok(part)
    }

    /// The first bytes of the file.
    pub(super) fn start(&self, index: &LineIndex, limit: ReadLimit) -> io::Result<PartText> {
        let size = index.byte_size();
        let most = match size <= limit.whole() as u64 {
            true => limit.whole(),
            false => limit.get(),
        };
        // A byte more, by which it is seen whether a character is cut.
        let mut text = vec![0; most + 1];
        let length = read_piece(&self.file, 0, size, &mut text)?;
        text.truncate(length);
        let truncated = size > most as u64;
        if truncated {
            text.truncate(char_boundary(&text, most));
            let remaining = size - text.len() as u64;
            let note = format!(
                "\n[TRUNCATED at {most} bytes. {remaining} bytes remaining. Use op='slice' with fromLine/toLine or op='grep' with pattern to access remaining content, or a larger maxBytes.]"
            );
            text.extend_from_slice(note.as_bytes());
        }
        Ok(PartText {
            text,
            truncated,
            facts: ReadFacts::File,
        })
    }

    /// Reads the lines that are wanted until there is no more room.
    fn collect(&self, index: &LineIndex, shown: &mut ShownLines) -> io::Result<()> {
        let (mut offset, mut skip) = index.near(shown.line);
        let mut piece = vec![0; PIECE];
        loop {
            let length = read_piece(&self.file, offset, index.byte_size(), &mut piece)?;
            if length == 0 {
                shown.end_line();
                return Ok(());
            }
            offset += length as u64;
            let mut rest = &piece[..length];
            while !rest.is_empty() {
                let end = memchr(b'\n', rest);
                if skip == 0 {
                    shown.push(&rest[..end.unwrap_or(rest.len())]);
                }
                match end {
                    Some(_) if skip > 0 => skip -= 1,
                    Some(_) => shown.end_line(),
                    None => break,
                }
                if shown.is_done() {
                    return Ok(());
                }
                rest = &rest[end.map_or(rest.len(), |end| end + 1)..];
            }
        }
    }
}

/// Lines on their way into an answer.
struct ShownLines {
    /// The line at hand.
    line: u64,
    to: u64,
    room: usize,
    /// How much of one line is shown.
    longest: usize,
    /// Bytes at the beginning of the line at hand that are left out.
    skipped: u64,
    /// Bytes of the line at hand so far, with those that are not shown.
    length: u64,
    /// Where the line at hand begins in the text.
    start: usize,
    text: Vec<u8>,
    /// The last whole line in the text.
    last: u64,
    is_full: bool,
    /// Whether some line is not whole.
    is_cut: bool,
}

impl ShownLines {
    fn new(range: LineRange, to: u64, room: usize) -> ShownLines {
        ShownLines {
            line: range.from,
            to,
            room,
            longest: match range.from == to {
                true => room,
                false => room.min(LONGEST_SHOWN),
            },
            skipped: range.from_column.saturating_sub(1),
            length: 0,
            start: 0,
            text: Vec::new(),
            last: range.from - 1,
            is_full: false,
            is_cut: false,
        }
    }

    fn is_done(&self) -> bool {
        self.is_full || self.line > self.to
    }

    /// The next bytes of the line at hand.
    fn push(&mut self, bytes: &[u8]) {
        let before = self.skipped.saturating_sub(self.length);
        self.length += bytes.len() as u64;
        let before = usize::try_from(before).unwrap_or(usize::MAX);
        let bytes = bytes.get(before..).unwrap_or_default();
        // A few more, by which it is seen where the last character ends.
        let most = self.longest + CHARACTER;
        let left = most.saturating_sub(self.text.len() - self.start);
        self.text.extend_from_slice(&bytes[..bytes.len().min(left)]);
    }

    fn end_line(&mut self) {
        if self.is_done() {
            return;
        }
        let shown = char_boundary(&self.text[self.start..], self.longest);
        self.text.truncate(self.start + shown);
        let end = self.skipped.min(self.length) + shown as u64;
        if end < self.length {
            let (rest, line, column) = (self.length - end, self.line, end + 1);
            let mark = format!(
                "… [{rest} more bytes: op='slice' fromLine={line} toLine={line} fromColumn={column}]"
            );
            self.text.extend_from_slice(mark.as_bytes());
            self.is_cut = true;
        }
        // The first line is there in any case; its mark is what the room for notes is for.
        if self.start > 0 && self.text.len() > self.room {
            self.text.truncate(self.start - 1);
            self.is_full = true;
            return;
        }
        self.last = self.line;
        self.line += 1;
        self.skipped = 0;
        self.length = 0;
        if !self.is_done() {
            self.text.push(b'\n');
        }
        self.start = self.text.len();
    }
}

fn lines(text: Vec<u8>, from_line: u64, to_line: u64) -> PartText {
    PartText {
        text,
        truncated: false,
        facts: ReadFacts::Lines { from_line, to_line },
    }
}
