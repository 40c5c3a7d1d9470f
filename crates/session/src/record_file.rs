//! The bytes of a record: one file, or several that continue each other, read as one.
//!
//! Offsets continue from file to file. What only joins two files is left out: the line that names the next one, that one's
//! header, and the `open` lines that it repeats. So the bytes are those of a record that was never divided.

use crate::header::SessionHeader;
use crate::lines::{LineScanner, ReadAt};
use crate::{Error, line_members, private_files};
use bytes::Bytes;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt as _};
use std::path::{Path, PathBuf};

/// A file whose first line says that it is a record.
pub(crate) struct RecordOpening {
    pub(crate) file: File,
    pub(crate) header: SessionHeader,
    /// The name of the file before it.
    pub(crate) continues: Option<String>,
    /// The line that says so.
    pub(crate) first_line: Bytes,
}

impl RecordOpening {
    pub(crate) fn read(path: &Path) -> Result<RecordOpening, Error> {
        let file = private_files::open_record(path).map_err(|error| Error::open(path, error))?;
        let first_line = match LineScanner::header(&file).next_line() {
            Ok(Some(line)) => Bytes::copy_from_slice(line.bytes),
            Ok(None) => return Err(Error::without_header(path)),
            Err(error) => return Err(Error::io("read", path, error)),
        };
        Ok(RecordOpening {
            header: SessionHeader::read(&first_line, path)?,
            continues: SessionHeader::continues(&first_line),
            file,
            first_line,
        })
    }

    /// Where its own lines begin: after its header, and what it repeats of the file before.
    fn own_lines(&self) -> io::Result<u64> {
        let mut lines = LineScanner::new(&self.file, 0, u64::MAX);
        loop {
            let start = lines.offset();
            let Some(line) = lines.next_line()? else {
                return Ok(start);
            };
            let is_repeated = match line_members::record_type(line.bytes) {
                Some(b"session") => true,
                Some(b"io") => memchr::memmem::find(line.bytes, br#""kind":"open""#).is_some(),
                _ => false,
            };
            if !is_repeated {
                return Ok(start);
            }
        }
    }
}

/// One file, or several that are read as one.
#[derive(Debug)]
pub(crate) struct RecordFile {
    /// At least one, oldest first.
    files: Vec<ChainedFile>,
}

#[derive(Debug)]
struct ChainedFile {
    path: PathBuf,
    file: File,
    /// The offset of its first byte among all.
    first: u64,
    /// Bytes at its beginning that are left out.
    left_out: u64,
}

impl RecordFile {
    pub(crate) fn new(path: &Path, file: File) -> RecordFile {
        RecordFile {
            files: vec![ChainedFile::new(path, file, 0, 0)],
        }
    }

    /// Adds the file that follows. What there is so far ends at `end`.
    pub(crate) fn push(&mut self, path: &Path, next: RecordOpening, end: u64) -> io::Result<()> {
        let left_out = next.own_lines()?;
        self.files
            .push(ChainedFile::new(path, next.file, end, left_out));
        Ok(())
    }

    /// The file, if there is only one.
    pub(crate) fn single(&self) -> Option<&File> {
        match self.files.as_slice() {
            [only] => Some(&only.file),
            _ => None,
        }
    }

    /// The first file.
    pub(crate) fn path(&self) -> &Path {
        &self.files[0].path
    }

    /// The file that grows, if one does.
    pub(crate) fn last_path(&self) -> &Path {
        &self.files[self.files.len() - 1].path
    }

    /// Whether the last file is the one at `path`.
    pub(crate) fn is_last(&self, path: &Path) -> io::Result<bool> {
        let key = |facts: Metadata| (facts.dev(), facts.ino());
        let last = &self.files[self.files.len() - 1];
        Ok(key(last.file.metadata()?) == key(std::fs::metadata(path)?))
    }

    /// All files.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|known| known.path.as_path())
    }

    /// The file that has the byte at `offset`, and where in it.
    pub(crate) fn place(&self, offset: u64) -> (&Path, u64) {
        let known = &self.files[self.file_at(offset)];
        (&known.path, offset - known.first + known.left_out)
    }

    pub(crate) fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_at(buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    buffer = &mut buffer[read..];
                    offset += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The first file begins at 0, so there is one for every offset.
    fn file_at(&self, offset: u64) -> usize {
        self.files.partition_point(|known| known.first <= offset) - 1
    }
}

impl ReadAt for RecordFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let index = self.file_at(offset);
        let known = &self.files[index];
        let end = self
            .files
            .get(index + 1)
            .map_or(u64::MAX, |next| next.first);
        let len = usize::try_from(end - offset).unwrap_or(usize::MAX);
        let len = len.min(buffer.len());
        let inside = offset - known.first + known.left_out;
        FileExt::read_at(&known.file, &mut buffer[..len], inside)
    }
}

impl ChainedFile {
    fn new(path: &Path, file: File, first: u64, left_out: u64) -> ChainedFile {
        ChainedFile {
            path: path.to_path_buf(),
            file,
            first,
            left_out,
        }
    }
}
