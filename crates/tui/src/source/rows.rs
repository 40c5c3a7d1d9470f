//! What the list and the screens ask of a record.
//!
//! Numbers of rows are of this module and its neighbours only; the screens know places among the shown rows, and sequence
//! numbers.

use mcp_proxy_session::{Filter, HttpHead, MessageWithContext, ProxyMessage, Row, SessionRecord};
use mcp_proxy_wire::Kind;

use super::{MessageRow, RowGrouping};

/// Lines up to this many bytes are read for the list; of others it shows what the index knows.
const LONGEST_LINE: u32 = 1 << 20;

pub(super) fn sequence(session: &SessionRecord, row: usize) -> Option<u64> {
    session.row(row).map(Row::sequence)
}

/// The row of a sequence number, else the one after it.
pub(super) fn at_or_after(session: &SessionRecord, sequence: u64) -> usize {
    let row = session.find(sequence);
    row.unwrap_or_else(|| session.at_or_after(sequence))
}

pub(super) fn told(session: &SessionRecord, sequence: u64) -> Result<MessageWithContext, String> {
    let row = session.find(sequence);
    let row = row.ok_or_else(|| format!("message {sequence} is not here"))?;
    let told = session.message_with_context(row);
    told.map_err(|error| error.to_string())
}

/// The row of the request that a message answers, or of the answer to it.
pub(super) fn peer(session: &SessionRecord, row: usize) -> Option<usize> {
    session.row(row)?.peer()
}

/// Of an answer: the row of the request that it answers. That row shows the call as a whole.
pub(super) fn call_of(session: &SessionRecord, row: usize) -> Option<usize> {
    let is_answer = matches!(session.row(row)?.kind(), Kind::Response | Kind::Error);
    let request = peer(session, row).filter(|_| is_answer)?;
    // A second answer to a request stands for itself.
    (peer(session, request) == Some(row)).then_some(request)
}

/// The HTTP head that carried a message: its own, or that of its event stream.
pub(super) fn http_head(session: &SessionRecord, message: &ProxyMessage) -> Option<HttpHead> {
    let of_stream = || session.event_stream_head(session.find(message.sequence)?, message);
    message.http.clone().or_else(of_stream)
}

/// One row of the list.
pub(super) fn line(
    session: &SessionRecord,
    row: usize,
    grouping: RowGrouping,
) -> Option<MessageRow> {
    let mut line = message_line(session, row)?;
    if grouping == RowGrouping::Calls && call_of(session, row).is_none() {
        let answer = peer(session, row).and_then(|row| message_line(session, row));
        line.answer = answer.map(Box::new);
    }
    Some(line)
}

/// A line that cannot be read must not leave a hole in the list, and a long one takes too long for a frame.
fn message_line(session: &SessionRecord, row: usize) -> Option<MessageRow> {
    let known = session.row(row)?;
    let told = Some(row).filter(|_| known.line_len() <= LONGEST_LINE);
    let told = told.and_then(|row| session.message_with_context(row).ok());
    Some(match told {
        Some(told) => MessageRow::of(&told),
        None => MessageRow::of_row(session, known),
    })
}

/// Whether one row matches; one that cannot be read does not.
pub(super) fn matches(session: &SessionRecord, filter: &Filter, row: usize) -> bool {
    let known = session.row(row);
    known.is_some_and(|known| filter.matches(session, known).unwrap_or(false))
}
