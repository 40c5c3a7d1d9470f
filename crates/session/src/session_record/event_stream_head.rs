//! The HTTP head of an event stream. A message in a stream has none of its own: the record has the head of the response on a
//! line that comes before the first event.

use super::{RecordedLine, SessionRecord};
use crate::message::{HttpHead, ProxyMessage};
use bytes::Bytes;
use memchr::memmem;
use std::ops::Range;

/// How many bytes between messages are read for it, and how many such places. The head of an answer's stream comes shortly
/// before it. That of a stream that has been open for hours may be further away, and is then not found.
const MOST_BYTES: u64 = 8 << 20;
const MOST_GAPS: usize = 20_000;

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
