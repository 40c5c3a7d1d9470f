//! The lines of a record that are not messages: what happened, and which older messages a verdict is about.
//!
//! The index knows where every message's line is, so whatever lies between them is the rest. Messages are not read for this,
//! and a record of a million of them is looked through at once.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use bytes::Bytes;
use mcp_proxy_session::{RecordedLine, Row, SessionParts};

use super::session_events::{SessionEvent, SessionEventKind};
use super::worker::ViewUpdate;

/// Bytes read at a time, unless a line is longer.
const PIECE: u64 = 1 << 20;
/// Gaps and bytes that are looked through at a time, while the screen may want something else.
const PORTION_GAPS: usize = 10_000;
const PORTION_BYTES: u64 = 4 << 20;

/// Reads the lines between messages from the beginning of a record, and then what is appended.
#[derive(Debug, Default)]
pub(super) struct EventReader {
    /// The part that is read, and its file.
    part: usize,
    file: Option<File>,
    /// The next row of that part.
    row: usize,
    /// Lines of that part before this place were read.
    offset: u64,
    has_caught_up: bool,
    /// It has caught up once: what comes since is news about rows that may have been shown.
    reads_news: bool,
}

impl EventReader {
    /// Whether all lines that are known were read.
    pub(super) fn has_caught_up(&self) -> bool {
        self.has_caught_up
    }

    /// Reads a portion of what was not read yet.
    pub(super) fn read_some(
        &mut self,
        session: &SessionParts,
        update: &mut ViewUpdate,
    ) -> io::Result<()> {
        // If it cannot be read now, it will not be read later.
        self.has_caught_up = true;
        let mut left = PORTION_BYTES;
        for _ in 0..PORTION_GAPS {
            let Some((record, first)) = session.parts().nth(self.part) else {
                return Ok(());
            };
            let row = record.row(self.row);
            let gap_end = row.map_or(record.bytes(), Row::offset);
            while self.offset < gap_end {
                if left == 0 {
                    self.has_caught_up = false;
                    return Ok(());
                }
                let file = match self.file.take() {
                    Some(file) => file,
                    None => File::open(record.path())?,
                };
                let lines = read_lines(&file, self.offset, gap_end)?;
                self.file = Some(file);
                self.offset += lines.len() as u64;
                left = left.saturating_sub(lines.len() as u64);
                for line in lines
                    .strip_suffix(b"\n")
                    .unwrap_or(&lines)
                    .split(|byte| *byte == b'\n')
                {
                    self.take(session, first, line, update);
                }
            }
            if let Some(row) = row {
                self.row += 1;
                self.offset = row.offset() + u64::from(row.line_len()) + 1;
            } else if self.part + 1 < session.parts().len() {
                let next = EventReader {
                    part: self.part + 1,
                    reads_news: self.reads_news,
                    ..EventReader::default()
                };
                *self = next;
            } else {
                self.has_caught_up = true;
                self.reads_news = true;
                return Ok(());
            }
        }
        self.has_caught_up = false;
        Ok(())
    }

    fn take(&self, session: &SessionParts, first: usize, line: &[u8], update: &mut ViewUpdate) {
        let line = RecordedLine {
            offset: 0,
            line: Bytes::copy_from_slice(line),
        };
        if self.reads_news && is_about_message(&line) {
            let row = line
                .member("sequence")
                .and_then(|sequence| session.find(sequence));
            update.changed.extend(row.map(|row| row as u32));
        }
        let Some(event) = SessionEvent::read(&line, first + self.row) else {
            return;
        };
        // A part begins with the connections that are open already, which is not news.
        let is_repeated = first > 0 && self.row == 0 && event.kind == SessionEventKind::Open;
        if !is_repeated {
            update.marks.extend(event.mark);
            update.events.push(event);
        }
    }
}

/// Whether a line says what became of a message.
fn is_about_message(line: &RecordedLine) -> bool {
    match line.kind() {
        "act" => true,
        "io" => line.member::<String>("kind").as_deref() == Some("undelivered"),
        _ => false,
    }
}

/// The lines that begin at `from`: as many as fit a piece, at least one.
fn read_lines(file: &File, from: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut size = PIECE;
    loop {
        let len = size.min(end - from);
        let mut lines = vec![0; len as usize];
        file.read_exact_at(&mut lines, from)?;
        if let Some(newline) = memchr::memrchr(b'\n', &lines) {
            lines.truncate(newline + 1);
            return Ok(lines);
        }
        if len == end - from {
            return Ok(lines);
        }
        size *= 2;
    }
}
