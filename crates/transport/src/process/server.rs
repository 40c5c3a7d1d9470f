//! One running server and its guard, as the proxy sees them: the pipes, the wait for its end, and the ways to end it.

use std::future::poll_fn;
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout;

use super::StopDeadlines;
use super::exit::{EndCause, ExitReport};
use super::orphans;
use super::stderr::{StderrLines, StderrReader};

/// How long the rest of stderr may take after the guard's end. Everybody who could write to it is dead by then,
/// unless the guard itself was killed.
const STDERR_REST: Duration = Duration::from_millis(250);

/// A running server. Dropping it kills the server and all it started, without waiting for that; [`stop`](Self::stop)
/// is the polite way.
#[derive(Debug)]
pub struct ServerProcess {
    /// The server's stdin, not blocking. Take it out to write; it must be dropped for the server to see the end.
    pub stdin: Option<pipe::Sender>,
    /// The server's stdout, not blocking. Take it out to read.
    pub stdout: Option<pipe::Receiver>,
    /// The server's stderr lines. Take it out to receive them; left here, they are read and dropped.
    pub stderr: Option<StderrLines>,
    guard: GuardProcess,
    reader: StderrReader,
    deadlines: StopDeadlines,
    ended: EndCause,
}

impl ServerProcess {
    pub(super) fn new(
        guard: GuardProcess,
        stdin: pipe::Sender,
        stdout: pipe::Receiver,
        stderr: pipe::Receiver,
        deadlines: StopDeadlines,
    ) -> Self {
        let (reader, stderr) = StderrReader::start(stderr);
        Self {
            stdin: Some(stdin),
            stdout: Some(stdout),
            stderr: Some(stderr),
            guard,
            reader,
            deadlines,
            ended: EndCause::ByItself,
        }
    }

    /// The guard's process id, for logs.
    pub fn guard_id(&self) -> Option<u32> {
        Some(self.guard.pid?.as_raw_pid().unsigned_abs())
    }

    /// The last lines of stderr up to now, oldest first.
    pub fn last_stderr(&self) -> Vec<String> {
        self.reader.recent()
    }

    /// Waits until the server has ended and nothing of it is left. Cancel safe, and may be called again.
    pub async fn wait(&mut self) -> ExitReport {
        let status = self.guard.wait().await;
        let _ = timeout(STDERR_REST, self.reader.finished()).await;
        self.report(status, self.reader.guard_line())
    }

    /// Stops the server: closes its stdin, then SIGTERM to everything below the guard, then [`kill`](Self::kill),
    /// each after its deadline. A stdin that was taken out has to be dropped by its owner before this.
    pub async fn stop(&mut self) -> ExitReport {
        self.stdin = None;
        self.ended = self.ended.max(EndCause::StdinClosed);
        if let Ok(report) = timeout(self.deadlines.stdin_closed, self.wait()).await {
            return report;
        }
        self.ended = self.ended.max(EndCause::Terminated);
        self.signal_guard(Signal::TERM);
        if let Ok(report) = timeout(self.deadlines.term, self.wait()).await {
            return report;
        }
        self.kill().await
    }

    /// Kills the server and everything it started, now.
    pub async fn kill(&mut self) -> ExitReport {
        self.ended = EndCause::Killed;
        self.stdin = None;
        // Closing the read end is what tells the guard. It is the guard that kills and not we, because only it can
        // reach what left the server's process group.
        self.reader.close();
        self.reader.finished().await;
        if let Ok(report) = timeout(self.deadlines.kill, self.wait()).await {
            return report;
        }
        self.signal_guard(Signal::KILL);
        match timeout(self.deadlines.kill, self.wait()).await {
            Ok(report) => report,
            Err(_) => self.report(None, None),
        }
    }

    fn report(&self, status: Option<ExitStatus>, guard_line: Option<String>) -> ExitReport {
        let ran = self.guard.ran();
        ExitReport::new(status, self.ended, ran, self.reader.recent(), guard_line)
    }

    fn signal_guard(&self, signal: Signal) {
        self.guard.signal(signal);
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The guard ends when its pipes are closed.
        self.reader.close();
    }
}

/// The guard as our child process. A task waits for its end from the start, because a guard may be killed while its server
/// lives on: then nobody guards that server, and it is killed at once.
#[derive(Debug)]
pub(super) struct GuardProcess {
    pid: Option<Pid>,
    /// Whether the process id is still the guard's. Locked while it is reaped, and while it is signalled.
    unreaped: Arc<Mutex<bool>>,
    started: Instant,
    end: watch::Receiver<Option<GuardEnd>>,
}

/// The guard was reaped, and what it may have left behind is gone.
#[derive(Debug)]
struct GuardEnd {
    status: Option<ExitStatus>,
    ran: Duration,
}

impl GuardProcess {
    /// `large_pipes` is held while its server has large pipes.
    pub(super) fn new(child: Child, large_pipes: Option<OwnedSemaphorePermit>) -> Self {
        let pid = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        let unreaped = Arc::new(Mutex::new(true));
        let started = Instant::now();
        let (ended, end) = watch::channel(None);
        let reaping = Arc::clone(&unreaped);
        tokio::spawn(async move {
            let status = reap(child, &reaping).await;
            let ran = started.elapsed();
            drop(large_pipes);
            if let Some(pid) = pid {
                orphans::sweep(pid).await;
            }
            ended.send_replace(Some(GuardEnd { status, ran }));
        });
        Self {
            pid,
            unreaped,
            started,
            end,
        }
    }

    /// Cancel safe.
    async fn wait(&mut self) -> Option<ExitStatus> {
        // There is no end if the runtime has stopped the task.
        let end = self.end.wait_for(Option::is_some).await.ok()?;
        end.as_ref()?.status
    }

    /// How long it ran, or has been running until now.
    fn ran(&self) -> Duration {
        let ran = self.end.borrow().as_ref().map(|end| end.ran);
        ran.unwrap_or_else(|| self.started.elapsed())
    }

    fn signal(&self, signal: Signal) {
        let unreaped = self.unreaped.lock().unwrap_or_else(PoisonError::into_inner);
        // A process id that was reaped may be a stranger's.
        if let (Some(pid), true) = (self.pid, *unreaped) {
            let _ = kill_process(pid, signal);
        }
    }
}

async fn reap(mut child: Child, unreaped: &Mutex<bool>) -> Option<ExitStatus> {
    let mut waiting = pin!(child.wait());
    let status = poll_fn(|cx| {
        let mut unreaped = unreaped.lock().unwrap_or_else(PoisonError::into_inner);
        let status = waiting.as_mut().poll(cx);
        *unreaped = status.is_pending();
        status
    });
    status.await.ok()
}
