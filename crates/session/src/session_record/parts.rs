//! The parts of a session whose record has grown to its limit: which one this is, and where the others are.

use super::{RecordedLine, SessionRecord, read};
use crate::header::is_file_name;
use crate::index::{LineLocation, OutsideLine};
use crate::{Error, MessageWithContext, RecordPart};
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
        let verdict = read::verdict(&line, &self.folder).map_err(|why| Error::Damaged {
            path: self.path.clone(),
            offset: place.offset,
            why,
        })?;
        told.message.apply_verdict(verdict);
        Ok(())
    }
}
