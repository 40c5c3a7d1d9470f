//! Searching a file for lines, in linear time and bounded memory.
//!
//! Whole pieces of the file are searched, not single lines, and lines are told apart only where something was found.

mod output;
mod pattern;
mod required_literals;

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use memchr::{memchr, memchr_iter};

use super::PartText;
use super::pieces::read_piece;
use crate::{ReadFacts, ReadLimit, SpillError};
use output::GrepOutput;
use pattern::LinePattern;

/// The most of the file that is searched at once. It grows only for a line that is longer.
const PIECE: usize = 256 << 10;
/// Of a line that is longer only this much is searched.
const LONGEST_LINE: usize = 32 << 20;
/// A pattern may be the worst for a large file; then the rest is not searched.
const TIME: Duration = Duration::from_secs(5);
/// More lines around a match are not shown.
const MOST_CONTEXT: u64 = 1000;

/// Looks for `pattern` in the first `size` bytes of a file.
pub(super) fn grep(
    file: &File,
    size: u64,
    pattern: &str,
    context: u64,
    limit: ReadLimit,
) -> Result<PartText, SpillError> {
    let mut pattern = LinePattern::new(pattern)?;
    let mut output = GrepOutput::new(context.min(MOST_CONTEXT), limit.get());
    let mut pieces = LinePieces::new(file, size, pattern.piece_size());
    let begun = Instant::now();
    let mut truncated = false;
    while let Some(piece) = pieces.next()? {
        search_piece(&mut pattern, piece, &mut output);
        if begun.elapsed() > TIME && !pieces.is_at_end() {
            truncated = true;
            break;
        }
    }
    let match_count = output.match_count();
    let occurrence_count = output.occurrence_count();
    let returned_matches = output.returned_matches();
    truncated |= returned_matches < match_count || output.is_full();
    Ok(PartText {
        text: output.into_text(truncated),
        truncated,
        facts: ReadFacts::Matches {
            match_count,
            occurrence_count,
            returned_matches,
        },
    })
}

/// Looks at whole lines.
fn search_piece(pattern: &mut LinePattern, piece: &[u8], output: &mut GrepOutput) {
    if output.is_full() {
        count_rest(pattern, piece, 0, output);
        return;
    }
    output.begin_piece();
    let mut at = 0;
    while let Some(line) = pattern.find_line(piece, at) {
        output.pass(piece, at..line.start);
        at = piece.len().min(line.end + 1);
        let place = pattern.place(piece, line.clone());
        output.count_occurrences(pattern.count_in(piece, line.clone()));
        output.push_match(piece, line, place);
        if output.is_full() {
            count_rest(pattern, piece, at, output);
            return;
        }
    }
    output.pass(piece, at..piece.len());
    output.end_piece(piece);
}

/// Counts what is not shown any more.
fn count_rest(pattern: &mut LinePattern, piece: &[u8], mut at: usize, output: &mut GrepOutput) {
    while let Some(line) = pattern.find_line(piece, at) {
        at = piece.len().min(line.end + 1);
        output.count_match();
        output.count_occurrences(pattern.count_in(piece, line));
    }
}

/// A file in pieces of whole lines.
struct LinePieces<'a> {
    file: &'a File,
    size: u64,
    offset: u64,
    buffer: Vec<u8>,
    filled: usize,
    /// What of the buffer was given out.
    given: usize,
    /// Whether the rest of a line that was too long is being left out.
    skips_line: bool,
}

impl LinePieces<'_> {
    fn new(file: &File, size: u64, piece: usize) -> LinePieces<'_> {
        LinePieces {
            file,
            size,
            offset: 0,
            buffer: vec![0; piece],
            filled: 0,
            given: 0,
            skips_line: false,
        }
    }

    fn is_at_end(&self) -> bool {
        self.offset >= self.size && self.given == self.filled
    }

    /// The next lines. The last one has its line break, unless it is that of the file or too long.
    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.buffer.copy_within(self.given..self.filled, 0);
        self.filled -= self.given;
        self.given = 0;
        loop {
            if self.filled == self.buffer.len() {
                if self.filled >= LONGEST_LINE {
                    self.skips_line = true;
                    self.given = self.filled;
                    return Ok(Some(&self.buffer[..self.filled]));
                }
                self.buffer.resize(self.filled * 2, 0);
            }
            let free = &mut self.buffer[self.filled..];
            let read = read_piece(self.file, self.offset, self.size, free)?;
            self.offset += read as u64;
            let searched = self.filled;
            self.filled += read;
            if self.skips_line {
                self.skip_line();
                if read > 0 && self.skips_line {
                    continue;
                }
            }
            if read == 0 {
                self.given = self.filled;
                return Ok((self.filled > 0).then_some(&self.buffer[..self.filled]));
            }
            let searched = searched.min(self.filled);
            if let Some(end) = memchr::memrchr(b'\n', &self.buffer[searched..self.filled]) {
                self.given = searched + end + 1;
                return Ok(Some(&self.buffer[..self.given]));
            }
        }
    }

    /// Drops what is left of a long line, up to its line break, which stays out too.
    fn skip_line(&mut self) {
        let end = memchr(b'\n', &self.buffer[..self.filled]);
        let dropped = end.map_or(self.filled, |end| end + 1);
        self.buffer.copy_within(dropped..self.filled, 0);
        self.filled -= dropped;
        self.skips_line = end.is_none();
    }
}

/// How many lines begin in `text`, which begins with a line.
fn count_lines(text: &[u8]) -> u64 {
    let is_open = text.last().is_some_and(|last| *last != b'\n');
    memchr_iter(b'\n', text).count() as u64 + u64::from(is_open)
}

#[cfg(test)]
mod tests;
