//! What people wrote into the record: notes and marks.

use super::SessionRecord;
use super::read::note;
use crate::lines::LineScanner;
use crate::{Error, line_members};
use bytes::Bytes;
use serde_json::{Value, json};
use std::time::SystemTime;

/// A note of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionNote {
    /// When it was written.
    pub timestamp: SystemTime,
    /// The message that it is about.
    pub sequence: Option<u64>,
    /// `set` or `removed`, if it is a mark.
    pub mark: Option<String>,
    /// Who wrote it.
    pub by: String,
    /// The text.
    pub text: String,
}

impl SessionNote {
    /// As exports show it.
    pub(crate) fn to_json(&self) -> Value {
        let mut members = json!({
            "timestamp": crate::timestamp::to_text(self.timestamp),
            "by": self.by,
            "text": self.text,
        });
        if let Some(sequence) = self.sequence {
            members["sequence"] = sequence.into();
        }
        if let Some(mark) = &self.mark {
            members["mark"] = mark.as_str().into();
        }
        members
    }

    /// For people: `user (tui, pid 7): here it goes wrong`.
    pub(crate) fn sentence(&self) -> String {
        let about = self.sequence.map(|sequence| format!(" on #{sequence}"));
        let about = about.unwrap_or_default();
        format!("{}{about}: {}", self.by, self.text)
    }
}

impl SessionRecord {
    /// The notes of people, in order. What the proxy notes itself is not among them.
    pub fn notes(&self) -> Result<Vec<SessionNote>, Error> {
        let failed = |error| Error::io("read", self.path(), error);
        let mut lines = LineScanner::new(&self.file, 0, self.index.covered);
        let mut notes = Vec::new();
        while let Some(line) = lines.next_line().map_err(failed)? {
            if line_members::record_type(line.bytes) != Some(b"note") {
                continue;
            }
            let mut bytes = Bytes::copy_from_slice(line.bytes);
            if let Some(hide) = &self.hide {
                bytes = hide.line(&bytes);
            }
            notes.extend(note(&bytes).filter(|note| {
                let about = note.sequence.filter(|_| self.thinned);
                about.is_none_or(|sequence| self.find(sequence).is_some())
            }));
        }
        Ok(notes)
    }
}
