//! Lines of a record, read in order with one growing buffer.
//!
//! Everything that walks a record (index, exports, filters) walks it with this. A line may be as long as the longest message, so
//! of a long one only the beginning is given out: bodies come last, and most readers do without them. What stands after the last
//! newline is either still being written or torn.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The buffer starts small, because many walks end after the first line, and doubles up to twice the larger size. Of a line that is
/// longer than that size, the beginning is given out.
const FIRST: usize = 16 << 10;
const CHUNK: usize = 1 << 20;

/// The longest line that is read: several times the largest message (64 MiB unless `--max-message` says otherwise), because a
/// change of a message stands in one line with the original, and as base64 or with escapes a message is longer.
pub(crate) const LONGEST_LINE: u64 = 384 << 20;
/// The longest first line: a header holds little more than the command line.
pub(crate) const LONGEST_HEADER: u64 = 16 << 20;

/// Bytes that can be read from any offset: a file, or several that are read as one.
pub(crate) trait ReadAt: Debug {
    /// Like [`FileExt::read_at`].
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ReadAt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }
}

/// A walk over the lines of a file.
#[derive(Debug)]
pub(crate) struct LineScanner<'a> {
    file: &'a dyn ReadAt,
    buffer: Vec<u8>,
    /// File offset of `buffer[0]`.
    base: u64,
    /// What of the buffer is not given out yet.
    start: usize,
    end: usize,
    /// Where to stop, even if the file is longer.
    limit: u64,
    /// How much of a line is given out.
    longest: usize,
    /// Bytes of a torn line that are not in the buffer because it is too long.
    unread: u64,
}

/// One line, without its newline, and where it starts.
pub(crate) struct ScannedLine<'b> {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// The line; of a long one the beginning.
    pub(crate) bytes: &'b [u8],
}

impl ScannedLine<'_> {
    pub(crate) fn is_whole(&self) -> bool {
        self.bytes.len() as u64 == self.len
    }
}

impl<'a> LineScanner<'a> {
    /// Lines from `offset` (the start of a line) up to `limit`.
    pub(crate) fn new(file: &'a dyn ReadAt, offset: u64, limit: u64) -> LineScanner<'a> {
        LineScanner {
            file,
            buffer: Vec::new(),
            base: offset,
            start: 0,
            end: 0,
            limit,
            longest: CHUNK,
            unread: 0,
        }
    }

    /// The first line of a record; `None` if the file has no whole line, or none that could be a header.
    pub(crate) fn header(file: &'a dyn ReadAt) -> LineScanner<'a> {
        LineScanner {
            longest: LONGEST_HEADER as usize,
            ..LineScanner::new(file, 0, LONGEST_HEADER + 1)
        }
    }

    /// The next whole line, or `None` at the end.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<ScannedLine<'_>>> {
        let mut searched = self.start;
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[searched..self.end]) {
                let newline = searched + found;
                let offset = self.offset();
                let bytes = &self.buffer[self.start..newline];
                self.start = newline + 1;
                return Ok(Some(ScannedLine {
                    offset,
                    len: bytes.len() as u64,
                    bytes,
                }));
            }
            let searched_len = self.end - self.start;
            if searched_len > self.longest {
                return self.long_line();
            }
            if self.fill()? == 0 {
                return Ok(None);
            }
            searched = self.start + searched_len;
        }
    }

    /// Gives out the beginning of a long line, and reads on to its end. Without an end it is a torn one.
    fn long_line(&mut self) -> io::Result<Option<ScannedLine<'_>>> {
        let offset = self.offset();
        let beginning = self.start..self.start + self.longest;
        let mut piece = vec![0; CHUNK];
        let mut at = self.base + self.end as u64;
        loop {
            let wanted = self.limit.saturating_sub(at).min(CHUNK as u64) as usize;
            let read = read_at(self.file, &mut piece[..wanted], at)?;
            if read == 0 {
                self.unread = at - self.base - self.end as u64;
                return Ok(None);
            }
            if let Some(newline) = memchr::memchr(b'\n', &piece[..read]) {
                self.base = at + newline as u64 + 1;
                (self.start, self.end) = (0, 0);
                return Ok(Some(ScannedLine {
                    offset,
                    len: at + newline as u64 - offset,
                    bytes: &self.buffer[beginning],
                }));
            }
            at += read as u64;
        }
    }

    /// Offset of the first byte that was not given out: after the last whole line once [`LineScanner::next_line`] said `None`.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Bytes after the last whole line.
    pub(crate) fn rest(&self) -> u64 {
        (self.end - self.start) as u64 + self.unread
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
        let read = read_at(self.file, &mut self.buffer[self.end..self.end + wanted], at)?;
        self.end += read;
        Ok(read)
    }
}

fn read_at(file: &dyn ReadAt, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
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
    fn lines_longer_than_half_a_chunk_and_a_torn_end() {
        let long = vec![b'x'; CHUNK - 17];
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
    fn of_a_long_line_the_beginning_is_given_out_and_a_torn_one_is_measured() {
        let mut file = tempfile::tempfile().unwrap();
        let long = vec![b'x'; 5 * CHUNK];
        let content = [b"a\n", &long[..], b"\nb\n", &long[..]].concat();
        file.write_all(&content).unwrap();
        let mut lines = LineScanner {
            longest: CHUNK / 2,
            ..LineScanner::new(&file, 0, u64::MAX)
        };
        let mut found = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            found.push((line.offset, line.len, line.bytes.to_vec()));
        }
        let after = 2 + long.len() as u64 + 1;
        let expected = [
            (0, 1, b"a".to_vec()),
            (2, long.len() as u64, vec![b'x'; CHUNK / 2]),
            (after, 1, b"b".to_vec()),
        ];
        assert_eq!(found, expected);
        assert_eq!(
            (lines.offset(), lines.rest()),
            (after + 2, long.len() as u64)
        );
        assert!(lines.buffer.len() <= 4 * CHUNK);
    }

    #[test]
    fn nothing_and_only_a_torn_line() {
        assert_eq!(lines_of(b""), (vec![], 0));
        assert_eq!(lines_of(b"{\"t\":"), (vec![], 5));
    }
}
