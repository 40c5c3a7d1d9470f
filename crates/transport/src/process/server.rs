//! One running server and its guard, as the proxy sees them: the pipes, the wait for its end, and the ways to end it.

use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::sync::OwnedSemaphorePermit;
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
    /// `None` only after the drop.
    guard: Option<GuardProcess>,
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
            guard: Some(guard),
            reader,
            deadlines,
            ended: EndCause::ByItself,
        }
    }

    /// The guard's process id, for logs.
    pub fn guard_id(&self) -> Option<u32> {
        Some(self.guard.as_ref()?.pid?.as_raw_pid().unsigned_abs())
    }

    /// The last lines of stderr up to now, oldest first.
    pub fn last_stderr(&self) -> Vec<String> {
        self.reader.recent()
    }

    /// Waits until the server has ended and nothing of it is left. Cancel safe, and may be called again.
    pub async fn wait(&mut self) -> ExitReport {
        let status = match &mut self.guard {
            Some(guard) => guard.wait().await,
            None => None,
        };
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
        let ran = self
            .guard
            .as_ref()
            .map(GuardProcess::ran)
            .unwrap_or_default();
        ExitReport::new(status, self.ended, ran, self.reader.recent(), guard_line)
    }

    fn signal_guard(&self, signal: Signal) {
        if let Some(guard) = &self.guard {
            guard.signal(signal);
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.reader.close();
        // The pipes are closed, so the guard ends by itself; somebody still has to reap it.
        if let (Some(mut guard), Ok(runtime)) =
            (self.guard.take(), tokio::runtime::Handle::try_current())
            && !guard.buried
        {
            runtime.spawn(async move { guard.wait().await });
        }
    }
}

/// The guard as our child process.
#[derive(Debug)]
pub(super) struct GuardProcess {
    child: Child,
    pid: Option<Pid>,
    /// Held while its server has large pipes.
    large_pipes: Option<OwnedSemaphorePermit>,
    started: Instant,
    /// How long it ran, once it was reaped.
    ran: Option<Duration>,
    /// Reaped, and what it may have left behind is gone.
    buried: bool,
}

impl GuardProcess {
    pub(super) fn new(child: Child, large_pipes: Option<OwnedSemaphorePermit>) -> Self {
        let pid = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        Self {
            child,
            pid,
            large_pipes,
            started: Instant::now(),
            ran: None,
            buried: false,
        }
    }

    /// Cancel safe: the child remembers its status, and a burial can begin again.
    async fn wait(&mut self) -> Option<ExitStatus> {
        let status = self.child.wait().await.ok();
        self.ran.get_or_insert_with(|| self.started.elapsed());
        self.large_pipes = None;
        if !self.buried {
            if let Some(pid) = self.pid {
                orphans::sweep(pid).await;
            }
            self.buried = true;
        }
        status
    }

    /// How long it ran, or has been running until now.
    fn ran(&self) -> Duration {
        self.ran.unwrap_or_else(|| self.started.elapsed())
    }

    fn signal(&self, signal: Signal) {
        // `id` is `None` once the guard is reaped, so the signal cannot hit a stranger.
        if let (Some(pid), Some(_)) = (self.pid, self.child.id()) {
            let _ = kill_process(pid, signal);
        }
    }
}
