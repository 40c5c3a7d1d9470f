//! A program that a test talks with line by line: what it writes is read from the start and waited for within a limit.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Longer than any answer takes on a busy machine; a client of the SDKs gives up before.
const LIMIT: Duration = Duration::from_secs(60);

/// A running program with its three pipes; killed with all that it started when dropped.
pub struct PipedProgram {
    child: Child,
    stdin: Option<ChildStdin>,
    pub stdout: PipeLines,
    pub stderr: PipeLines,
}

impl PipedProgram {
    pub fn start(command: &mut Command) -> PipedProgram {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("starting {command:?}: {error}"));
        PipedProgram {
            stdin: child.stdin.take(),
            stdout: PipeLines::of(child.stdout.take().expect("stdout is a pipe")),
            stderr: PipeLines::of(child.stderr.take().expect("stderr is a pipe")),
            child,
        }
    }

    /// Writes a line to its stdin.
    pub fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("its stdin is open");
        writeln!(stdin, "{line}").expect("it reads its stdin");
    }

    /// Closes its stdin and waits until it has closed its stdout; returns the lines that came last.
    pub fn end(&mut self) -> Vec<String> {
        self.close_stdin();
        std::iter::from_fn(|| self.stdout.next()).collect()
    }

    /// Closes its stdin.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for its end, and says whether that was a success.
    pub fn succeeded(&mut self) -> bool {
        self.child.wait().expect("it has ended").success()
    }

    /// SIGKILL, for this one process.
    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it has ended");
    }
}

impl Drop for PipedProgram {
    fn drop(&mut self) {
        if thread::panicking() {
            let (stdout, stderr) = (self.stdout.rest(), self.stderr.rest());
            eprintln!(
                "--- process {}\n--- stdout\n{stdout}\n--- stderr\n{stderr}",
                self.child.id()
            );
        }
        let group = format!("-{}", self.child.id());
        let kill = Command::new("kill")
            .args(["-s", "KILL", "--", &group])
            .stderr(Stdio::null())
            .status();
        // Nothing is left of a program that has ended by itself, and then `kill` says so.
        let _ = kill;
        let _ = self.child.wait();
    }
}

/// The lines of one pipe.
pub struct PipeLines(Receiver<String>);

impl PipeLines {
    fn of(pipe: impl Read + Send + 'static) -> PipeLines {
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                // Nobody listens any more when the test is over; reading goes on all the same.
                let _ = sender.send(line);
            }
        });
        PipeLines(lines)
    }

    /// The next line; `None` at the end. Panics if neither comes within the limit.
    pub fn next(&self) -> Option<String> {
        match self.0.recv_timeout(LIMIT) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no line came within {LIMIT:?}"),
        }
    }

    /// Waits for a line with `text` in it and returns what follows.
    pub fn wait_for(&self, text: &str) -> String {
        let mut seen = Vec::new();
        while let Some(line) = self.next() {
            if let Some((_, rest)) = line.split_once(text) {
                return rest.trim().to_owned();
            }
            seen.push(line);
        }
        panic!("it ended without `{text}`:\n{}", seen.join("\n"));
    }

    fn rest(&self) -> String {
        self.0.try_iter().collect::<Vec<_>>().join("\n")
    }
}
