//! Lines of a record, read in order with one growing buffer.
//!
//! Everything that walks a record (index, exports, filters) walks it with this, so that none of them holds more than one chunk
//! or one line. Only whole lines are given out; what stands after the last newline is either still being written or torn.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The buffer starts small, because many walks end after the first line, and doubles up to the larger size; only a line that
/// is longer makes it grow further.
const FIRST: usize = 16 << 10;
const CHUNK: usize = 1 << 20;

/// A walk over the lines of a file.
#[derive(Debug)]
pub(crate) struct LineScanner<'a> {
    file: &'a File,
    buffer: Vec<u8>,
    /// File offset of `buffer[0]`.
    base: u64,
    /// What of the buffer is not given out yet.
    start: usize,
    end: usize,
    /// Where to stop, even if the file is longer.
    limit: u64,
}

/// One line, without its newline, and where it starts.
pub(crate) struct ScannedLine<'b> {
    pub(crate) offset: u64,
    pub(crate) bytes: &'b [u8],
}

impl<'a> LineScanner<'a> {
    /// Lines from `offset` (the start of a line) up to `limit`.
    pub(crate) fn new(file: &'a File, offset: u64, limit: u64) -> LineScanner<'a> {
        LineScanner {
            file,
            buffer: Vec::new(),
            base: offset,
            start: 0,
            end: 0,
            limit,
        }
    }

    /// The next whole line, or `None` at the end.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<ScannedLine<'_>>> {
        let mut searched = self.start;
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[searched..self.end]) {
                let newline = searched + found;
                let line = self.start..newline;
                let offset = self.base + self.start as u64;
                self.start = newline + 1;
                return Ok(Some(ScannedLine {
                    offset,
                    bytes: &self.buffer[line],
                }));
            }
            let unsearched = self.end - self.start;
            if self.fill()? == 0 {
                return Ok(None);
            }
            searched = self.start + unsearched;
        }
    }

    /// Offset of the first byte that was not given out: after the last whole line once [`LineScanner::next_line`] said `None`.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Bytes after the last whole line.
    pub(crate) fn rest(&self) -> u64 {
        (self.end - self.start) as u64
    }

    fn fill(&mut self) -> io::Result<usize> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.base += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        let size = self.buffer.len();
        if size < CHUNK || self.end * 2 > size {
            self.buffer.resize((size * 2).max(FIRST), 0);
        }
        let at = self.base + self.end as u64;
        let wanted = usize::try_from(self.limit.saturating_sub(at))
            .unwrap_or(usize::MAX)
            .min(self.buffer.len() - self.end);
        if wanted == 0 {
            return Ok(0);
        }
        loop {
            match self
                .file
                .read_at(&mut self.buffer[self.end..self.end + wanted], at)
            {
                Ok(read) => {
                    self.end += read;
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn lines_of(content: &[u8]) -> (Vec<(u64, Vec<u8>)>, u64) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        let mut lines = LineScanner::new(&file, 0, u64::MAX);
        let mut found = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            found.push((line.offset, line.bytes.to_vec()));
        }
        (found, lines.rest())
    }

    #[test]
    fn lines_longer_than_a_chunk_and_a_torn_end() {
        let long = vec![b'x'; 3 * CHUNK + 17];
        let mut content = b"a\n\n".to_vec();
        content.extend_from_slice(&long);
        content.extend_from_slice(b"\nb\ntorn");
        let (found, rest) = lines_of(&content);
        assert_eq!(rest, 4);
        let offsets: Vec<u64> = found.iter().map(|(offset, _)| *offset).collect();
        assert_eq!(offsets, [0, 2, 3, 4 + long.len() as u64]);
        assert_eq!(found[2].1, long);
        assert_eq!(found[3].1, b"b");
    }

    #[test]
    fn nothing_and_only_a_torn_line() {
        assert_eq!(lines_of(b""), (vec![], 0));
        assert_eq!(lines_of(b"{\"t\":"), (vec![], 5));
    }
}
