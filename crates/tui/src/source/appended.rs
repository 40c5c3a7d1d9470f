//! The lines of a record that are no messages: what happened, and which older messages a verdict is about.
//!
//! The index knows where every message's line is, so whatever lies between them is the rest. Messages are not read for this,
//! and a record of a million of them is looked through at once.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bytes::Bytes;
use mcp_proxy_session::{Record, Row, Session};

use super::happening::{Happening, KEPT};

/// Bytes read at a time.
const PIECE: u64 = 1 << 20;
/// Bytes that are looked through for what happened before the record was opened, from its end.
const MOST: u64 = 16 << 20;

/// A reader of the lines between messages.
#[derive(Debug)]
pub(super) struct Appended {
    file: File,
    buffer: Vec<u8>,
}

/// What such lines say.
#[derive(Debug, Default)]
pub(super) struct Rest {
    pub(super) happenings: Vec<Happening>,
    /// Rows that a verdict or a failed delivery is about.
    pub(super) changed: Vec<u32>,
}

impl Appended {
    pub(super) fn open(path: &Path) -> io::Result<Appended> {
        Ok(Appended {
            file: File::open(path)?,
            buffer: Vec::new(),
        })
    }

    /// The newest happenings of the whole record, oldest first.
    pub(super) fn newest(&mut self, session: &Session) -> io::Result<Vec<Happening>> {
        let mut newest = Vec::new();
        let mut left = MOST;
        let mut end = session.bytes();
        let starts = session.rows().iter().rev().map(Some).chain([None]);
        for row in starts {
            let start = row.map_or(0, line_end);
            if start < end {
                // Of a gap that is too long the end counts, without the line that is cut.
                let from = start.max(end.saturating_sub(left.min(4 * PIECE)));
                left = left.saturating_sub(end - from);
                let mut found = Vec::new();
                let mut cut = from > start;
                self.lines(from..end, |record| {
                    if !std::mem::take(&mut cut) {
                        found.extend(Happening::read(&record));
                    }
                })?;
                newest.extend(found.into_iter().rev());
            }
            end = row.map_or(0, Row::offset);
            if left == 0 || newest.len() >= KEPT {
                break;
            }
        }
        newest.truncate(KEPT);
        newest.reverse();
        Ok(newest)
    }

    /// What was appended after `from`, which was the record's end when it had `known` rows.
    pub(super) fn since(&mut self, session: &Session, from: u64, known: usize) -> io::Result<Rest> {
        let mut rest = Rest::default();
        let mut start = from;
        let new = session.rows().get(known..).unwrap_or_default();
        let ends = new.iter().map(Some).chain([None]);
        for row in ends {
            let end = row.map_or(session.bytes(), Row::offset);
            if start < end {
                self.lines(start..end, |record| rest.take(session, &record))?;
            }
            start = row.map_or(end, line_end);
        }
        Ok(rest)
    }

    /// Whole lines of a range, one piece in memory at a time.
    fn lines(&mut self, range: Range<u64>, mut line: impl FnMut(Record)) -> io::Result<()> {
        self.buffer.clear();
        let mut at = range.start;
        while at < range.end {
            let kept = self.buffer.len();
            let read = PIECE.min(range.end - at);
            self.buffer.resize(kept + read as usize, 0);
            self.file.read_exact_at(&mut self.buffer[kept..], at)?;
            at += read;
            let Some(newline) = self.buffer.iter().rposition(|byte| *byte == b'\n') else {
                continue;
            };
            for bytes in self.buffer[..newline].split(|byte| *byte == b'\n') {
                line(Record {
                    offset: 0,
                    line: Bytes::copy_from_slice(bytes),
                });
            }
            self.buffer.drain(..=newline);
        }
        Ok(())
    }
}

impl Rest {
    fn take(&mut self, session: &Session, record: &Record) {
        let about_message = match record.kind() {
            "act" => true,
            "io" => record.member::<String>("kind").as_deref() == Some("undelivered"),
            _ => false,
        };
        if about_message {
            let sequence = record.member::<u64>("sequence");
            let row = sequence.and_then(|sequence| session.find(sequence));
            self.changed.extend(row.map(|row| row as u32));
        }
        self.happenings.extend(Happening::read(record));
    }
}

/// Where the line after a row's line starts.
fn line_end(row: &Row) -> u64 {
    row.offset() + u64::from(row.line_len()) + 1
}
