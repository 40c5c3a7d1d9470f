//! Which lines of the record make up which HAR entry.

use crate::index::LineLocation;
use crate::line_members::{self, LineMembers};
use crate::lines::LineScanner;
use crate::{Error, RecordedLine, SessionRecord};
use mcp_proxy_wire::Kind;
use rustc_hash::FxHashMap;
use std::time::SystemTime;

/// The lines of one entry.
#[derive(Debug, Default)]
pub(super) struct HarEntryPlan {
    pub(super) request: Option<HarLine>,
    pub(super) response: Option<HarLine>,
    pub(super) events: Vec<HarLine>,
}

/// A line: a message's row, or an `io` line with HTTP facts.
#[derive(Debug, Clone, Copy)]
pub(super) enum HarLine {
    Row(u32),
    Io(LineLocation),
}

/// What one line is for the plan.
struct ClassifiedLine {
    part: HarLine,
    /// Connection and exchange, if HTTP or SSE carried it.
    exchange: Option<(u32, u64)>,
    role: HarLineRole,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HarLineRole {
    Request,
    Response,
    Event,
    Plain,
}

#[derive(Default)]
struct HarPlan {
    entries: Vec<HarEntryPlan>,
    by_exchange: FxHashMap<(u32, u64), usize>,
    /// The entry of each row that may be answered.
    by_row: FxHashMap<u32, usize>,
}

/// Sorts the record into entries.
pub(super) fn plan(session: &SessionRecord) -> Result<Vec<HarEntryPlan>, Error> {
    let mut plan = HarPlan::default();
    let mut lines = LineScanner::new(session.file(), 0, session.covered());
    let mut row = 0;
    while let Some(line) = lines
        .next_line()
        .map_err(|error| Error::io("read", session.path(), error))?
    {
        let is_row = session
            .row(row)
            .is_some_and(|known| known.offset() == line.offset);
        let part = if is_row {
            row += 1;
            HarLine::Row(row as u32 - 1)
        } else if line_members::record_type(line.bytes) == Some(b"io") {
            HarLine::Io(LineLocation {
                offset: line.offset,
                len: line.bytes.len() as u32,
            })
        } else {
            continue;
        };
        if let Some(seen) = classify_line(part, line.bytes) {
            plan.add(session, seen);
        }
    }
    if session.is_filtered() {
        // An exchange of which no message is left is not wanted either.
        plan.entries.retain(HarEntryPlan::has_message);
    }
    Ok(plan.entries)
}

impl HarEntryPlan {
    fn has_message(&self) -> bool {
        let parts = self
            .request
            .iter()
            .chain(&self.response)
            .chain(&self.events);
        parts
            .into_iter()
            .any(|part| matches!(part, HarLine::Row(_)))
    }
}

fn classify_line(part: HarLine, line: &[u8]) -> Option<ClassifiedLine> {
    let mut connection = 0;
    let mut exchange = 0;
    let mut role = HarLineRole::Plain;
    let mut members = LineMembers::new(line);
    while let Some(key) = members.next_key() {
        if matches!(key, b"raw" | b"raw_text" | b"raw_b64") {
            break;
        }
        let value = members.value()?;
        match key {
            b"conn" => connection = line_members::connection(value)?,
            b"exchange" => exchange = line_members::number(value)?,
            b"http" if value.starts_with(b"{\"status\"") => role = HarLineRole::Response,
            b"http" => role = HarLineRole::Request,
            b"sse" => role = HarLineRole::Event,
            _ => {}
        }
    }
    // Number 0 is none: the requests that a bridge makes of its own have no number in the record.
    let exchange = (role != HarLineRole::Plain && exchange != 0).then_some((connection, exchange));
    // And an event of such a request's stream stands for itself, as a line of stdio does.
    if role == HarLineRole::Event && exchange.is_none() {
        role = HarLineRole::Plain;
    }
    match part {
        HarLine::Io(_) if role == HarLineRole::Plain => None,
        _ => Some(ClassifiedLine {
            part,
            exchange,
            role,
        }),
    }
}

/// Reads an `io` line, and when it was written.
pub(super) fn read_io(
    session: &SessionRecord,
    place: LineLocation,
) -> Result<(RecordedLine, SystemTime), Error> {
    let record = RecordedLine {
        offset: place.offset,
        line: session.line(place)?,
    };
    let time: Option<String> = record.member("timestamp");
    let time = time.and_then(|text| crate::timestamp::parse(&text));
    Ok((record, time.unwrap_or(SystemTime::UNIX_EPOCH)))
}

impl HarPlan {
    fn add(&mut self, session: &SessionRecord, seen: ClassifiedLine) {
        let ClassifiedLine {
            part,
            exchange,
            role,
        } = seen;
        let entry = match role {
            HarLineRole::Request => self.open(),
            HarLineRole::Response => self
                .same_exchange(exchange)
                .or_else(|| self.asked_by(session, part))
                .filter(|entry| self.entries[*entry].response.is_none())
                .unwrap_or_else(|| self.open()),
            HarLineRole::Event => self
                .same_exchange(exchange)
                .or_else(|| self.asked_by(session, part))
                .unwrap_or_else(|| self.open()),
            HarLineRole::Plain => self
                .asked_by(session, part)
                .filter(|entry| self.entries[*entry].response.is_none())
                .unwrap_or_else(|| self.open()),
        };
        if let Some(exchange) = exchange {
            self.by_exchange.insert(exchange, entry);
        }
        let kind = match part {
            HarLine::Row(row) => session.row(row as usize).map(|row| row.kind()),
            HarLine::Io(_) => None,
        };
        let planned = &mut self.entries[entry];
        match role {
            HarLineRole::Request => planned.request = Some(part),
            HarLineRole::Response => planned.response = Some(part),
            HarLineRole::Event => planned.events.push(part),
            HarLineRole::Plain if matches!(kind, Some(Kind::Response | Kind::Error)) => {
                planned.response = Some(part)
            }
            HarLineRole::Plain => planned.request = Some(part),
        }
        if let (HarLine::Row(row), Some(Kind::Request | Kind::Batch)) = (part, kind) {
            self.by_row.insert(row, entry);
        }
    }

    fn open(&mut self) -> usize {
        self.entries.push(HarEntryPlan::default());
        self.entries.len() - 1
    }

    fn same_exchange(&self, exchange: Option<(u32, u64)>) -> Option<usize> {
        self.by_exchange.get(&exchange?).copied()
    }

    /// The entry of the request that this row answers: how answers find their requests where the two links are of different kinds.
    fn asked_by(&self, session: &SessionRecord, part: HarLine) -> Option<usize> {
        let HarLine::Row(row) = part else { return None };
        let row = session.row(row as usize)?;
        if !matches!(row.kind(), Kind::Response | Kind::Error | Kind::Batch) {
            return None;
        }
        self.by_row.get(&u32::try_from(row.peer()?).ok()?).copied()
    }
}
