//! All parts of a session's record, as one list of rows.
//!
//! Row numbers continue from part to part, and only the last part grows. What one file says about a message of another is put
//! together here: an answer and its request, and a decision that was made after the next part had begun.

use crate::index::{LineLocation, OutsideLine};
use crate::{
    Error, HttpHead, MessageWithContext, ProxyMessage, RedactionFacts, RequestSummary, Row,
    SessionRecord,
};
use mcp_proxy_wire::Kind;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How far apart the two messages of an HTTP exchange are looked for.
const NEIGHBOURS: usize = 1_000;

/// The record of a session, from one of its parts to the last.
#[derive(Debug)]
pub struct SessionParts {
    parts: Vec<PlacedPart>,
    /// Answers whose request is in an earlier part, by the number of the request.
    answers: BTreeMap<u64, u64>,
    /// Lines about messages of an earlier part, by the number of the message.
    outside: BTreeMap<u64, Vec<OutsideRemark>>,
}

/// A part, and where it is in the list.
#[derive(Debug)]
struct PlacedPart {
    record: SessionRecord,
    /// The number of its first row.
    first: usize,
    /// How many of its rows and outside lines were taken in.
    rows: usize,
    lines: usize,
}

/// A line of one part about a message of another.
#[derive(Debug, Clone, Copy)]
struct OutsideRemark {
    /// The number of the part that has the line.
    part: u32,
    line: LineLocation,
}

impl SessionParts {
    /// Opens a record and the parts that follow it.
    pub fn open(path: impl AsRef<Path>) -> Result<SessionParts, Error> {
        let mut parts = SessionParts {
            parts: Vec::new(),
            answers: BTreeMap::new(),
            outside: BTreeMap::new(),
        };
        parts.push(SessionRecord::open(path)?);
        parts.open_following()?;
        Ok(parts)
    }

    /// Opens the parts before these too, as far as they are still there, until one has the message with this number.
    pub fn open_earlier(&mut self, sequence: u64) -> Result<(), Error> {
        while self.first_sequence().is_none_or(|first| first > sequence) {
            let first = &self.parts[0].record;
            let Some(path) = first.previous_part().filter(|path| path.exists()) else {
                break;
            };
            let record = SessionRecord::open(path)?;
            // A file may have been renamed or replaced.
            let fits = record.header().id == first.header().id
                && record.part().number + 1 == first.part().number;
            if !fits {
                break;
            }
            for part in &mut self.parts {
                part.first += record.len();
            }
            self.parts.insert(0, PlacedPart::new(record, 0));
            self.take_in(0);
        }
        Ok(())
    }

    /// Takes in what was appended since, and the parts that have begun since.
    pub fn refresh(&mut self) -> Result<(), Error> {
        self.refresh_some(usize::MAX)?;
        self.open_following()
    }

    /// Takes in at most `lines` lines of the last part. See [`SessionRecord::refresh_some`].
    pub fn refresh_some(&mut self, lines: usize) -> Result<usize, Error> {
        let new = self.last_part_mut().record.refresh_some(lines)?;
        self.take_in(self.parts.len() - 1);
        Ok(new)
    }

    /// The record that follows the last part, if there is one. It can be opened without keeping readers of this waiting, and
    /// handed over with [`SessionParts::push`] once the last part was read to its end.
    pub fn next_part(&self) -> Option<PathBuf> {
        self.last_part().next_part().filter(|path| path.exists())
    }

    /// Adds the part that follows.
    pub fn push(&mut self, record: SessionRecord) {
        let first = self.len();
        self.parts.push(PlacedPart::new(record, first));
        self.take_in(self.parts.len() - 1);
    }

    /// The part that was written last.
    pub fn last_part(&self) -> &SessionRecord {
        // There is one from the beginning.
        &self.parts[self.parts.len() - 1].record
    }

    /// All parts, oldest first, each with the number of its first row.
    pub fn parts(
        &self,
    ) -> impl DoubleEndedIterator<Item = (&SessionRecord, usize)> + ExactSizeIterator {
        self.parts.iter().map(|part| (&part.record, part.first))
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.parts
            .last()
            .map_or(0, |part| part.first + part.record.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The part that has a row, and the number of the row there.
    pub fn part_of(&self, row: usize) -> Option<(&SessionRecord, usize)> {
        let part = self.parts.partition_point(|part| part.first <= row);
        let part = &self.parts[part.checked_sub(1)?];
        let row = row - part.first;
        (row < part.record.len()).then_some((&part.record, row))
    }

    /// One row.
    pub fn row(&self, row: usize) -> Option<&Row> {
        let (record, row) = self.part_of(row)?;
        record.row(row)
    }

    /// The row of the message with this sequence number.
    pub fn find(&self, sequence: u64) -> Option<usize> {
        let found = |part: &PlacedPart| Some(part.first + part.record.find(sequence)?);
        self.parts.iter().rev().find_map(found)
    }

    /// The first row whose sequence number is not below this one.
    pub fn at_or_after(&self, sequence: u64) -> usize {
        let is_before = |row: &Row| row.sequence() < sequence;
        for part in &self.parts {
            let row = part.record.rows().partition_point(is_before);
            if row < part.record.len() {
                return part.first + row;
            }
        }
        self.len()
    }

    /// The oldest message that can be had. 1 if there is a part that is not open.
    pub fn oldest_sequence(&self) -> u64 {
        let previous = self.parts[0].record.previous_part();
        match self.first_number() > 1 && !previous.is_some_and(|path| path.exists()) {
            true => self.first_sequence().unwrap_or(1),
            false => 1,
        }
    }

    fn first_sequence(&self) -> Option<u64> {
        let first = self.parts.iter().find_map(|part| part.record.row(0));
        first.map(Row::sequence)
    }

    /// The number of the oldest part.
    pub fn first_number(&self) -> u32 {
        self.parts[0].record.part().number
    }

    /// A row's method. Very long ones are cut.
    pub fn method(&self, row: usize) -> Option<&str> {
        let (record, row) = self.part_of(row)?;
        record.method(record.row(row)?)
    }

    /// For an answer the row of its request, for a request the row of its answer.
    pub fn peer(&self, row: usize) -> Option<usize> {
        let (record, inside) = self.part_of(row)?;
        let known = record.row(inside)?;
        if let Some(peer) = known.peer() {
            return Some(row - inside + peer);
        }
        match known.kind() {
            Kind::Response | Kind::Error => {
                let asked = record.message(inside).ok()?.answers?;
                self.find(asked)
            }
            _ => self.find(*self.answers.get(&known.sequence())?),
        }
    }

    /// The other message of the HTTP exchange that carried a row: of a response the request, and the other way round. A
    /// response that is not JSON-RPC names no request. Neighbours are looked at, not the whole record.
    pub fn exchange_peer(&self, row: usize) -> Option<usize> {
        let message = self.message(row).ok()?;
        let http = message.http.as_ref().filter(|_| message.exchange != 0)?;
        let is_peer = |other: &usize| {
            let known = self.row(*other);
            let is_candidate = known.is_some_and(|known| {
                known.connection() == message.connection && known.direction() != message.direction
            });
            let other = self.message(*other).ok().filter(|_| is_candidate);
            other.is_some_and(|other| {
                other.exchange == message.exchange
                    && other
                        .http
                        .is_some_and(|other| other.status.is_some() != http.status.is_some())
            })
        };
        match http.status {
            Some(_) => (row.saturating_sub(NEIGHBOURS)..row).rev().find(is_peer),
            None => (row + 1..self.len().min(row + NEIGHBOURS)).find(is_peer),
        }
    }

    /// Whether another part says something about this row, so that its own does not tell everything.
    pub fn has_outside_facts(&self, row: usize) -> bool {
        let Some((record, inside)) = self.part_of(row) else {
            return false;
        };
        let Some(known) = record.row(inside) else {
            return false;
        };
        let is_answer = matches!(known.kind(), Kind::Response | Kind::Error);
        self.outside.contains_key(&known.sequence())
            || is_answer && known.peer().is_none() && record.part().number > 1
    }

    /// One message with the verdicts on it folded in.
    pub fn message(&self, row: usize) -> Result<ProxyMessage, Error> {
        self.message_with_context(row).map(|told| told.message)
    }

    /// One message, with what its neighbours tell about it.
    pub fn message_with_context(&self, row: usize) -> Result<MessageWithContext, Error> {
        let (record, inside) = self.part_of(row).ok_or(Error::NoSuchRow(row as u64))?;
        let mut told = record.message_with_context(inside)?;
        if let Some(remarks) = self.outside.get(&told.message.sequence) {
            for remark in remarks {
                self.apply(&mut told, *remark)?;
            }
        }
        if told.request.is_none()
            && let Some(asked) = told.message.answers.and_then(|asked| self.find(asked))
        {
            let asked = self.message(asked)?;
            told.request = Some(RequestSummary {
                method: asked.method.unwrap_or_else(|| "?".to_owned()),
                name: asked.name,
            });
        }
        Ok(told)
    }

    /// The head of the HTTP response whose event stream carried a message. The stream may have begun in an earlier part.
    pub fn event_stream_head(&self, row: usize, message: &ProxyMessage) -> Option<HttpHead> {
        let (record, inside) = self.part_of(row)?;
        let earlier = || {
            let number = record.part().number;
            let before = self.parts.iter().rev().map(|part| &part.record);
            let mut before = before.filter(|record| record.part().number < number);
            before
                .find_map(|record| record.event_stream_head(record.len().checked_sub(1)?, message))
        };
        let head = record.event_stream_head(inside, message);
        head.or_else(earlier)
    }

    /// What was asked to be hidden, and the word that marks it. `None` if nothing was.
    pub fn redaction(&self) -> Option<&RedactionFacts> {
        self.last_part().redaction()
    }

    fn last_part_mut(&mut self) -> &mut PlacedPart {
        let last = self.parts.len() - 1;
        &mut self.parts[last]
    }

    fn open_following(&mut self) -> Result<(), Error> {
        while let Some(path) = self.next_part() {
            self.push(SessionRecord::open(path)?);
        }
        Ok(())
    }

    /// Notes what the new lines of a part say about messages of other parts.
    fn take_in(&mut self, index: usize) {
        let part = &mut self.parts[index];
        let record = &part.record;
        let number = record.part().number;
        let rows = std::mem::replace(&mut part.rows, record.len());
        let outside = record.outside_lines();
        let lines = std::mem::replace(&mut part.lines, outside.len());
        for OutsideLine { sequence, line } in &outside[lines..] {
            let remark = OutsideRemark {
                part: number,
                line: *line,
            };
            self.outside.entry(*sequence).or_default().push(remark);
        }
        if number == 1 {
            return;
        }
        for (row, known) in record.rows().iter().enumerate().skip(rows) {
            let is_answer = matches!(known.kind(), Kind::Response | Kind::Error);
            if is_answer
                && known.peer().is_none()
                && let Ok(message) = record.message(row)
                && let Some(asked) = message.answers
            {
                // The first answer is the request's.
                self.answers.entry(asked).or_insert(known.sequence());
            }
        }
    }

    fn apply(&self, told: &mut MessageWithContext, remark: OutsideRemark) -> Result<(), Error> {
        let mut parts = self.parts.iter().map(|part| &part.record);
        let Some(record) = parts.find(|record| record.part().number == remark.part) else {
            return Ok(());
        };
        record.apply_outside_line(told, remark.line)
    }
}

impl PlacedPart {
    fn new(record: SessionRecord, first: usize) -> PlacedPart {
        PlacedPart {
            record,
            first,
            rows: 0,
            lines: 0,
        }
    }
}
