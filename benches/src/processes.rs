//! Every process of a run: started in a group of its own, stopped cleanly, and gone when the run ends.
//!
//! A run that is interrupted, fails or panics must leave nothing behind, so groups are kept in one register
//! that the signal thread can empty as well. A run that is killed outright takes its own children with it
//! (`end_with_parent`), not those of others.

use std::collections::{BTreeSet, VecDeque};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};
use tokio::signal::unix::{SignalKind, signal};

/// How long a process may take to end after it is asked to.
const STOP_WITHIN: Duration = Duration::from_secs(2);
/// Lines of stderr kept for the report of a failure.
const KEPT_LINES: usize = 8;

/// Ends this process when the one that started it ends; a failure means a kernel without it and changes nothing.
pub fn end_with_parent() {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

/// The groups that are alive and the folders to remove.
#[derive(Default)]
pub struct ProcessRegister {
    state: Mutex<RegisterState>,
}

#[derive(Default)]
struct RegisterState {
    groups: BTreeSet<u32>,
    folders: Vec<PathBuf>,
    closed: bool,
}

impl ProcessRegister {
    fn state(&self) -> MutexGuard<'_, RegisterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes `folder` too when the run is interrupted.
    pub fn remember_folder(&self, folder: PathBuf) {
        self.state().folders.push(folder);
    }

    /// Kills everything and lets nothing new start.
    fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        for group in std::mem::take(&mut state.groups) {
            signal_group(group, Signal::KILL);
        }
        for folder in std::mem::take(&mut state.folders) {
            // Best effort: we are on our way out.
            let _ = std::fs::remove_dir_all(folder);
        }
    }

    /// Cleans up on Ctrl-C, SIGTERM and SIGHUP.
    pub fn close_on_signals(self: &Arc<Self>) -> Result<()> {
        let register = Arc::clone(self);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                let outcome: std::io::Result<()> = runtime.block_on(async {
                    let mut interrupt = signal(SignalKind::interrupt())?;
                    let mut terminate = signal(SignalKind::terminate())?;
                    let mut hangup = signal(SignalKind::hangup())?;
                    tokio::select! {
                        _ = interrupt.recv() => {}
                        _ = terminate.recv() => {}
                        _ = hangup.recv() => {}
                    }
                    Ok(())
                });
                if outcome.is_ok() {
                    register.close();
                    std::process::exit(130);
                }
            })?;
        Ok(())
    }
}

/// A process of this run with its group; stopped when dropped.
pub struct BenchProcess {
    pub child: Child,
    register: Arc<ProcessRegister>,
    lines: Arc<Mutex<VecDeque<String>>>,
    first_line: Receiver<String>,
}

impl BenchProcess {
    /// Starts `command` in a group of its own, its stderr read from the start.
    pub fn start(register: &Arc<ProcessRegister>, mut command: Command) -> Result<BenchProcess> {
        command.process_group(0).stderr(Stdio::piped());
        // Held over the start, so that no process can slip in between a signal and the kill.
        let mut state = register.state();
        if state.closed {
            bail!("the run has been interrupted");
        }
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {:?}", command.get_program()))?;
        state.groups.insert(child.id());
        drop(state);
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let (sender, first_line) = sync_channel(1);
        if let Some(stderr) = child.stderr.take() {
            let lines = Arc::clone(&lines);
            thread::spawn(move || keep_lines(stderr, &lines, &sender));
        }
        Ok(BenchProcess {
            child,
            register: Arc::clone(register),
            lines,
            first_line,
        })
    }

    /// The URL of the line `listening on URL`.
    pub fn listening_on(&self) -> Result<String> {
        match self.first_line.recv_timeout(Duration::from_secs(10)) {
            Ok(line) => match line.strip_prefix("listening on ") {
                Some(url) => Ok(url.trim().to_owned()),
                None => bail!("its first line on stderr is {line:?}"),
            },
            Err(_) => bail!("it does not say `listening on URL`{}", self.last_words()),
        }
    }

    /// The last lines of its stderr, for a message.
    pub fn last_words(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| format!("\n    {line}")).collect()
    }

    /// Ends it by force after `limit`, unless the returned guard is dropped before: a blocking read then sees the end.
    pub fn end_after(&self, limit: Duration) -> SyncSender<()> {
        let (guard, dropped) = sync_channel::<()>(0);
        let group = self.child.id();
        thread::spawn(move || {
            if dropped.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                signal_group(group, Signal::KILL);
            }
        });
        guard
    }
}

impl Drop for BenchProcess {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        drop(self.child.stdout.take());
        let group = self.child.id();
        signal_group(group, Signal::TERM);
        let deadline = Instant::now() + STOP_WITHIN;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        signal_group(group, Signal::KILL);
        // It has been killed: this wait is short.
        let _ = self.child.wait();
        self.register.state().groups.remove(&group);
    }
}

fn keep_lines(stderr: ChildStderr, lines: &Mutex<VecDeque<String>>, first: &SyncSender<String>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        // Only the first finds room or a listener.
        let _ = first.try_send(line.clone());
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

fn signal_group(group: u32, signal: Signal) {
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        // A group that has ended already is what we want.
        let _ = kill_process_group(group, signal);
    }
}
