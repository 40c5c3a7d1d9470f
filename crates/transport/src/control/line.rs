//! Lines out of a byte stream, with a limit: one that is too long is left out, and the next is whole again.

use bytes::{Buf as _, Bytes, BytesMut};

/// What came, until it is a line.
pub(super) struct LineBuffer {
    bytes: BytesMut,
    /// Bytes that hold no newline.
    searched: usize,
    limit: usize,
    /// Inside a line that is too long.
    skipping: bool,
}

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BufferedLine {
    /// A line, without its end.
    Whole(Bytes),
    /// A line that was longer than allowed. Its bytes are gone.
    TooLong,
}

impl LineBuffer {
    /// For lines of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> LineBuffer {
        LineBuffer {
            bytes: BytesMut::new(),
            searched: 0,
            limit,
            skipping: false,
        }
    }

    /// Where bytes are read to.
    pub(super) fn space(&mut self) -> &mut BytesMut {
        self.bytes.reserve(4096);
        &mut self.bytes
    }

    /// The next line. `None`: more bytes are needed.
    pub(super) fn take(&mut self) -> Option<BufferedLine> {
        loop {
            match memchr::memchr(b'\n', &self.bytes[self.searched..]) {
                Some(found) => {
                    let line = self.bytes.split_to(self.searched + found);
                    self.bytes.advance(1);
                    self.searched = 0;
                    if std::mem::take(&mut self.skipping) || line.len() > self.limit {
                        return Some(BufferedLine::TooLong);
                    }
                    let line = line.freeze();
                    // An empty line says nothing, and some programs send one.
                    if !line.trim_ascii().is_empty() {
                        return Some(BufferedLine::Whole(line));
                    }
                }
                None => {
                    self.searched = self.bytes.len();
                    if self.searched > self.limit {
                        self.skipping = true;
                        self.bytes = BytesMut::new();
                        self.searched = 0;
                    }
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&str]) -> Vec<BufferedLine> {
        let mut buffer = LineBuffer::new(5);
        let mut lines = Vec::new();
        for piece in pieces {
            buffer.space().extend_from_slice(piece.as_bytes());
            while let Some(line) = buffer.take() {
                lines.push(line);
            }
        }
        lines
    }

    fn whole(text: &'static str) -> BufferedLine {
        BufferedLine::Whole(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn lines_however_they_come() {
        assert_eq!(
            lines(&["ab", "c\n\n \nde", "\nf"]),
            [whole("abc"), whole("de")]
        );
    }

    #[test]
    fn a_long_line_is_left_out_and_the_next_is_whole() {
        let expected = [BufferedLine::TooLong, whole("ok")];
        assert_eq!(lines(&["abcdef\nok\n"]), expected);
        assert_eq!(lines(&["abcdef", "ghijklmnop", "q\nok\n"]), expected);
    }
}
