//! The parts of a session whose record has grown to its limit: which one this is, and where the others are.

use super::{RecordedLine, SessionRecord};
use crate::RecordPart;
use crate::header::is_file_name;
use std::path::PathBuf;

impl SessionRecord {
    /// Which part of its session it is.
    pub fn part(&self) -> &RecordPart {
        &self.part
    }

    /// The record of the part before this one, which may have been removed since.
    pub fn previous_part(&self) -> Option<PathBuf> {
        let name = self.part.previous.as_ref()?;
        Some(self.path.with_file_name(name))
    }

    /// The record that this one continues in.
    pub fn next_part(&self) -> Option<PathBuf> {
        let line = self.line(self.index.next?).ok()?;
        let record = RecordedLine { offset: 0, line };
        let name = record.member::<String>("file")?;
        is_file_name(&name).then(|| self.path.with_file_name(name))
    }
}
