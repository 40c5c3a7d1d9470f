//! How often a rule or a breakpoint was too slow for the messages on their way, and when that is worth a note.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The least time between two notes about one rule or breakpoint: one that is too slow for every message would fill
/// the record.
const NOTE_PAUSE: Duration = Duration::from_secs(10);

/// Counts the messages that one rule or breakpoint was too slow for.
#[derive(Debug, Default)]
pub(crate) struct Overruns {
    count: AtomicU64,
    noted: Mutex<Option<Instant>>,
}

impl Overruns {
    /// One more.
    pub(crate) fn add(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// How many so far.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether a note should be written now. If so, the next is due after a pause.
    pub(crate) fn is_note_due(&self) -> bool {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let due = noted.is_none_or(|noted| noted.elapsed() >= NOTE_PAUSE);
        if due {
            *noted = Some(Instant::now());
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_due_once_in_a_while() {
        let overruns = Overruns::default();
        assert!(overruns.is_note_due());
        assert!(!overruns.is_note_due());
        *overruns.noted.lock().unwrap() = Instant::now().checked_sub(NOTE_PAUSE);
        assert!(overruns.is_note_due());
        assert!(!overruns.is_note_due());
    }
}
