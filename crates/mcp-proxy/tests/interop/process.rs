//! Other programs as the tests need them: run to the end within a limit, or kept running until dropped.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Runs a program to its end. A program that does not end within the limit is killed with all that it started.
pub fn finish(command: &mut Command, limit: Duration) -> Output {
    finish_after(command, Stdio::null(), limit)
}

/// The same for a program that reads its stdin.
pub fn finish_after(command: &mut Command, stdin: impl Into<Stdio>, limit: Duration) -> Output {
    command
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let child = command
        .spawn()
        .unwrap_or_else(|error| panic!("starting {command:?}: {error}"));
    let group = child.id();
    let (sender, receiver) = channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    match receiver.recv_timeout(limit) {
        Ok(output) => output.expect("its output can be read"),
        Err(_) => {
            signal("KILL", &format!("-{group}"));
            let output = receiver
                .recv()
                .expect("the killed program ends")
                .expect("its output can be read");
            panic!(
                "{command:?} did not end within {limit:?}\n{}",
                said(&output)
            );
        }
    }
}

/// What a program wrote, for a failure's text.
pub fn said(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    format!(
        "{}\n--- stdout\n{stdout}\n--- stderr\n{stderr}",
        output.status
    )
}

/// A program that runs until this is dropped.
pub struct RunningProgram {
    child: Child,
    lines: Receiver<String>,
    /// The lines that were taken out of `lines`.
    seen: RefCell<Vec<String>>,
}

impl RunningProgram {
    /// Starts a server; what it writes on stdout and stderr is read from then on, so that it never waits for us.
    pub fn start(command: &mut Command) -> RunningProgram {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("starting {command:?}: {error}"));
        let (sender, lines) = channel();
        let stdout = child
            .stdout
            .take()
            .map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
        let stderr = child
            .stderr
            .take()
            .map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
        for pipe in [stdout, stderr].into_iter().flatten() {
            let sender = sender.clone();
            thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    // Nobody listens once the wanted line was seen; reading goes on all the same.
                    let _ = sender.send(line);
                }
            });
        }
        RunningProgram {
            child,
            lines,
            seen: RefCell::default(),
        }
    }

    /// Waits for a line with `text` in it and returns what follows.
    pub fn wait_for(&self, text: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("no line with `{text}` came; instead:\n{}", self.said());
            };
            self.seen.borrow_mut().push(line.clone());
            if let Some((_, rest)) = line.split_once(text) {
                return rest.trim().to_owned();
            }
        }
    }

    /// All that it has written so far.
    pub fn said(&self) -> String {
        let mut seen = self.seen.borrow_mut();
        seen.extend(self.lines.try_iter());
        seen.join("\n")
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it with everything that it started and that did not leave its process group.
    pub fn kill(&self) {
        signal("KILL", &format!("-{}", self.child.id()));
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        if thread::panicking() {
            let state = self.child.try_wait();
            eprintln!(
                "--- process {}, ended: {state:?}, said:\n{}",
                self.child.id(),
                self.said()
            );
        }
        // The term signal first: a proxy then stops its own server.
        let (sender, ended) = channel::<()>();
        let group = format!("-{}", self.child.id());
        signal("TERM", &group);
        let killer = thread::spawn(move || {
            if ended.recv_timeout(Duration::from_secs(10)).is_err() {
                signal("KILL", &group);
            }
        });
        let _ = self.child.wait();
        let _ = sender.send(());
        let _ = killer.join();
    }
}

fn signal(name: &str, whom: &str) {
    let kill = Command::new("kill")
        .args(["-s", name, "--", whom])
        .stderr(Stdio::null())
        .status();
    kill.expect("the kill program is there");
}
