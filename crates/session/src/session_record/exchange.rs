//! What else belongs to the HTTP exchange that carried a message: the message that went the other way, and the head of an event
//! stream. A message in a stream has no head of its own: that of the response stands on a line before the first event.

use super::{RecordedLine, SessionRecord};
use crate::message::{HttpHead, ProxyMessage};
use bytes::Bytes;
use memchr::memmem;
use std::ops::Range;

/// How many bytes between messages are read for it, and how many such places. The head of an answer's stream comes shortly
/// before it. That of a stream that has been open for hours may be further away, and is then not found.
const MOST_BYTES: u64 = 8 << 20;
const MOST_GAPS: usize = 20_000;

/// How far apart the two messages of an exchange are looked for.
const NEIGHBOURS: usize = 1_000;

impl SessionRecord {
    /// The head of the HTTP response whose event stream carried the message of row `index`.
    pub fn event_stream_head(&self, index: usize, message: &ProxyMessage) -> Option<HttpHead> {
        if message.sse.is_none() || message.exchange == 0 {
            return None;
        }
        let mut left = MOST_BYTES;
        let mut gaps = 0;
        for row in (0..=index).rev() {
            let gap = self.gap_before(row)?;
            if gap.is_empty() {
                continue;
            }
            left = left.checked_sub(gap.end - gap.start)?;
            if let Some(head) = self.response_head_in(gap, message) {
                return Some(head);
            }
            gaps += 1;
            if gaps == MOST_GAPS {
                return None;
            }
        }
        None
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

    /// Where the lines are that stand between a message and the one before it.
    fn gap_before(&self, row: usize) -> Option<Range<u64>> {
        let end = self.row(row)?.offset();
        let before = row.checked_sub(1).and_then(|row| self.row(row));
        let start = before.map_or(0, |row| row.offset() + u64::from(row.line_len()) + 1);
        Some(start..end)
    }

    fn response_head_in(&self, gap: Range<u64>, message: &ProxyMessage) -> Option<HttpHead> {
        let mut bytes = vec![0; usize::try_from(gap.end - gap.start).ok()?];
        self.file.read_exact_at(&mut bytes, gap.start).ok()?;
        let bytes = Bytes::from(bytes);
        let mut lines = bytes.split(|byte| *byte == b'\n').rev();
        lines.find_map(|line| {
            memmem::find(line, br#""kind":"http""#)?;
            let record = RecordedLine {
                offset: gap.start,
                line: bytes.slice_ref(line),
            };
            let connection = record.member::<String>("conn")?;
            let is_meant = connection == format!("c{}", message.connection)
                && record.member::<u64>("exchange") == Some(message.exchange)
                && record.member::<String>("direction").as_deref()
                    == Some(message.direction.as_str());
            if !is_meant {
                return None;
            }
            let record = self.redact_line(record).ok()?;
            let head = record.member::<HttpHead>("http")?;
            head.status.is_some().then_some(head)
        })
    }
}
