//! A user of their own for each test: folders for sockets and records, and proxies in it.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// The binary under test.
pub const PROXY: &str = env!("CARGO_BIN_EXE_mcp-proxy");
pub const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;

/// What comes before the id of a run in the line that tells it.
const ATTACH_WITH: &str = "mcp-proxy attach ";

pub struct TestHome(TempDir);

impl TestHome {
    pub fn new() -> TestHome {
        TestHome(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Where the sockets are.
    pub fn sockets(&self) -> PathBuf {
        self.path("mcp-proxy")
    }

    /// The names of what is there.
    pub fn files(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.sockets()) else {
            return Vec::new();
        };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    pub fn env(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("XDG_RUNTIME_DIR", self.0.path().to_owned()),
            ("XDG_STATE_HOME", self.path("state")),
            ("XDG_DATA_HOME", self.path("data")),
            ("MCP_PROXY_TOKEN_STORE", "file".into()),
            ("TMPDIR", self.0.path().to_owned()),
        ]
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(PROXY);
        command.args(words).envs(self.env()).env_remove("NO_COLOR");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs to the end.
    pub fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// The result of a request.
    pub fn ctl(&self, words: &[&str]) -> Value {
        let text = ok(self.run(&[&["ctl"], words].concat()));
        serde_json::from_str(&text).unwrap()
    }

    /// The same, with parameters on stdin.
    pub fn ctl_with(&self, words: &[&str], params: &str) -> Value {
        let mut command = self.command(&[&["ctl"], words].concat());
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(params.as_bytes()).unwrap();
        drop(stdin);
        let text = ok(child.wait_with_output().unwrap());
        serde_json::from_str(&text).unwrap()
    }

    /// The error of a request.
    pub fn refused(&self, words: &[&str]) -> Value {
        let output = self.run(&[&["ctl"], words].concat());
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["error"].clone()
    }

    /// Waits until something is held.
    pub fn held(&self) -> u64 {
        let mut held = None;
        until("a message is held", || {
            held = self.ctl(&["intercept.get"])["held"][0].as_u64();
            held.is_some()
        });
        held.unwrap()
    }

    /// The whole record of the only recorded run.
    pub fn record(&self) -> String {
        let folder = self.path("state").join("mcp-proxy/sessions");
        let mut entries = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let path = entries.find(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
        std::fs::read_to_string(path.unwrap()).unwrap()
    }

    /// A recorded run before the demo server.
    pub fn demo(&self, flags: &[&str]) -> TestProxy {
        self.start(flags, TestProxy::wait_for_id)
    }

    pub fn demo_without_record(&self, flags: &[&str]) -> TestProxy {
        self.start(&[&["--no-record"], flags].concat(), TestProxy::wait_for_id)
    }

    pub fn start(&self, flags: &[&str], wait: fn(&mut TestProxy)) -> TestProxy {
        self.start_before(flags, &["--", PROXY, "demo-server", "stdio"], wait)
    }

    /// The same before another server.
    pub fn start_before(
        &self,
        flags: &[&str],
        server: &[&str],
        wait: fn(&mut TestProxy),
    ) -> TestProxy {
        let mut command = self.command(&[&["proxy", "--listen", "stdio"], flags, server].concat());
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut run = TestProxy {
            stdin: child.stdin.take(),
            stdout: child.stdout.take().map(BufReader::new),
            stderr: BufReader::new(child.stderr.take().unwrap()),
            child,
            id: String::new(),
        };
        wait(&mut run);
        run
    }
}

/// A proxy over stdio; killed when dropped.
pub struct TestProxy {
    pub child: Child,
    pub id: String,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
    stderr: BufReader<ChildStderr>,
}

impl TestProxy {
    pub fn wait_for_id(&mut self) {
        self.id = loop {
            let line = self.error_line();
            if let Some((_, id)) = line.split_once(ATTACH_WITH) {
                break id.to_owned();
            }
            assert!(!line.is_empty(), "it has ended");
        };
    }

    pub fn wait_for_nothing(&mut self) {}

    /// The next line of stderr.
    pub fn error_line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub fn say(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The beginning of a line.
    pub fn say_part(&mut self, part: &str) {
        write!(self.stdin.as_mut().unwrap(), "{part}").unwrap();
    }

    pub fn hear(&mut self) -> String {
        let mut line = String::new();
        let stdout = self.stdout.as_mut().unwrap();
        stdout.read_line(&mut line).unwrap();
        line
    }

    /// A request and its answer.
    pub fn round(&mut self, line: &str) -> String {
        self.say(line);
        let answer = self.hear();
        assert!(answer.contains("\"result\""), "{answer}");
        answer
    }

    /// The client says nothing more.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// The client is killed: it neither writes nor reads any more.
    pub fn lose_client(&mut self) {
        (self.stdin, self.stdout) = (None, None);
    }

    /// The client ends.
    pub fn end(&mut self) -> Option<i32> {
        self.stdin = None;
        self.child.wait().unwrap().code()
    }
}

impl Drop for TestProxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a command printed, which must have worked.
pub fn ok(output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{text}");
    text
}

/// Looks at a condition until it holds; fails after a deadline.
pub fn until(what: &str, holds: impl FnMut() -> bool) {
    until_within(Duration::from_secs(20), holds, || what.to_owned());
}

/// The same with another deadline. `what` is asked for when that has passed.
pub fn until_within(
    patience: Duration,
    mut holds: impl FnMut() -> bool,
    what: impl Fn() -> String,
) {
    let start = Instant::now();
    while !holds() {
        let waited = start.elapsed();
        assert!(waited < patience, "waited in vain until {}", what());
        std::thread::sleep(Duration::from_millis(5));
    }
}
