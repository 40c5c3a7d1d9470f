//! Which lines of the record make up which HAR entry.

use crate::envelope::{self, Members};
use crate::index::LinePlace;
use crate::lines::Lines;
use crate::{Error, Session};
use mcp_proxy_wire::Kind;
use rustc_hash::FxHashMap;

/// The lines of one entry.
#[derive(Debug, Default)]
pub(super) struct Planned {
    pub(super) request: Option<Part>,
    pub(super) response: Option<Part>,
    pub(super) events: Vec<Part>,
}

/// A line: a message's row, or an `io` line with HTTP facts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    Row(u32),
    Io(LinePlace),
}

/// What one line is for the plan.
struct Seen {
    part: Part,
    /// Connection and exchange, if HTTP or SSE carried it.
    exchange: Option<(u32, u64)>,
    role: Role,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Request,
    Response,
    Event,
    Plain,
}

#[derive(Default)]
struct Plan {
    entries: Vec<Planned>,
    by_exchange: FxHashMap<(u32, u64), usize>,
    /// The entry of each row that may be answered.
    by_row: FxHashMap<u32, usize>,
}

/// Sorts the record into entries.
pub(super) fn plan(session: &Session) -> Result<Vec<Planned>, Error> {
    let mut plan = Plan::default();
    let mut lines = Lines::new(session.file(), 0, session.covered());
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
            Part::Row(row as u32 - 1)
        } else if envelope::record_type(line.bytes) == Some(b"io") {
            Part::Io(LinePlace {
                offset: line.offset,
                len: line.bytes.len() as u32,
            })
        } else {
            continue;
        };
        if let Some(seen) = look(part, line.bytes) {
            plan.add(session, seen);
        }
    }
    if session.is_thinned() {
        // An exchange of which no message is left is not wanted either.
        plan.entries.retain(Planned::has_message);
    }
    Ok(plan.entries)
}

impl Planned {
    fn has_message(&self) -> bool {
        let parts = self
            .request
            .iter()
            .chain(&self.response)
            .chain(&self.events);
        parts.into_iter().any(|part| matches!(part, Part::Row(_)))
    }
}

fn look(part: Part, line: &[u8]) -> Option<Seen> {
    let mut connection = 0;
    let mut exchange = 0;
    let mut role = Role::Plain;
    let mut members = Members::new(line);
    while let Some(key) = members.next_key() {
        if matches!(key, b"raw" | b"raw_text" | b"raw_b64") {
            break;
        }
        let value = members.value()?;
        match key {
            b"conn" => connection = envelope::connection(value)?,
            b"exchange" => exchange = envelope::number(value)?,
            b"http" if value.starts_with(b"{\"status\"") => role = Role::Response,
            b"http" => role = Role::Request,
            b"sse" => role = Role::Event,
            _ => {}
        }
    }
    // Number 0 is none: the requests that a bridge makes of its own have no number in the record.
    let exchange = (role != Role::Plain && exchange != 0).then_some((connection, exchange));
    // And an event of such a request's stream stands for itself, as a line of stdio does.
    if role == Role::Event && exchange.is_none() {
        role = Role::Plain;
    }
    match part {
        Part::Io(_) if role == Role::Plain => None,
        _ => Some(Seen {
            part,
            exchange,
            role,
        }),
    }
}

impl Plan {
    fn add(&mut self, session: &Session, seen: Seen) {
        let Seen {
            part,
            exchange,
            role,
        } = seen;
        let entry = match role {
            Role::Request => self.open(),
            Role::Response => self
                .same_exchange(exchange)
                .or_else(|| self.asked_by(session, part))
                .filter(|entry| self.entries[*entry].response.is_none())
                .unwrap_or_else(|| self.open()),
            Role::Event => self
                .same_exchange(exchange)
                .or_else(|| self.asked_by(session, part))
                .unwrap_or_else(|| self.open()),
            Role::Plain => self
                .asked_by(session, part)
                .filter(|entry| self.entries[*entry].response.is_none())
                .unwrap_or_else(|| self.open()),
        };
        if let Some(exchange) = exchange {
            self.by_exchange.insert(exchange, entry);
        }
        let kind = match part {
            Part::Row(row) => session.row(row as usize).map(|row| row.kind()),
            Part::Io(_) => None,
        };
        let planned = &mut self.entries[entry];
        match role {
            Role::Request => planned.request = Some(part),
            Role::Response => planned.response = Some(part),
            Role::Event => planned.events.push(part),
            Role::Plain if matches!(kind, Some(Kind::Response | Kind::Error)) => {
                planned.response = Some(part)
            }
            Role::Plain => planned.request = Some(part),
        }
        if let (Part::Row(row), Some(Kind::Request | Kind::Batch)) = (part, kind) {
            self.by_row.insert(row, entry);
        }
    }

    fn open(&mut self) -> usize {
        self.entries.push(Planned::default());
        self.entries.len() - 1
    }

    fn same_exchange(&self, exchange: Option<(u32, u64)>) -> Option<usize> {
        self.by_exchange.get(&exchange?).copied()
    }

    /// The entry of the request that this row answers: how answers find their requests where the two links are of different kinds.
    fn asked_by(&self, session: &Session, part: Part) -> Option<usize> {
        let Part::Row(row) = part else { return None };
        let row = session.row(row as usize)?;
        if !matches!(row.kind(), Kind::Response | Kind::Error | Kind::Batch) {
            return None;
        }
        self.by_row.get(&u32::try_from(row.peer()?).ok()?).copied()
    }
}
