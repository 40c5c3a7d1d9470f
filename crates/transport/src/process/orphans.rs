//! The fallback for the day a guard itself is killed: what it guarded then falls to the proxy, which kills it.
//!
//! This works on Linux in a program that called [`become_subreaper`]; elsewhere the orphans only get the end of
//! their stdin. A guard is small and deaf to everything but SIGKILL, so this day is rare: somebody means it, or the
//! machine is out of memory.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{self, Pid, Signal, WaitOptions};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::tree;

/// How long a sweep waits for killed orphans to be gone.
const SWEEP_TIME: Duration = Duration::from_secs(1);

/// The pause between two looks; nothing wakes us when an orphan has died.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Makes the running program the parent of what a killed guard leaves behind. Call it once, early in `main`.
///
/// From then on [`Supervisor`](super::Supervisor) treats every child of this program as such an orphan that is
/// neither a living guard of its own nor in the program's own process group. So a program that calls this has one
/// supervisor (and clones of it), and starts other children in its own group, as `Command` does by default.
///
/// # Errors
/// When the kernel refuses; the supervisor works without it.
pub fn become_subreaper() -> io::Result<()> {
    tree::adopt_orphans()
}

/// The guards that are not reaped yet. Everything that changes our set of children holds the lock.
#[derive(Clone, Debug, Default)]
pub(super) struct LivingGuards(Arc<Mutex<BTreeSet<i32>>>);

impl LivingGuards {
    /// Starts a guard. Between its birth and its entry here no sweep can take it for an orphan.
    pub(super) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let mut living = self.lock();
        let child = command.spawn()?;
        living.extend(child.id().and_then(|id| i32::try_from(id).ok()));
        Ok(child)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Forgets a guard that was reaped, and kills what it left behind.
    pub(super) async fn bury(&self, guard: Option<Pid>) {
        if let Some(guard) = guard {
            self.lock().remove(&guard.as_raw_pid());
        }
        let deadline = Instant::now() + SWEEP_TIME;
        while self.sweep() > 0 && Instant::now() < deadline {
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Kills and reaps every orphan; returns how many it found. The children of one that died at once are ours only
    /// now: a sweep is the last when it found none.
    fn sweep(&self) -> usize {
        if !is_subreaper() {
            return 0;
        }
        let living = self.lock();
        let own_group = process::getpgrp();
        tree::children(process::getpid())
            .into_iter()
            .filter(|pid| !living.contains(&pid.as_raw_pid()))
            .filter(|pid| process::getpgid(Some(*pid)).is_ok_and(|group| group != own_group))
            .map(|pid| {
                let _ = process::kill_process(pid, Signal::KILL);
                let _ = process::waitpid(Some(pid), WaitOptions::NOHANG);
            })
            .count()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<i32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_subreaper() -> bool {
    #[cfg(target_os = "linux")]
    return matches!(process::child_subreaper(), Ok(Some(_)));
    #[cfg(not(target_os = "linux"))]
    return false;
}
