//! The fallback for the day a guard itself is killed: what it guarded then falls to the proxy, which kills it.
//!
//! This works on Linux in a program that called [`become_subreaper`]; elsewhere the orphans only get the end of
//! their stdin. A guard is small and deaf to everything but SIGKILL, so this day is rare: somebody means it, or the
//! machine is out of memory.
//!
//! Only processes with the mark of the dead guard are killed (`mark.rs`). Other children of the program are not ours to
//! touch: its own helpers, and the guards of other supervisors.

use std::io;
use std::time::Duration;

use rustix::process::{self, Pid, Signal, WaitOptions};
use tokio::time::{Instant, sleep};

use super::mark::GuardMark;
use super::tree;

/// How long a sweep waits for killed orphans to be gone.
const SWEEP_TIME: Duration = Duration::from_secs(1);

/// The pause between two looks; nothing wakes us when an orphan has died.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Makes the running program the parent of what a killed guard leaves behind. Call it once, early in `main`.
///
/// From then on every [`Supervisor`](super::Supervisor) of this program kills what its killed guards leave behind, and
/// no other process.
///
/// # Errors
/// When the kernel refuses; the supervisor works without it.
pub fn become_subreaper() -> io::Result<()> {
    tree::adopt_orphans()
}

/// Kills and reaps what a guard left behind that was reaped itself.
pub(super) async fn sweep(guard: Pid) {
    if !is_subreaper() {
        return;
    }
    let deadline = Instant::now() + SWEEP_TIME;
    while kill_marked(guard) > 0 && Instant::now() < deadline {
        sleep(LOOK_AGAIN).await;
    }
}

/// Kills and reaps every child with the mark of `guard`; returns how many it found. The children of one that died at
/// once are ours only now: a sweep is over when none was found.
///
/// Nobody else reaps a marked child, so its process id cannot have passed to a stranger when it is killed. The
/// guard's own process id can: a new guard may have it by now, and the same mark.
fn kill_marked(guard: Pid) -> usize {
    let mark = GuardMark::of_guard(guard);
    tree::children(process::getpid())
        .into_iter()
        .filter(|pid| *pid != guard && mark.is_on(*pid))
        .map(|pid| {
            let _ = process::kill_process(pid, Signal::KILL);
            let _ = process::waitpid(Some(pid), WaitOptions::NOHANG);
        })
        .count()
}

fn is_subreaper() -> bool {
    #[cfg(target_os = "linux")]
    return matches!(process::child_subreaper(), Ok(Some(_)));
    #[cfg(not(target_os = "linux"))]
    return false;
}
