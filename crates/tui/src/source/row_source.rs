//! The rows themselves, whichever way they came: of a record, or remembered.
//!
//! Numbers of rows are of this module and its neighbours only; the screens know places among the shown rows, and sequence
//! numbers.

use std::ops::ControlFlow;

use mcp_proxy_session::{
    Error, Filter, HttpHead, MessageWithContext, ProxyMessage, Row, SessionHeader, SessionRecord,
};
use mcp_proxy_wire::Kind;

use super::fetched_messages::FetchedMessages;
use super::{MessageRow, RowGrouping};

/// Lines up to this many bytes are read for the list; of others it shows what the index knows.
const LONGEST_LINE: u32 = 1 << 20;

/// Where rows come from. Written by the worker only.
#[derive(Debug)]
pub(super) enum RowSource {
    Record(Box<SessionRecord>),
    Fetched(FetchedMessages),
}

impl RowSource {
    /// What the record says about its session.
    pub(super) fn header(&self) -> Option<&SessionHeader> {
        match self {
            RowSource::Record(session) => Some(session.header()),
            RowSource::Fetched(_) => None,
        }
    }

    /// The number of the oldest row.
    pub(super) fn first(&self) -> usize {
        match self {
            RowSource::Record(_) => 0,
            RowSource::Fetched(remembered) => remembered.first(),
        }
    }

    /// The number after that of the newest.
    pub(super) fn end(&self) -> usize {
        match self {
            RowSource::Record(session) => session.len(),
            RowSource::Fetched(remembered) => remembered.end(),
        }
    }

    pub(super) fn find(&self, sequence: u64) -> Option<usize> {
        match self {
            RowSource::Record(session) => session.find(sequence),
            RowSource::Fetched(remembered) => remembered.find(sequence),
        }
    }

    /// The row of a sequence number, else the one after it.
    pub(super) fn at_or_after(&self, sequence: u64) -> usize {
        match self {
            RowSource::Record(session) => session
                .find(sequence)
                .unwrap_or_else(|| session.at_or_after(sequence)),
            RowSource::Fetched(remembered) => remembered
                .find(sequence)
                .unwrap_or_else(|| remembered.at_or_after(sequence)),
        }
    }

    pub(super) fn sequence(&self, row: usize) -> Option<u64> {
        match self {
            RowSource::Record(session) => session.row(row).map(Row::sequence),
            RowSource::Fetched(remembered) => remembered.get(row).map(|told| told.message.sequence),
        }
    }

    pub(super) fn connection(&self, row: usize) -> Option<u32> {
        match self {
            RowSource::Record(session) => session.row(row).map(Row::connection),
            RowSource::Fetched(remembered) => {
                remembered.get(row).map(|told| told.message.connection)
            }
        }
    }

    pub(super) fn told(&self, sequence: u64) -> Result<MessageWithContext, String> {
        let unknown = || format!("message {sequence} is not here");
        let row = self.find(sequence).ok_or_else(unknown)?;
        match self {
            RowSource::Record(session) => session
                .message_with_context(row)
                .map_err(|error| error.to_string()),
            RowSource::Fetched(remembered) => remembered.get(row).cloned().ok_or_else(unknown),
        }
    }

    /// The sequence number of the request that a message answers, or of the answer to it.
    pub(super) fn peer(&self, sequence: u64) -> Option<u64> {
        let row = self.find(sequence)?;
        match self {
            RowSource::Record(session) => self.sequence(session.row(row)?.peer()?),
            RowSource::Fetched(remembered) => {
                let asked = remembered.get(row)?.message.answers;
                let peer = asked.or_else(|| remembered.answer_to(sequence))?;
                remembered.find(peer).map(|_| peer)
            }
        }
    }

    /// The other message of its HTTP exchange, where neither answers the other.
    pub(super) fn exchange_peer(&self, sequence: u64) -> Option<u64> {
        match self {
            RowSource::Record(session) => {
                self.sequence(session.exchange_peer(session.find(sequence)?)?)
            }
            RowSource::Fetched(_) => None,
        }
    }

    /// The row of the request that a message answers, or of the answer to it.
    pub(super) fn peer_row(&self, row: usize) -> Option<usize> {
        match self {
            RowSource::Record(session) => session.row(row)?.peer(),
            RowSource::Fetched(_) => self.find(self.peer(self.sequence(row)?)?),
        }
    }

    /// Of an answer: the row of the request that it answers. That row shows the call as a whole.
    pub(super) fn call_of(&self, row: usize) -> Option<usize> {
        let kind = match self {
            RowSource::Record(session) => session.row(row)?.kind(),
            RowSource::Fetched(remembered) => remembered.get(row)?.message.kind,
        };
        let is_answer = matches!(kind, Kind::Response | Kind::Error);
        let request = self.peer_row(row).filter(|_| is_answer)?;
        // A second answer to a request stands for itself.
        (self.peer_row(request) == Some(row)).then_some(request)
    }

    /// The HTTP head that carried a message: its own, or that of its event stream.
    pub(super) fn http_head(&self, message: &ProxyMessage) -> Option<HttpHead> {
        match (&message.http, self) {
            (Some(http), _) => Some(http.clone()),
            (None, RowSource::Record(session)) => {
                session.event_stream_head(session.find(message.sequence)?, message)
            }
            // The proxy that keeps no record does not give it.
            (None, RowSource::Fetched(_)) => None,
        }
    }

    /// One row of the list.
    pub(super) fn line(&self, row: usize, grouping: RowGrouping) -> Option<MessageRow> {
        let mut line = self.message_line(row)?;
        if grouping == RowGrouping::Calls && self.call_of(row).is_none() {
            let answer = self.peer_row(row).and_then(|row| self.message_line(row));
            line.answer = answer.map(Box::new);
        }
        Some(line)
    }

    fn message_line(&self, row: usize) -> Option<MessageRow> {
        match self {
            RowSource::Record(session) => {
                let known = session.row(row)?;
                // A line that cannot be read must not leave a hole in the list, and a long one takes too long for a frame.
                let told = Some(row).filter(|_| known.line_len() <= LONGEST_LINE);
                let told = told.and_then(|row| session.message_with_context(row).ok());
                Some(match told {
                    Some(told) => MessageRow::of(&told),
                    None => MessageRow::of_row(session, known),
                })
            }
            RowSource::Fetched(remembered) => remembered.get(row).map(MessageRow::of),
        }
    }

    /// Whether one row matches; one that cannot be read does not.
    pub(super) fn matches(&self, filter: &Filter, row: usize) -> bool {
        let matches = match self {
            RowSource::Record(session) => {
                let known = session.row(row);
                known.map(|known| filter.matches(session, known).map_err(drop))
            }
            RowSource::Fetched(remembered) => {
                let told = remembered.get(row);
                told.map(|told| filter.matches_message(told).map_err(drop))
            }
        };
        matches.is_some_and(|matches| matches.unwrap_or(false))
    }

    /// Tells of every row from `from` on whether it matches, until `seen` stops it.
    pub(super) fn scan(
        &self,
        filter: &Filter,
        from: usize,
        mut seen: impl FnMut(usize, bool) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        // No line has to be read for that.
        if filter.is_empty() {
            let _ = (from..self.end()).try_for_each(|row| seen(row, true));
            return Ok(());
        }
        match self {
            RowSource::Record(session) => filter.scan(session, from, seen),
            RowSource::Fetched(remembered) => {
                for row in from..remembered.end() {
                    let told = remembered.get(row);
                    let matches = told.map(|told| filter.matches_message(told));
                    if seen(row, matches.transpose()?.unwrap_or(false)).is_break() {
                        break;
                    }
                }
                Ok(())
            }
        }
    }
}
