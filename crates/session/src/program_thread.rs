//! Programs of the proxy's owner, each run on a thread of its own while its caller waits until a deadline.
//!
//! Neither jq nor a regular expression can be interrupted. A program that misses its deadline is left to its thread and switched off,
//! so that it costs one deadline and one thread at most. What it does to the memory until it ends is not limited.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use crate::JqError;

/// How long the traffic may wait for a program, whatever the size of its message.
const DEADLINE: Duration = Duration::from_secs(1);
/// A deadline has another second for each of these.
const BYTES_PER_SECOND: usize = 8 << 20;
/// Programs of the whole process that may be running on after their deadline.
const MOST_ABANDONED: usize = 16;
/// Enough for a program of the most tokens, compiled without optimisation. Only what is used of it takes memory.
pub(crate) const STACK: usize = 64 << 20;

/// Counts for the whole process, because what it limits is threads of the process.
static ABANDONED: AtomicUsize = AtomicUsize::new(0);

/// Runs one program, for one message after another, until it misses a deadline.
#[derive(Debug, Default)]
pub(crate) struct ProgramThread {
    switched_off: AtomicBool,
}

/// Whether the caller of a program still waits for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitingCaller(Arc<AtomicBool>);

impl WaitingCaller {
    /// Whether it has stopped waiting.
    pub(crate) fn has_left(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The caller or the program has finished. Returns whether the other had before.
    fn finish(&self) -> bool {
        self.0.swap(true, Ordering::AcqRel)
    }
}

impl ProgramThread {
    /// Runs `work`, which looks at `size` bytes.
    ///
    /// # Errors
    /// When it misses its deadline now or did so before, or cannot be run.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        size: usize,
        work: impl FnOnce(&WaitingCaller) -> T + Send + 'static,
    ) -> Result<T, JqError> {
        if self.switched_off.load(Ordering::Relaxed) {
            return Err(JqError::SwitchedOff);
        }
        if ABANDONED.load(Ordering::Relaxed) >= MOST_ABANDONED {
            return Err(self.switch_off());
        }
        let caller = WaitingCaller::default();
        let seen = caller.clone();
        let (tell, told) = sync_channel(1);
        std::thread::Builder::new()
            .name("program".to_owned())
            .stack_size(STACK)
            .spawn(move || {
                let result = work(&seen);
                if seen.finish() {
                    ABANDONED.fetch_sub(1, Ordering::Relaxed);
                }
                // The caller may have left.
                let _ = tell.send(result);
            })
            .map_err(|error| JqError::Failed(format!("no thread for the program: {error}")))?;
        let more = u32::try_from(size / BYTES_PER_SECOND).unwrap_or(u32::MAX);
        let deadline = DEADLINE.saturating_add(Duration::from_secs(more.into()));
        match told.recv_timeout(deadline) {
            Ok(result) => Ok(result),
            Err(RecvTimeoutError::Disconnected) => {
                Err(JqError::Failed("the program crashed".to_owned()))
            }
            Err(RecvTimeoutError::Timeout) => {
                ABANDONED.fetch_add(1, Ordering::Relaxed);
                if caller.finish() {
                    // It has ended just now.
                    ABANDONED.fetch_sub(1, Ordering::Relaxed);
                }
                Err(self.switch_off())
            }
        }
    }

    fn switch_off(&self) -> JqError {
        self.switched_off.store(true, Ordering::Relaxed);
        JqError::TooSlow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_misses_its_deadline_is_switched_off() {
        let program = ProgramThread::default();
        assert_eq!(program.run(0, |_| 7), Ok(7));
        let endless = |caller: &WaitingCaller| {
            while !caller.has_left() {
                std::thread::yield_now();
            }
        };
        assert_eq!(program.run(0, endless), Err(JqError::TooSlow));
        assert_eq!(program.run(0, |_| ()), Err(JqError::SwitchedOff));
        assert_eq!(ProgramThread::default().run(0, |_| 8), Ok(8));
    }

    #[test]
    fn a_crash_is_an_error() {
        let crash = |_: &WaitingCaller| -> () { panic!("a program crashes in this test") };
        let result = ProgramThread::default().run(0, crash);
        assert!(matches!(result, Err(JqError::Failed(_))), "{result:?}");
    }
}
