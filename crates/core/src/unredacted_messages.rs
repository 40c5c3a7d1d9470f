//! The newest messages to a server whose values the record hides, as they were sent. A replay needs them, and they are in
//! memory only.

use std::collections::VecDeque;

use bytes::Bytes;

/// Messages and bytes that are kept.
const MOST_MESSAGES: usize = 1_000;
const MOST_BYTES: usize = 4 << 20;

/// Messages by their numbers, oldest first.
#[derive(Default)]
pub(crate) struct UnredactedMessages {
    kept: VecDeque<(u64, Bytes)>,
    bytes: usize,
}

impl UnredactedMessages {
    pub(crate) fn keep(&mut self, sequence: u64, raw: &[u8]) {
        if raw.len() > MOST_BYTES {
            return;
        }
        self.bytes += raw.len();
        // A slice would keep all that was read with it.
        self.kept.push_back((sequence, Bytes::copy_from_slice(raw)));
        while self.kept.len() > MOST_MESSAGES || self.bytes > MOST_BYTES {
            let oldest = self.kept.pop_front();
            self.bytes -= oldest.map_or(0, |(_, raw)| raw.len());
        }
    }

    pub(crate) fn get(&self, sequence: u64) -> Option<Bytes> {
        let mut kept = self.kept.iter();
        let found = kept.find(|(number, _)| *number == sequence);
        found.map(|(_, raw)| raw.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_by_count_and_by_bytes() {
        let mut messages = UnredactedMessages::default();
        for sequence in 1..=MOST_MESSAGES as u64 + 1 {
            messages.keep(sequence, b"{}");
        }
        assert!(messages.get(1).is_none() && messages.get(2).is_some());
        messages.keep(5_000, &vec![b' '; MOST_BYTES]);
        assert_eq!((messages.kept.len(), messages.bytes), (1, MOST_BYTES));
        messages.keep(5_001, &vec![b' '; MOST_BYTES + 1]);
        assert!(messages.get(5_000).is_some() && messages.get(5_001).is_none());
    }
}
