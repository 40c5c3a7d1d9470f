//! The lines of a record that are not messages: what happened, and which older messages a verdict is about.
//!
//! The index knows where every message's line is, so whatever lies between them is the rest. Messages are not read for this,
//! and a record of a million of them is looked through at once.

use mcp_proxy_session::{Error, RecordedLine, Row, SessionRecord};

use super::session_events::SessionEvent;
use super::worker::ViewUpdate;

/// Gaps and bytes that are looked through at a time, while the screen may want something else.
const PORTION_GAPS: usize = 10_000;
const PORTION_BYTES: u64 = 4 << 20;

/// Reads the lines between messages from the beginning of a record, and then what is appended.
#[derive(Debug, Default)]
pub(super) struct EventReader {
    /// The next row.
    row: usize,
    /// Lines before this place were read.
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
        session: &SessionRecord,
        update: &mut ViewUpdate,
    ) -> Result<(), Error> {
        // If it cannot be read now, it will not be read later.
        self.has_caught_up = true;
        let start = self.offset;
        for _ in 0..PORTION_GAPS {
            let row = session.row(self.row);
            let gap_end = row.map_or(session.bytes(), Row::offset);
            if self.offset < gap_end {
                for line in session.stored_lines_in(self.offset..gap_end) {
                    let line = line?;
                    self.offset = line.offset + line.line.len() as u64 + 1;
                    self.take(session, &line, update);
                    if self.offset - start > PORTION_BYTES {
                        self.has_caught_up = false;
                        return Ok(());
                    }
                }
                self.offset = gap_end;
            }
            let Some(row) = row else {
                self.reads_news = true;
                return Ok(());
            };
            self.row += 1;
            self.offset = row.offset() + u64::from(row.line_len()) + 1;
        }
        self.has_caught_up = false;
        Ok(())
    }

    fn take(&self, session: &SessionRecord, line: &RecordedLine, update: &mut ViewUpdate) {
        if self.reads_news && is_about_message(line) {
            let row = line
                .member("sequence")
                .and_then(|sequence| session.find(sequence));
            update.changed.extend(row.map(|row| row as u32));
        }
        if let Some(event) = SessionEvent::read(line, self.row) {
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
