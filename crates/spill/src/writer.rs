//! Writes one result to its file, and counts what it writes.

use std::fs::File;
use std::io::{self, Write};

use crate::line_index::LineIndex;

const BUFFER: usize = 64 << 10;

/// A file that is being written. The room on disk is asked for before it is used.
pub(crate) struct SpillWriter<'a> {
    file: File,
    buffer: Vec<u8>,
    index: LineIndex,
    /// Asks for this many more bytes.
    reserve: &'a mut dyn FnMut(u64) -> io::Result<()>,
}

impl<'a> SpillWriter<'a> {
    pub(crate) fn new(
        file: File,
        reserve: &'a mut dyn FnMut(u64) -> io::Result<()>,
    ) -> SpillWriter<'a> {
        SpillWriter {
            file,
            buffer: Vec::with_capacity(BUFFER),
            index: LineIndex::default(),
            reserve,
        }
    }

    /// Writes what is left, and tells where the lines are.
    pub(crate) fn finish(mut self) -> io::Result<LineIndex> {
        self.flush()?;
        Ok(self.index)
    }

    fn write_out(&mut self, bytes: &[u8]) -> io::Result<()> {
        (self.reserve)(bytes.len() as u64)?;
        self.file.write_all(bytes)?;
        self.index.push(bytes);
        Ok(())
    }
}

impl Write for SpillWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush()?;
            if bytes.len() > BUFFER {
                return bytes
                    .chunks(BUFFER)
                    .try_for_each(|piece| self.write_out(piece));
            }
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let written = self.write_out(&buffer);
        buffer.clear();
        self.buffer = buffer;
        written
    }
}
