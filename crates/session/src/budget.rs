//! How long a filter or a change may compute about one message, and what becomes of one that takes longer.
//!
//! Time is that of the computing thread, not of the clock on the wall: on a busy machine a thread may wait for longer than a
//! whole budget, and a rule that does little must not fail for that. Asking for it is a call into the kernel, so the
//! clock on the wall is looked at first: it never shows less.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::JqError;

/// How long a filter or a change may compute about one message. Who asks chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Computing time of the thread.
    pub time: Duration,
}

impl Budget {
    /// For messages on their way: all other traffic waits for the same thread.
    pub const LIVE: Budget = Budget {
        time: Duration::from_millis(20),
    };
    /// For records and viewers, where nobody else waits.
    pub const OFFLINE: Budget = Budget {
        time: Duration::from_millis(500),
    };

    /// What is left of it after `used`.
    #[must_use]
    pub fn less(self, used: Duration) -> Budget {
        Budget {
            time: self.time.saturating_sub(used),
        }
    }
}

/// Measures the computing time of the thread that started it.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Duration);

impl Stopwatch {
    /// From now on.
    pub fn start() -> Stopwatch {
        Stopwatch(thread_time())
    }

    /// The computing time since the start.
    pub fn elapsed(self) -> Duration {
        thread_time().saturating_sub(self.0)
    }
}

fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    // The kernel gives neither negative seconds nor more than a second of nanoseconds.
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// After this many overruns in a row there is a pause.
const IN_A_ROW: u8 = 3;
/// How long something that is too slow is not tried then. One try costs a whole budget, which is little in this time.
const PAUSE: Duration = Duration::from_secs(10);

/// Keeps a filter or a change that is always too slow from using up its budget for every message.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    /// Overruns in a row.
    overruns: AtomicU8,
    last: Mutex<Option<Instant>>,
    /// It seemed slow by the clock on the wall, so from now on it is measured.
    suspect: AtomicBool,
}

impl Patience {
    /// Runs `work`, unless there is a pause now.
    pub(crate) fn spend<T, E: From<JqError>>(
        &self,
        work: impl FnOnce() -> Result<T, E>,
        is_overrun: impl FnOnce(&E) -> bool,
    ) -> Result<T, E> {
        if self.overruns.load(Ordering::Relaxed) >= IN_A_ROW && self.pauses() {
            return Err(JqError::GivenUp.into());
        }
        let result = work();
        if let Err(error) = &result
            && is_overrun(error)
        {
            let overruns = self.overruns.load(Ordering::Relaxed);
            self.overruns
                .store(overruns.saturating_add(1), Ordering::Relaxed);
            *self.last() = Some(Instant::now());
        } else if self.overruns.load(Ordering::Relaxed) > 0 {
            self.overruns.store(0, Ordering::Relaxed);
        }
        result
    }

    fn pauses(&self) -> bool {
        self.last().is_some_and(|last| last.elapsed() < PAUSE)
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a search over `length` bytes that cannot be interrupted. `try_on` searches only the first bytes, as many as it is
    /// told; by that it is seen in advance whether the whole would take too long.
    pub(crate) fn search(
        &self,
        budget: Budget,
        length: usize,
        try_on: impl Fn(usize) -> bool,
        search: impl FnOnce() -> bool,
    ) -> Result<bool, JqError> {
        if !would_end(budget.time, length, try_on) {
            return Err(JqError::TooSlow(budget));
        }
        let watch = self.suspect.load(Ordering::Relaxed).then(Stopwatch::start);
        let begun = Instant::now();
        let found = search();
        if begun.elapsed() <= budget.time {
            return Ok(found);
        }
        match watch {
            Some(watch) if watch.elapsed() > budget.time => Err(JqError::TooSlow(budget)),
            Some(_) => Ok(found),
            None => {
                self.suspect.store(true, Ordering::Relaxed);
                Ok(found)
            }
        }
    }
}

/// What is shorter is searched without a trial.
const FIRST_TRIAL: usize = 1 << 10;
/// Each trial is longer than the one before by this factor.
const GROWTH: usize = 4;

/// Whether work that takes time in proportion to its input, of `length` bytes, would end in time. `try_on` does it with the
/// first bytes, as many as it is told; what it finds there is not looked at. Together that is a third of the whole at most.
pub(crate) fn would_end(time: Duration, length: usize, try_on: impl Fn(usize) -> bool) -> bool {
    // All trials before a step take a third of it again.
    let most = time.mul_f64(0.75);
    let mut tried = FIRST_TRIAL;
    while tried < length {
        let next = length.min(tried.saturating_mul(GROWTH));
        let grown = |took: Duration| took.mul_f64(next as f64 / tried as f64);
        let begun = Instant::now();
        black_box(try_on(tried));
        if grown(begun.elapsed()) > most {
            // It may have had to wait for the processor. Then a second trial, which is measured, is quicker.
            let watch = Stopwatch::start();
            black_box(try_on(tried));
            if grown(watch.elapsed()) > most {
                return false;
            }
        }
        tried = tried.saturating_mul(GROWTH);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compute(time: Duration) {
        let watch = Stopwatch::start();
        while watch.elapsed() < time {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn waiting_is_not_computing() {
        let (watch, wall) = (Stopwatch::start(), std::time::Instant::now());
        std::thread::sleep(Duration::from_millis(30));
        assert!(watch.elapsed() < wall.elapsed() / 2);
    }

    #[test]
    fn what_would_take_too_long_is_seen_early() {
        let per_kib = |each: Duration| {
            let tried = std::cell::Cell::new(0);
            let ends = would_end(Budget::LIVE.time, 1 << 20, |length| {
                tried.set(tried.get() + length);
                compute(each * u32::try_from(length >> 10).unwrap());
                true
            });
            (ends, tried.get())
        };
        // A whole second.
        let (ends, tried) = per_kib(Duration::from_millis(1));
        assert!(!ends && tried <= 10 << 10, "{tried}");
        let (ends, tried) = per_kib(Duration::ZERO);
        assert!(ends && tried <= 400 << 10, "{tried}");
    }

    #[test]
    fn three_overruns_in_a_row_make_a_pause() {
        let patience = Patience::default();
        let run = |result: Result<(), JqError>| {
            patience.spend(|| result, |error| matches!(error, JqError::TooSlow(_)))
        };
        let slow = || Err(JqError::TooSlow(Budget::LIVE));
        for _ in 0..5 {
            assert_eq!(run(slow()), slow());
            assert_eq!(run(slow()), slow());
            assert_eq!(run(Ok(())), Ok(()));
        }
        for _ in 0..3 {
            assert_eq!(run(slow()), slow());
        }
        assert_eq!(run(Ok(())), Err(JqError::GivenUp));
        // After the pause it is tried again, and once more only.
        *patience.last() = Instant::now().checked_sub(PAUSE);
        assert_eq!(run(slow()), slow());
        assert_eq!(run(Ok(())), Err(JqError::GivenUp));
        *patience.last() = Instant::now().checked_sub(PAUSE);
        assert_eq!(run(Ok(())), Ok(()));
        assert_eq!(run(slow()), slow());
    }

    #[test]
    fn a_search_is_measured_once_it_seemed_slow() {
        let patience = Patience::default();
        let search = |time| {
            patience.search(
                Budget::LIVE,
                10,
                |_| true,
                || {
                    compute(time);
                    true
                },
            )
        };
        let slow = Duration::from_millis(25);
        assert_eq!(search(slow), Ok(true), "the machine may have been busy");
        assert_eq!(search(slow), Err(JqError::TooSlow(Budget::LIVE)));
        assert_eq!(search(Duration::ZERO), Ok(true));
    }
}
