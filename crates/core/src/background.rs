//! Work on messages of megabytes, which takes milliseconds, apart from that on small ones.
//!
//! A thread that computes for milliseconds delays others even where it blocks none of them: if all processors are busy, the
//! system lets it finish its time slice before a thread that has just got a small message runs. One of lower priority is
//! interrupted at once.

use std::panic::resume_unwind;
use std::thread;

use tokio::runtime::{Handle, RuntimeFlavor};

/// The nice value of background work. If all processors are busy, it gets a quarter of one.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

/// Does something that takes milliseconds, on a runtime of several threads without keeping its other tasks waiting. A runtime
/// of one thread waits in any case.
pub fn run_in_background<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(|| run_at_low_priority(work)),
        _ => work(),
    }
}

/// A thread cannot get its priority back, so each piece of work has one of its own. It takes a fraction of the time of the work.
fn run_at_low_priority<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let mut work = Some(work);
    let done = thread::scope(|scope| {
        let run = || {
            lower_priority();
            work.take().map(|work| work())
        };
        let thread = thread::Builder::new().name("background".to_owned());
        let running = thread.spawn_scoped(scope, run).ok()?;
        running.join().unwrap_or_else(|panic| resume_unwind(panic))
    });
    match (done, work) {
        (Some(done), _) => done,
        (None, Some(work)) => work(),
        // The work is taken only by the thread that returns what came of it.
        (None, None) => unreachable!("background work was lost"),
    }
}

/// That of the calling thread alone, which only Linux can do. Without it the work is done all the same.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, NICE);
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn name_of_thread() -> Option<String> {
        thread::current().name().map(str::to_owned)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn work_has_a_thread_of_its_own_on_several() {
        assert_eq!(
            run_in_background(name_of_thread).as_deref(),
            Some("background")
        );
    }

    #[tokio::test]
    async fn work_stays_on_the_only_thread() {
        assert_eq!(run_in_background(name_of_thread), name_of_thread());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test(flavor = "multi_thread")]
    async fn only_the_thread_of_the_work_has_a_lower_priority() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let before = nice();
        assert_eq!(run_in_background(nice), NICE.max(before));
        assert_eq!(nice(), before);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_panic_reaches_the_caller() {
        let work = || run_in_background(|| panic!("expected"));
        let panic = catch_unwind(AssertUnwindSafe(work)).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"expected"));
    }
}
