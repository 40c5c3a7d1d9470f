//! Where lines begin, without remembering each of them.

use std::io::{self, Read, Write};

use memchr::memchr_iter;

/// One offset is kept for this many lines.
pub(crate) const STRIDE: u64 = 1024;
const CHUNK: usize = 128 << 10;

/// The lines of a file: how many there are, and where some of them begin.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct LineIndex {
    /// Where lines 1, 1025, 2049 … begin; line 1 is left out, for it begins at 0.
    offsets: Vec<u64>,
    line_breaks: u64,
    byte_size: u64,
    /// Whether the last byte ends a line.
    ends_with_break: bool,
}

impl LineIndex {
    /// Reads all of a file.
    pub(crate) fn read(mut file: impl Read) -> io::Result<LineIndex> {
        let mut index = LineIndex::default();
        let mut chunk = vec![0; CHUNK];
        loop {
            match file.read(&mut chunk) {
                Ok(0) => return Ok(index),
                Ok(length) => index.push(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes the next bytes of the file.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else {
            return;
        };
        let wanted = STRIDE - self.line_breaks % STRIDE;
        let count = memchr_iter(b'\n', bytes).count() as u64;
        if count >= wanted {
            let places = memchr_iter(b'\n', bytes);
            let behind = places.map(|at| self.byte_size + at as u64 + 1);
            let skipped = usize::try_from(wanted - 1).unwrap_or(usize::MAX);
            self.offsets
                .extend(behind.skip(skipped).step_by(STRIDE as usize));
        }
        self.line_breaks += count;
        self.byte_size += bytes.len() as u64;
        self.ends_with_break = *last == b'\n';
    }

    pub(crate) fn byte_size(&self) -> u64 {
        self.byte_size
    }

    /// A line break at the very end does not begin another line.
    pub(crate) fn line_count(&self) -> u64 {
        let is_open = self.byte_size > 0 && !self.ends_with_break;
        self.line_breaks + u64::from(is_open)
    }

    /// A place at or before the beginning of `line`, which counts from 1, and how many lines to skip from there.
    pub(crate) fn near(&self, line: u64) -> (u64, u64) {
        let before = line.saturating_sub(1);
        let block = usize::try_from(before / STRIDE).unwrap_or(usize::MAX);
        match block.checked_sub(1) {
            None => (0, before),
            Some(place) => match self.offsets.get(place) {
                Some(offset) => (*offset, before % STRIDE),
                None => (self.byte_size, 0),
            },
        }
    }
}

/// The last whole characters of `text` that fit in `limit` bytes from its start.
pub(crate) fn char_boundary(text: &[u8], limit: usize) -> usize {
    if text.len() <= limit {
        return text.len();
    }
    // A byte of the form 10xxxxxx is not the first of its character.
    (limit.saturating_sub(3)..=limit)
        .rev()
        .find(|&at| text[at] & 0xc0 != 0x80)
        .unwrap_or(limit)
}

/// Finds the lines of what is written and keeps nothing else of it.
impl Write for LineIndex {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_found_whatever_the_pieces() {
        let text: String = (1..=5000).map(|line| format!("{line}\n")).collect();
        for piece in [1, 7, 1000, text.len()] {
            let mut index = LineIndex::default();
            text.as_bytes()
                .chunks(piece)
                .for_each(|piece| index.push(piece));
            assert_eq!(index.line_count(), 5000);
            for line in [1, 2, 1024, 1025, 1026, 2048, 2049, 4999, 5000] {
                let (offset, skip) = index.near(line);
                let found = text[offset as usize..].lines().nth(skip as usize);
                assert_eq!(found, Some(line.to_string().as_str()), "{piece}");
            }
        }
    }

    #[test]
    fn lines_are_counted_as_people_do() {
        let count = |text: &str| LineIndex::read(text.as_bytes()).unwrap().line_count();
        assert_eq!(count(""), 0);
        assert_eq!(count("a"), 1);
        assert_eq!(count("a\n"), 1);
        assert_eq!(count("a\n\n"), 2);
        assert_eq!(count("a\nb"), 2);
    }

    #[test]
    fn characters_are_not_cut() {
        let text = "aé世😀".as_bytes();
        let ends: Vec<_> = (0..=text.len())
            .map(|limit| char_boundary(text, limit))
            .collect();
        assert_eq!(ends, [0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10]);
    }
}
