//! The rows themselves, whichever way they came: of a record, or remembered.
//!
//! Numbers of rows are of this module and its neighbours only; the screens know places among the shown rows, and sequence
//! numbers.

use std::ops::ControlFlow;

use mcp_proxy_session::{Error, Filter, MessageWithContext, Row, SessionRecord};

use super::MessageRow;
use super::fetched_messages::FetchedMessages;

/// Where rows come from. Written by the worker only.
#[derive(Debug)]
pub(super) enum RowSource {
    Record(Box<SessionRecord>),
    Fetched(FetchedMessages),
}

impl RowSource {
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
            RowSource::Record(session) => session.find(sequence).unwrap_or_else(|| {
                let before = |row: &Row| row.sequence() < sequence;
                session.rows().partition_point(before)
            }),
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

    pub(super) fn line(&self, row: usize) -> Option<MessageRow> {
        match self {
            RowSource::Record(session) => {
                let known = session.row(row)?;
                // A line that cannot be read must not leave a hole in the list.
                let told = session.message_with_context(row);
                Some(told.map_or_else(
                    |_| MessageRow::of_row(session, known),
                    |told| MessageRow::of(&told),
                ))
            }
            RowSource::Fetched(remembered) => remembered.get(row).map(MessageRow::of),
        }
    }

    /// Whether one row matches; one that cannot be read does not.
    pub(super) fn matches(&self, filter: &Filter, row: usize) -> bool {
        let matches = match self {
            RowSource::Record(session) => session.row(row).map(|row| filter.matches(session, row)),
            RowSource::Fetched(remembered) => {
                let told = remembered.get(row);
                told.map(|told| filter.matches_message(told))
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
