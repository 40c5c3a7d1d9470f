//! The files of a session whose record has grown to its limit, read as one record.

use super::{RecordedLine, SessionRecord};
use crate::Error;
use crate::header::is_file_name;
use crate::record_file::RecordOpening;
use std::path::{Path, PathBuf};

impl SessionRecord {
    /// The files that are read, oldest first.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.file.paths()
    }

    /// The file that the first one continues, if it is not there any more.
    pub fn missing_beginning(&self) -> Option<PathBuf> {
        let name = self.continues.as_ref()?;
        Some(self.path().with_file_name(name))
    }

    /// The file that the last one continues in, as long as that cannot be read.
    pub fn missing_continuation(&self) -> Option<PathBuf> {
        let line = self.line(self.index.end?).ok()?;
        let record = RecordedLine { offset: 0, line };
        let name = record.member::<String>("continued_in")?;
        is_file_name(&name).then(|| self.file.last_path().with_file_name(name))
    }

    /// Adds the file that the last one continues in. It may be named a moment before it has a header; then it is tried again next
    /// time.
    pub(super) fn join_continuation(&mut self) -> Result<bool, Error> {
        let (Some(end), Some(path)) = (self.index.end, self.missing_continuation()) else {
            return Ok(false);
        };
        let Ok(next) = RecordOpening::read(&path) else {
            return Ok(false);
        };
        let last = self.file.last_path().file_name().unwrap_or_default();
        // A file may have been renamed or replaced.
        let is_next = next.header.id == self.header.id
            && next.continues.as_deref() == last.to_str()
            && self.paths().all(|known| known != path);
        if !is_next {
            return Ok(false);
        }
        // The line that names the file is not part of what is read.
        let pushed = self.file.push(&path, next, end.offset);
        pushed.map_err(|error| Error::io("read", &path, error))?;
        self.index.covered = end.offset;
        self.index.end = None;
        Ok(true)
    }

    /// Whether `path` is the file that was read last. A file that was made again under its name is another one.
    pub fn ends_with(&self, path: &Path) -> bool {
        self.file.is_last(path).unwrap_or(false)
    }
}

/// The oldest file of a session that is still there.
pub(super) fn first_file(path: &Path) -> PathBuf {
    let mut files = vec![path.to_path_buf()];
    // What is not a record is for the reader to refuse.
    let mut opening = RecordOpening::read(path).ok();
    while let Some(known) = &opening
        && let Some(name) = &known.continues
    {
        let earlier = path.with_file_name(name);
        let read = RecordOpening::read(&earlier).ok();
        let read = read.filter(|read| read.header.id == known.header.id);
        if read.is_none() || files.contains(&earlier) {
            break;
        }
        files.push(earlier);
        opening = read;
    }
    files.pop().unwrap_or_default()
}
