//! Searching a file line by line, in bounded time and memory.

mod output;
mod pattern;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Take};
use std::time::{Duration, Instant};

use super::PartText;
use crate::{ReadFacts, ReadLimit, SpillError};
use output::GrepOutput;
use pattern::LinePattern;

/// How much of the file is read at once.
const PIECE: usize = 256 << 10;
/// Of a line that is longer only this much is searched.
const LONGEST_LINE: u64 = 32 << 20;
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
    let pattern = LinePattern::new(pattern, deadline)?;
    let mut output = GrepOutput::new(context.min(MOST_CONTEXT), limit.get());
    let mut lines = FileLines::new(file, size)?;
    while let Some(line) = lines.next()? {
        let matches = pattern.search(line);
        match matches.first {
            Some(place) => output.push_match(line, place, matches.count),
            None => output.push_other(line),
        }
        if matches.is_out_of_time {
            output.stop();
            break;
        }
    }
    let truncated = output.is_incomplete();
    let facts = ReadFacts::Matches {
        match_count: output.match_count(),
        occurrence_count: output.occurrence_count(),
        returned_matches: output.returned_matches(),
        reading: pattern.reading(),
    };
    Ok(PartText {
        text: output.into_text(),
        truncated,
        facts,
    })
}

/// The lines of a file, one after the other.
struct FileLines<'a> {
    reader: BufReader<Take<&'a File>>,
    line: Vec<u8>,
}

impl FileLines<'_> {
    fn new(mut file: &File, size: u64) -> io::Result<FileLines<'_>> {
        // Its lines may have been counted before.
        file.rewind()?;
        Ok(FileLines {
            reader: BufReader::with_capacity(PIECE, file.take(size)),
            line: Vec::new(),
        })
    }

    /// The next line without its line break, and without what is behind the part that is searched.
    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        let mut start = (&mut self.reader).take(LONGEST_LINE);
        let length = start.read_until(b'\n', &mut self.line)?;
        if self.line.ends_with(b"\n") {
            self.line.pop();
        } else if length as u64 == LONGEST_LINE {
            self.reader.skip_until(b'\n')?;
        }
        Ok((length > 0).then_some(&self.line))
    }
}

#[cfg(test)]
mod tests;
