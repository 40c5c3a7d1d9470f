//! Messages of a proxy that keeps no record, as far as they were fetched from it.
//!
//! Rows are numbered from 0 in the order in which they came and keep their numbers when the oldest are forgotten.

use std::collections::{HashMap, VecDeque};

use mcp_proxy_session::MessageWithContext;

/// Messages that are kept.
pub(super) const MOST_ROWS: usize = 50_000;
/// Bytes of bodies that are kept.
const MOST_BYTES: u64 = 64 << 20;

/// The newest messages that were fetched.
#[derive(Debug, Default)]
pub(super) struct FetchedMessages {
    kept: VecDeque<MessageWithContext>,
    /// The number of the oldest that is kept.
    first: usize,
    bytes: u64,
    rows: HashMap<u64, usize>,
    /// The answer to a request, by sequence number.
    answers: HashMap<u64, u64>,
}

impl FetchedMessages {
    pub(super) fn first(&self) -> usize {
        self.first
    }

    pub(super) fn end(&self) -> usize {
        self.first + self.kept.len()
    }

    pub(super) fn get(&self, row: usize) -> Option<&MessageWithContext> {
        self.kept.get(row.checked_sub(self.first)?)
    }

    pub(super) fn find(&self, sequence: u64) -> Option<usize> {
        self.rows.get(&sequence).copied()
    }

    /// The first row with this sequence number or a later one.
    pub(super) fn at_or_after(&self, sequence: u64) -> usize {
        let before = |told: &MessageWithContext| told.message.sequence < sequence;
        self.first + self.kept.partition_point(before)
    }

    /// The sequence number of the answer to a request.
    pub(super) fn answer_to(&self, sequence: u64) -> Option<u64> {
        self.answers.get(&sequence).copied()
    }

    /// Takes a message in. Returns its row if it is about a message that was known.
    pub(super) fn take(&mut self, told: MessageWithContext) -> Option<usize> {
        let sequence = told.message.sequence;
        let size = size(&told);
        if let Some(request) = told.message.answers {
            self.answers.entry(request).or_insert(sequence);
        }
        if let Some(row) = self.find(sequence) {
            let known = &mut self.kept[row - self.first];
            self.bytes = self.bytes + size - self::size(known);
            *known = told;
            self.bound();
            return Some(row);
        }
        // What was forgotten does not come back.
        let oldest = self.kept.front().map(|told| told.message.sequence);
        if self.first > 0 && oldest.is_some_and(|oldest| sequence < oldest) {
            return None;
        }
        self.rows.insert(sequence, self.end());
        self.bytes += size;
        self.kept.push_back(told);
        self.bound();
        None
    }

    /// Lets the oldest go.
    fn bound(&mut self) {
        while self.kept.len() > MOST_ROWS || (self.bytes > MOST_BYTES && self.kept.len() > 1) {
            let Some(oldest) = self.kept.pop_front() else {
                return;
            };
            self.bytes -= size(&oldest);
            self.rows.remove(&oldest.message.sequence);
            self.answers.remove(&oldest.message.sequence);
            if let Some(request) = oldest.message.answers {
                self.answers.remove(&request);
            }
            self.first += 1;
        }
    }
}

/// Bytes in memory of a message's bodies.
fn size(told: &MessageWithContext) -> u64 {
    let message = &told.message;
    let verdicts = message
        .verdicts
        .iter()
        .flat_map(|verdict| [&verdict.raw, &verdict.original_raw])
        .flatten();
    let bodies = [Some(&message.raw), message.original_raw.as_ref()];
    let bodies = bodies.into_iter().flatten().chain(verdicts);
    bodies
        .map(|raw| raw.bytes().map_or(0, <[u8]>::len) as u64)
        .sum()
}
