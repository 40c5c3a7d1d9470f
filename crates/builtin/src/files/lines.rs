//! Some lines of a text file of any size, in bounded memory.

use std::io::{self, BufRead};

use super::FILE_LIMIT;

/// Lines that start deeper in a file than this are not looked for.
const SCAN_LIMIT: u64 = 16 * FILE_LIMIT;

/// Which lines to read.
pub(super) struct LineRange {
    /// Counted from 1.
    pub(super) first: u64,
    pub(super) most: u64,
    /// In bytes.
    pub(super) limit: usize,
}

/// The lines that were read.
pub(super) struct Lines {
    pub(super) bytes: Vec<u8>,
    /// The number of lines in `bytes`.
    pub(super) count: u64,
    pub(super) end: LinesEnd,
}

/// Why reading stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LinesEnd {
    /// The file has no more lines; it has this many.
    FileEnd(u64),
    /// The file continues with another line.
    More,
    /// The only line is longer than the limit and was cut.
    LongLine,
    /// The first line is too deep in the file.
    TooDeep,
}

/// Reads lines with their line ends.
pub(super) fn read_lines(mut input: impl BufRead, range: &LineRange) -> io::Result<Lines> {
    let mut lines = Lines {
        bytes: Vec::new(),
        count: 0,
        end: LinesEnd::More,
    };
    let mut finished: u64 = 0;
    let mut scanned: u64 = 0;
    // Where the current line starts in `bytes`.
    let mut line_start = 0;
    let mut in_line = false;
    loop {
        let chunk = input.fill_buf()?;
        if chunk.is_empty() {
            let total = finished + u64::from(in_line);
            lines.count = (total + 1).saturating_sub(range.first);
            lines.end = LinesEnd::FileEnd(total);
            return Ok(lines);
        }
        if finished + 1 >= range.first && lines.count == range.most {
            return Ok(lines);
        }
        let line_end = chunk.iter().position(|byte| *byte == b'\n');
        let piece = &chunk[..line_end.map_or(chunk.len(), |end| end + 1)];
        let used = piece.len();
        if finished + 1 >= range.first {
            let room = range.limit - lines.bytes.len();
            if used > room {
                if lines.count > 0 {
                    lines.bytes.truncate(line_start);
                } else {
                    lines.bytes.extend_from_slice(&piece[..room]);
                    lines.count = 1;
                    lines.end = LinesEnd::LongLine;
                }
                return Ok(lines);
            }
            lines.bytes.extend_from_slice(piece);
        } else if scanned > SCAN_LIMIT {
            lines.end = LinesEnd::TooDeep;
            return Ok(lines);
        }
        scanned += used as u64;
        in_line = line_end.is_none();
        if line_end.is_some() {
            finished += 1;
            if finished >= range.first {
                lines.count += 1;
                line_start = lines.bytes.len();
            }
        }
        input.consume(used);
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn read(text: &str, first: u64, most: u64, limit: usize) -> (String, u64, LinesEnd) {
        // A tiny buffer, so that lines are spread over several reads.
        let input = BufReader::with_capacity(3, text.as_bytes());
        let range = LineRange { first, most, limit };
        let lines = read_lines(input, &range).unwrap();
        let text = String::from_utf8(lines.bytes).unwrap();
        (text, lines.count, lines.end)
    }

    #[test]
    fn ranges_of_lines() {
        let text = "one\ntwo\r\nthree";
        let all = u64::MAX;
        let table = [
            (1, all, 99, text, 3, LinesEnd::FileEnd(3)),
            (1, 1, 99, "one\n", 1, LinesEnd::More),
            (2, 1, 99, "two\r\n", 1, LinesEnd::More),
            (2, 2, 99, "two\r\nthree", 2, LinesEnd::FileEnd(3)),
            (3, all, 99, "three", 1, LinesEnd::FileEnd(3)),
            (4, all, 99, "", 0, LinesEnd::FileEnd(3)),
            (u64::MAX, all, 99, "", 0, LinesEnd::FileEnd(3)),
            (1, all, 12, "one\ntwo\r\n", 2, LinesEnd::More),
            (1, all, 2, "on", 1, LinesEnd::LongLine),
            (3, all, 4, "thre", 1, LinesEnd::LongLine),
        ];
        for (first, most, limit, expected, count, end) in table {
            let got = read(text, first, most, limit);
            assert_eq!(
                got,
                (expected.to_owned(), count, end),
                "from {first}, {most}, {limit}"
            );
        }
        assert_eq!(
            read("", 1, all, 9),
            (String::new(), 0, LinesEnd::FileEnd(0))
        );
        assert_eq!(
            read("a\n", 1, all, 9),
            ("a\n".to_owned(), 1, LinesEnd::FileEnd(1))
        );
        assert_eq!(
            read("a\n", 1, 1, 2),
            ("a\n".to_owned(), 1, LinesEnd::FileEnd(1))
        );
    }
}
