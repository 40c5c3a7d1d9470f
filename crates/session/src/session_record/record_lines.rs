//! A walk over all lines of a record in file order, whatever they are.
//!
//! Kinds of record that this build does not know are given out like the others: a newer proxy wrote them, and an export must not
//! lose them.

use super::SessionRecord;
use crate::line_members::{self, LineMembers};
use crate::lines::{LONGEST_LINE, LineScanner};
use crate::{Error, ProxyMessage, Redaction};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use std::ops::Range;

/// One line of a record.
#[derive(Debug, Clone)]
pub struct RecordedLine {
    /// Where the line starts.
    pub offset: u64,
    /// The line without its newline, verbatim.
    pub line: Bytes,
}

impl RecordedLine {
    /// `session`, `msg`, `act`, `io`, `note`, `end`, or something newer. Empty for a damaged line.
    pub fn kind(&self) -> &str {
        line_members::record_type(&self.line)
            .and_then(|kind| std::str::from_utf8(kind).ok())
            .unwrap_or("")
    }

    /// One member's value, read as `T`. Not for bodies.
    pub fn member<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let mut members = LineMembers::new(&self.line);
        while let Some(key) = members.next_key() {
            let value = members.value()?;
            if key == name.as_bytes() {
                return serde_json::from_slice(value).ok();
            }
        }
        None
    }
}

/// The lines of a record.
#[derive(Debug)]
pub struct RecordedLines<'a> {
    session: &'a SessionRecord,
    lines: LineScanner<'a>,
    hide: Option<&'a Redaction>,
}

impl<'a> RecordedLines<'a> {
    pub(super) fn new(
        session: &'a SessionRecord,
        range: Range<u64>,
        hide: Option<&'a Redaction>,
    ) -> RecordedLines<'a> {
        RecordedLines {
            session,
            lines: LineScanner::new(&session.file, range.start, range.end),
            hide,
        }
    }

    /// The line as a message, if it is a `msg`. Verdicts are not folded in.
    pub fn message(&self, record: &RecordedLine) -> Option<Result<ProxyMessage, Error>> {
        (record.kind() == "msg").then(|| {
            let offset = record.offset;
            super::read::message(&record.line).map_err(|why| self.session.damaged_line(offset, why))
        })
    }
}

impl Iterator for RecordedLines<'_> {
    type Item = Result<RecordedLine, Error>;

    fn next(&mut self) -> Option<Result<RecordedLine, Error>> {
        loop {
            let line = match self.lines.next_line() {
                Ok(line) => line?,
                Err(error) => return Some(Err(Error::io("read", self.session.path(), error))),
            };
            if line.len > LONGEST_LINE {
                continue;
            }
            let (offset, len) = (line.offset, line.len as usize);
            let bytes = match line.is_whole() {
                true => Bytes::copy_from_slice(line.bytes),
                false => {
                    let mut bytes = vec![0; len];
                    if let Err(error) = self.session.file.read_exact_at(&mut bytes, offset) {
                        return Some(Err(Error::io("read", self.session.path(), error)));
                    }
                    bytes.into()
                }
            };
            let shown = match self.hide {
                None => bytes,
                Some(hide) => hide.line(&bytes),
            };
            return Some(Ok(RecordedLine {
                offset,
                line: shown,
            }));
        }
    }
}
