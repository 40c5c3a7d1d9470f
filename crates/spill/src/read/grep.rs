//! Searching a file for lines, in bounded time and memory.
//!
//! Whole pieces of the file are searched, not single lines, and lines are told apart only where something was found. A line that
//! is longer than a piece is searched in another way (`long_line.rs`), which can be stopped.

mod long_line;
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
use long_line::OutOfTime;
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
    grep_until(Instant::now() + TIME, file, size, pattern, context, limit)
}

fn grep_until(
    deadline: Instant,
    file: &File,
    size: u64,
    pattern: &str,
    context: u64,
    limit: ReadLimit,
) -> Result<PartText, SpillError> {
    let mut pattern = LinePattern::new(pattern, deadline)?;
    let mut output = GrepOutput::new(context.min(MOST_CONTEXT), limit.get());
    let mut pieces = LinePieces::new(file, size, pattern.piece_size());
    while let Some(piece) = pieces.next()? {
        let searched = search_piece(&mut pattern, piece, &mut output)?;
        if searched == Err(OutOfTime) || (Instant::now() > deadline && !pieces.is_at_end()) {
            output.stop();
            break;
        }
    }
    let match_count = output.match_count();
    let occurrence_count = output.occurrence_count();
    let returned_matches = output.returned_matches();
    let truncated = output.is_incomplete();
    Ok(PartText {
        text: output.into_text(),
        truncated,
        facts: ReadFacts::Matches {
            match_count,
            occurrence_count,
            returned_matches,
            reading: pattern.reading(),
        },
    })
}

/// Looks at whole lines. The inner error is the end of the time.
fn search_piece(
    pattern: &mut LinePattern,
    piece: &[u8],
    output: &mut GrepOutput,
) -> Result<Result<(), OutOfTime>, SpillError> {
    if piece.len() > pattern.piece_size() {
        return search_long_line(pattern, piece, output);
    }
    Ok(search_lines(pattern, piece, output))
}

fn search_lines(
    pattern: &mut LinePattern,
    piece: &[u8],
    output: &mut GrepOutput,
) -> Result<(), OutOfTime> {
    if output.is_full() {
        return count_rest(pattern, piece, 0, output);
    }
    output.begin_piece();
    let mut at = 0;
    while let Some(line) = pattern.find_line(piece, at)? {
        output.pass(piece, at..line.start);
        at = piece.len().min(line.end + 1);
        let place = pattern.place(piece, line.clone());
        let count = pattern.count_in(piece, line.clone());
        output.push_match(piece, line, place);
        output.count_occurrences(count?);
        if output.is_full() {
            return count_rest(pattern, piece, at, output);
        }
    }
    output.pass(piece, at..piece.len());
    output.end_piece(piece);
    Ok(())
}

/// Counts what is not shown any more.
fn count_rest(
    pattern: &mut LinePattern,
    piece: &[u8],
    mut at: usize,
    output: &mut GrepOutput,
) -> Result<(), OutOfTime> {
    while let Some(line) = pattern.find_line(piece, at)? {
        at = piece.len().min(line.end + 1);
        output.count_match();
        output.count_occurrences(pattern.count_in(piece, line)?);
    }
    Ok(())
}

/// Looks at one line that is longer than a piece.
fn search_long_line(
    pattern: &mut LinePattern,
    piece: &[u8],
    output: &mut GrepOutput,
) -> Result<Result<(), OutOfTime>, SpillError> {
    let line = 0..piece.len() - usize::from(piece.ends_with(b"\n"));
    output.begin_piece();
    match pattern.find_in_long_line(piece, line.clone())? {
        Err(OutOfTime) => return Ok(Err(OutOfTime)),
        Ok(None) => output.pass(piece, 0..piece.len()),
        Ok(Some(end)) => {
            let place = pattern.place_before(piece, end);
            let count = pattern.count_in_long_line(piece, line.clone())?;
            output.push_match(piece, line, place);
            output.count_occurrences(count.occurrences);
            if count.is_out_of_time {
                return Ok(Err(OutOfTime));
            }
        }
    }
    output.end_piece(piece);
    Ok(Ok(()))
}

/// A file in pieces of whole lines.
struct LinePieces<'a> {
    file: &'a File,
    size: u64,
    offset: u64,
    /// How much is given out at once, unless a line is longer.
    piece: usize,
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
            piece,
            buffer: vec![0; piece],
            filled: 0,
            given: 0,
            skips_line: false,
        }
    }

    fn is_at_end(&self) -> bool {
        self.offset >= self.size && self.given == self.filled
    }

    /// The next lines, or one long line. The last one has its line break, unless it is that of the file or too long.
    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.buffer.copy_within(self.given..self.filled, 0);
        self.filled -= self.given;
        self.given = 0;
        loop {
            if let Some(end) = self.complete_lines() {
                self.given = end;
                return Ok(Some(&self.buffer[..end]));
            }
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
            self.filled += read;
            if self.skips_line {
                self.skip_line();
                if read > 0 && self.skips_line {
                    continue;
                }
            }
            if read == 0 && self.complete_lines().is_none() {
                self.given = self.filled;
                return Ok((self.filled > 0).then_some(&self.buffer[..self.filled]));
            }
        }
    }

    /// Where the last line that fits into a piece ends, or else the first.
    fn complete_lines(&self) -> Option<usize> {
        if self.skips_line {
            return None;
        }
        let filled = &self.buffer[..self.filled];
        let (piece, rest) = filled.split_at(filled.len().min(self.piece));
        let in_piece = memchr::memrchr(b'\n', piece);
        let end = in_piece.or_else(|| Some(piece.len() + memchr(b'\n', rest)?));
        end.map(|end| end + 1)
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
