//! The parts of a session whose record has grown to its limit: which one this is, and where the others are.

use super::{PartReading, RecordedLine, SessionRecord};
use crate::header::is_file_name;
use crate::index::{LineLocation, OutsideLine};
use crate::record_file::RecordOpening;
use crate::{Error, MessageWithContext, RecordPart};
use std::path::{Path, PathBuf};

impl SessionRecord {
    /// Opens the whole session that a record is a part of: all parts that are still there, read as one record.
    pub fn open_session(path: impl AsRef<Path>) -> Result<SessionRecord, Error> {
        let mut session = SessionRecord::open(first_part(path.as_ref()))?;
        session.reading = PartReading::All;
        session.refresh()?;
        Ok(session)
    }

    /// The files that are read.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.file.paths()
    }

    /// Adds the part that follows. Its file may be named a moment before it has a header; then it is tried again next time.
    pub(super) fn join_next_part(&mut self) -> Result<bool, Error> {
        let Some(end) = self.index.next else {
            return Ok(false);
        };
        // The line that names the next part is not part of what is read.
        self.index.covered = end.offset;
        let Some(path) = self.next_part() else {
            return Ok(false);
        };
        let last = RecordOpening::read(self.file.last_path())?;
        let Ok(next) = RecordOpening::read(&path) else {
            return Ok(false);
        };
        // A file may have been renamed or replaced.
        if !next.follows(&last) {
            return Ok(false);
        }
        let pushed = self.file.push(&path, next, end.offset);
        pushed.map_err(|error| Error::io("read", &path, error))?;
        self.index.next = None;
        Ok(true)
    }

    /// Which part of its session it is.
    pub fn part(&self) -> &RecordPart {
        &self.part
    }

    /// The record of the part before this one, which may have been removed since.
    pub fn previous_part(&self) -> Option<PathBuf> {
        let name = self.part.previous.as_ref()?;
        Some(self.path().with_file_name(name))
    }

    /// The record that this one continues in.
    pub fn next_part(&self) -> Option<PathBuf> {
        let line = self.line(self.index.next?).ok()?;
        let record = RecordedLine { offset: 0, line };
        let name = record.member::<String>("file")?;
        is_file_name(&name).then(|| self.file.last_path().with_file_name(name))
    }

    /// The lines about messages of earlier parts.
    pub(crate) fn outside_lines(&self) -> &[OutsideLine] {
        &self.index.outside
    }

    /// Folds in what a line of this part says about a message of an earlier one: a verdict, or that it was not delivered.
    pub(crate) fn apply_outside_line(
        &self,
        told: &mut MessageWithContext,
        place: LineLocation,
    ) -> Result<(), Error> {
        let line = self.line(place)?;
        let record = RecordedLine {
            offset: place.offset,
            line: line.clone(),
        };
        if record.kind() != "act" {
            told.undelivered = true;
            return Ok(());
        }
        let verdict = self.read_verdict(&line, place.offset)?;
        told.message.apply_verdict(verdict);
        Ok(())
    }
}

/// The oldest part of a session that is still there.
fn first_part(path: &Path) -> PathBuf {
    let mut first = path.to_path_buf();
    // What is not a record is for the reader to refuse.
    let Ok(mut opening) = RecordOpening::read(path) else {
        return first;
    };
    while let Some(name) = &opening.part.previous {
        let path = first.with_file_name(name);
        match RecordOpening::read(&path) {
            Ok(previous) if opening.follows(&previous) => (first, opening) = (path, previous),
            _ => break,
        }
    }
    first
}
