//! JSON without the white space between its tokens.

use super::block::{gap_end, run_end};

/// Takes white space out of a text that comes in pieces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Compactor {
    is_in_string: bool,
    /// The first byte of the next piece is escaped.
    is_escaped: bool,
}

impl Compactor {
    /// Moves what is kept of the next piece to its beginning, and tells how much that is.
    pub(crate) fn compact(&mut self, text: &mut [u8]) -> usize {
        let (mut read, mut written) = (0, 0);
        while read < text.len() {
            let start = read;
            if self.is_in_string {
                read = self.string_end(text, read);
            }
            while let Some(&byte) = text.get(read)
                && !matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
            {
                read += 1;
                if byte == b'"' {
                    self.is_in_string = true;
                    read = self.string_end(text, read);
                }
            }
            text.copy_within(start..read, written);
            written += read - start;
            read = gap_end(text, read);
        }
        written
    }

    /// Behind the string whose content continues at `at`, or the end of the piece.
    fn string_end(&mut self, text: &[u8], at: usize) -> usize {
        let at = at + usize::from(std::mem::take(&mut self.is_escaped));
        match string_end(text, at) {
            Ok(end) => {
                self.is_in_string = false;
                end
            }
            Err(end) => {
                self.is_escaped = end < text.len();
                text.len()
            }
        }
    }
}

/// Where the string ends whose content continues at `at`: behind its quote. Otherwise, where to continue when there is more of
/// it: at the end, or on a backslash that is the last byte.
#[inline(always)]
pub(crate) fn string_end(text: &[u8], mut at: usize) -> Result<usize, usize> {
    loop {
        at = run_end(text, at);
        match text.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') if at + 1 == text.len() => return Err(at),
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
            None => return Err(text.len()),
        }
    }
}
