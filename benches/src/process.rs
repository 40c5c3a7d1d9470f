//! The processes of a run, each stopped when it is dropped.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

/// How long a process may take to listen.
const START_WITHIN: Duration = Duration::from_secs(15);
/// How long a process may take to end after it is asked to.
const STOP_WITHIN: Duration = Duration::from_secs(2);
/// Lines of stderr kept for the report of a failure.
const KEPT_LINES: usize = 8;

/// Ends this process when the one that started it ends; a failure means a kernel without it and changes nothing.
pub fn end_with_parent() {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

/// A process whose stderr is read from the start.
pub struct BenchProcess {
    pub child: Child,
    last_lines: Arc<Mutex<VecDeque<String>>>,
    first_line: Receiver<String>,
}

impl BenchProcess {
    /// Starts a program that listens: nothing is written to it or read from it.
    pub fn start_listener(mut command: Command) -> Result<BenchProcess> {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        BenchProcess::start(command)
    }

    /// Starts a program that speaks MCP on its stdin and stdout.
    pub fn start_on_pipes(mut command: Command) -> Result<BenchProcess> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        BenchProcess::start(command)
    }

    fn start(mut command: Command) -> Result<BenchProcess> {
        command.stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {:?}", command.get_program()))?;
        let last_lines = Arc::new(Mutex::new(VecDeque::new()));
        let (sender, first_line) = sync_channel(1);
        if let Some(stderr) = child.stderr.take() {
            let lines = Arc::clone(&last_lines);
            thread::spawn(move || keep_lines(stderr, &lines, &sender));
        }
        Ok(BenchProcess {
            child,
            last_lines,
            first_line,
        })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The address and path of its line `listening on URL`.
    pub fn listening_on(&self) -> Result<(SocketAddr, String)> {
        let Ok(line) = self.first_line.recv_timeout(START_WITHIN) else {
            bail!("it does not say `listening on URL`{}", self.last_lines());
        };
        let (_, rest) = line
            .strip_prefix("listening on ")
            .and_then(|url| url.trim().split_once("://"))
            .with_context(|| format!("its first line on stderr is {line:?}"))?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let address = host
            .parse()
            .with_context(|| format!("{host} is not an address and port"))?;
        Ok((address, format!("/{path}")))
    }

    /// Waits until something listens on a port that it was told to take.
    pub fn wait_for_port(&mut self, port: u16) -> Result<SocketAddr> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let deadline = Instant::now() + START_WITHIN;
        while TcpStream::connect(address).is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended with {status}{}", self.last_lines());
            }
            if Instant::now() > deadline {
                bail!("it does not listen on {address}{}", self.last_lines());
            }
            thread::sleep(Duration::from_micros(200));
        }
        Ok(address)
    }

    /// The last lines of its stderr, for a message.
    pub fn last_lines(&self) -> String {
        let lines = self
            .last_lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| format!("\n    {line}")).collect()
    }
}

impl Drop for BenchProcess {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        drop(self.child.stdout.take());
        if let Some(process) = i32::try_from(self.id()).ok().and_then(Pid::from_raw) {
            // A process that has ended already is what we want.
            let _ = kill_process(process, Signal::TERM);
        }
        let deadline = Instant::now() + STOP_WITHIN;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        let _ = self.child.kill();
        // It has been killed: this wait is short.
        let _ = self.child.wait();
    }
}

/// A port for a program that cannot pick one itself. It may be taken in between; the start then fails and says so.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn keep_lines(stderr: ChildStderr, lines: &Mutex<VecDeque<String>>, first: &SyncSender<String>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        // Only the first finds room or a receiver.
        let _ = first.try_send(line.clone());
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}
