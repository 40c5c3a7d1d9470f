//! The lines of a record that are not messages: what happened, and which older messages a verdict is about.
//!
//! The index knows where every message's line is, so whatever lies between them is the rest. Messages are not read for this,
//! and a record of a million of them is looked through at once.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bytes::Bytes;
use mcp_proxy_session::{MarkOperation, RecordedLine, Row, SessionParts, SessionRecord};

use super::session_events::{KEPT, SessionEvent, SessionEventKind};

/// Bytes read at a time.
const PIECE: u64 = 1 << 20;
/// Bytes that are looked through for what happened before the record was opened, from its end.
const MOST: u64 = 16 << 20;
/// Gaps and bytes that are looked through for older marks at a time, while the screen may want something else.
const GAPS: usize = 10_000;
const PORTION: u64 = 4 << 20;

/// A reader of the lines between messages, in all parts of a record.
#[derive(Debug)]
pub(super) struct SessionEventReader {
    /// One for each part, oldest first.
    parts: Vec<PartEventReader>,
}

/// The same of one part.
#[derive(Debug)]
pub(super) struct PartEventReader {
    file: File,
    buffer: Vec<u8>,
    /// What was not looked through for marks yet.
    older: Option<GapCursor>,
    /// The number of the part's first row.
    first: usize,
}

/// What happened before a record was opened.
#[derive(Debug, Default)]
pub(super) struct EarlierEvents {
    /// The newest events, oldest first.
    pub(super) events: Vec<SessionEvent>,
    /// The marks among all that was read, newest first.
    pub(super) marks: Vec<(u64, MarkOperation)>,
}

/// The gaps between messages, from the end of a record to its beginning.
#[derive(Debug)]
struct GapCursor {
    /// How many rows are before the gap.
    rows: usize,
    /// Where it ends.
    end: u64,
    /// The first gap was passed too.
    is_over: bool,
}

impl GapCursor {
    fn all(session: &SessionRecord) -> GapCursor {
        GapCursor {
            rows: session.len(),
            end: session.bytes(),
            is_over: false,
        }
    }

    /// The gap that is next, if there is one that is not empty.
    fn next(&mut self, session: &SessionRecord) -> Option<Range<u64>> {
        while !self.is_over {
            let before = self.rows.checked_sub(1).and_then(|row| session.row(row));
            let start = before.map_or(0, line_end);
            if start < self.end {
                return Some(start..self.end);
            }
            self.pass(session);
        }
        None
    }

    /// It was read.
    fn pass(&mut self, session: &SessionRecord) {
        match self.rows.checked_sub(1).and_then(|row| session.row(row)) {
            Some(row) => {
                self.rows -= 1;
                self.end = row.offset();
            }
            None => self.is_over = true,
        }
    }
}

/// What such lines say.
#[derive(Debug, Default)]
pub(super) struct AppendedEvents {
    pub(super) events: Vec<SessionEvent>,
    /// Marks, in order.
    pub(super) marks: Vec<(u64, MarkOperation)>,
    /// Rows that a verdict or a failed delivery is about.
    pub(super) changed: Vec<u32>,
}

impl SessionEventReader {
    pub(super) fn open(session: &SessionParts) -> Result<SessionEventReader, String> {
        let parts = session.parts();
        let parts = parts.map(|(record, first)| PartEventReader::open(record.path(), first));
        Ok(SessionEventReader {
            parts: parts.collect::<Result<_, _>>()?,
        })
    }

    /// Adds the part that follows.
    pub(super) fn push(&mut self, part: PartEventReader) {
        self.parts.push(part);
    }

    /// The newest events of the whole record. What is older is left to [`SessionEventReader::older_marks`].
    pub(super) fn newest(&mut self, session: &SessionParts) -> io::Result<EarlierEvents> {
        let mut newest = EarlierEvents::default();
        for (reader, (record, _)) in self.parts.iter_mut().zip(session.parts()).rev() {
            if newest.events.len() >= KEPT {
                reader.older = Some(GapCursor::all(record));
                continue;
            }
            let mut found = reader.newest(record)?;
            newest.marks.append(&mut found.marks);
            found.events.append(&mut newest.events);
            newest.events = found.events;
        }
        Ok(newest)
    }

    /// Whether there may be marks that were not looked for yet.
    pub(super) fn has_older(&self) -> bool {
        self.parts.iter().any(|part| part.older.is_some())
    }

    /// Marks before what [`SessionEventReader::newest`] read, the newest first: a portion of them, and the next at the next call.
    pub(super) fn older_marks(
        &mut self,
        session: &SessionParts,
    ) -> io::Result<Vec<(u64, MarkOperation)>> {
        let mut parts = self.parts.iter_mut().zip(session.parts()).rev();
        match parts.find(|(reader, _)| reader.older.is_some()) {
            Some((reader, (record, _))) => reader.older_marks(record),
            None => Ok(Vec::new()),
        }
    }

    /// What was appended to the last part after `from`, which was its end when it had `known` rows.
    pub(super) fn since(
        &mut self,
        session: &SessionParts,
        from: u64,
        known: usize,
    ) -> io::Result<AppendedEvents> {
        match self.parts.last_mut() {
            Some(last) => last.since(session, from, known),
            None => Ok(AppendedEvents::default()),
        }
    }
}

impl PartEventReader {
    /// `first` is the number of the part's first row.
    pub(super) fn open(path: &Path, first: usize) -> Result<PartEventReader, String> {
        let file =
            File::open(path).map_err(|error| format!("cannot open {}: {error}", path.display()))?;
        Ok(PartEventReader {
            file,
            buffer: Vec::new(),
            older: None,
            first,
        })
    }

    fn newest(&mut self, session: &SessionRecord) -> io::Result<EarlierEvents> {
        let mut newest = Vec::new();
        let mut left = MOST;
        let mut older = GapCursor::all(session);
        while let Some(gap) = older.next(session) {
            // Of a gap that is too long the end counts, without the line that is cut.
            let from = gap.start.max(gap.end.saturating_sub(left.min(4 * PIECE)));
            left = left.saturating_sub(gap.end - from);
            let mut found = Vec::new();
            let mut cut = from > gap.start;
            let rows = older.rows;
            let first = self.first;
            self.lines(from..gap.end, |line| {
                if std::mem::take(&mut cut) {
                    older.end = from + line.len() as u64 + 1;
                } else {
                    found.extend(event_of(&record(line), first, rows));
                }
            })?;
            newest.extend(found.into_iter().rev());
            if from > gap.start {
                break;
            }
            older.pass(session);
            if left == 0 || newest.len() >= KEPT {
                break;
            }
        }
        let marks = newest.iter().filter_map(|one: &SessionEvent| one.mark);
        let marks = marks.collect();
        newest.truncate(KEPT);
        newest.reverse();
        self.older = Some(older);
        Ok(EarlierEvents {
            events: newest,
            marks,
        })
    }

    fn older_marks(&mut self, session: &SessionRecord) -> io::Result<Vec<(u64, MarkOperation)>> {
        let mut marks = Vec::new();
        // If it cannot be read now, it will not be read later.
        let Some(mut older) = self.older.take() else {
            return Ok(marks);
        };
        let mut left = PORTION;
        for _ in 0..GAPS {
            let Some(gap) = older.next(session) else {
                return Ok(marks);
            };
            left = left.saturating_sub(gap.end - gap.start);
            let mut found = Vec::new();
            self.lines(gap, |line| {
                // Most lines say nothing of marks, and are not worth reading.
                if memchr::memmem::find(line, b"\"mark\"").is_some() {
                    let event = SessionEvent::read(&record(line), older.rows);
                    found.extend(event.and_then(|one| one.mark));
                }
            })?;
            marks.extend(found.into_iter().rev());
            older.pass(session);
            if left == 0 {
                break;
            }
        }
        self.older = Some(older);
        Ok(marks)
    }

    fn since(
        &mut self,
        session: &SessionParts,
        from: u64,
        known: usize,
    ) -> io::Result<AppendedEvents> {
        let mut rest = AppendedEvents::default();
        let mut start = from;
        let first = self.first;
        let part = session.last_part();
        let new = part.rows().get(known..).unwrap_or_default();
        let ends = new.iter().map(Some).chain([None]);
        for (index, row) in ends.enumerate() {
            let end = row.map_or(part.bytes(), Row::offset);
            if start < end {
                let before = known + index;
                self.lines(start..end, |line| {
                    let line = record(line);
                    rest.take(session, &line, event_of(&line, first, before));
                })?;
            }
            start = row.map_or(end, line_end);
        }
        Ok(rest)
    }

    /// Whole lines of a range, one piece in memory at a time.
    fn lines(&mut self, range: Range<u64>, mut line: impl FnMut(&[u8])) -> io::Result<()> {
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
                line(bytes);
            }
            self.buffer.drain(..=newline);
        }
        Ok(())
    }
}

impl AppendedEvents {
    /// Adds what came after it.
    pub(super) fn append(&mut self, mut later: AppendedEvents) {
        self.events.append(&mut later.events);
        self.marks.append(&mut later.marks);
        self.changed.append(&mut later.changed);
    }

    fn take(&mut self, session: &SessionParts, record: &RecordedLine, event: Option<SessionEvent>) {
        let about_message = match record.kind() {
            "act" => true,
            "io" => record.member::<String>("kind").as_deref() == Some("undelivered"),
            _ => false,
        };
        if about_message {
            let sequence = record.member::<u64>("sequence");
            let about = sequence.and_then(|sequence| session.find(sequence));
            self.changed.extend(about.map(|row| row as u32));
        }
        self.marks.extend(event.as_ref().and_then(|one| one.mark));
        self.events.extend(event);
    }
}

/// A line as an event, if it is one. `first` is the number of its part's first row, and `rows` how many rows of the part come
/// before it. A part begins with the connections that are open already, which is not news.
fn event_of(line: &RecordedLine, first: usize, rows: usize) -> Option<SessionEvent> {
    let event = SessionEvent::read(line, first + rows)?;
    let is_repeated = first > 0 && rows == 0 && event.kind == SessionEventKind::Open;
    (!is_repeated).then_some(event)
}

fn record(line: &[u8]) -> RecordedLine {
    RecordedLine {
        offset: 0,
        line: Bytes::copy_from_slice(line),
    }
}

/// Where the line after a row's line starts.
fn line_end(row: &Row) -> u64 {
    row.offset() + u64::from(row.line_len()) + 1
}
