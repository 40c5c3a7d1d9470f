//! Runs the binary and speaks raw HTTP to it: no client library between the test and the bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

/// The binary under test.
pub const PROXY: &str = env!("CARGO_BIN_EXE_mcp-proxy");

/// `initialize` as a legacy client sends it.
pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}"#;
/// And what follows it.
pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// What comes before the URL in the first line of a program that listens; other programs read it too.
const LISTENING_ON: &str = "listening on ";

/// Runs the binary with `input` on stdin, to its end.
pub fn pipe(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(PROXY)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // Written from the side: a large input and a large output would block each other.
    let writing = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    output
}

/// The id and the code of the error answer in `text`: a line, a body, or the last event of a stream.
#[track_caller]
pub fn error_answer(text: &str) -> (Value, i64) {
    let last = text.lines().rfind(|line| line.contains('{'));
    let last = last.unwrap_or_else(|| panic!("no message: {text}"));
    let json = last.strip_prefix("data:").unwrap_or(last);
    let answer: Value = serde_json::from_str(json).unwrap_or_else(|_| panic!("{text}"));
    let code = answer["error"]["code"].as_i64();
    let code = code.unwrap_or_else(|| panic!("no error: {text}"));
    (answer["id"].clone(), code)
}

/// The lines of a record, parsed.
pub fn record_lines(record: &str) -> Vec<Value> {
    let lines = record.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect()
}

/// A program of ours that listens; killed when dropped.
pub struct ListeningProgram {
    child: Child,
    /// `http`, or `ws` of a relay
    pub scheme: String,
    /// `127.0.0.1:PORT`
    pub address: String,
    /// `/mcp` or `/sse`
    pub path: String,
    stderr: BufReader<std::process::ChildStderr>,
}

impl ListeningProgram {
    /// Starts the binary and waits for its `listening on URL`.
    pub fn start(args: &[&str]) -> ListeningProgram {
        ListeningProgram::start_with(args, &[])
    }

    /// The same with variables in its environment.
    pub fn start_with(args: &[&str], env: &[(&str, PathBuf)]) -> ListeningProgram {
        let mut child = Command::new(PROXY)
            .args(args)
            .envs(env.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let url = line
            .trim()
            .strip_prefix(LISTENING_ON)
            .unwrap_or_else(|| panic!("{line}"));
        let (scheme, rest) = url.split_once("://").unwrap();
        let (address, path) = rest.split_once('/').unwrap();
        let (address, path) = (address.to_owned(), format!("/{path}"));
        ListeningProgram {
            child,
            scheme: scheme.to_owned(),
            address,
            path,
            stderr,
        }
    }

    /// The proxy before a target, listening as `kind`.
    pub fn proxy(kind: &str, more: &[&str]) -> ListeningProgram {
        let mut args = vec![
            "proxy",
            "--listen",
            kind,
            "--listen-port",
            "0",
            "--no-record",
        ];
        args.extend(more);
        ListeningProgram::start(&args)
    }

    /// The embedded server over HTTP.
    pub fn demo() -> ListeningProgram {
        ListeningProgram::start(&["demo-server", "http"])
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, self.path)
    }

    /// The next line on stderr that contains this text.
    pub fn line_with(&mut self, text: &str) -> String {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(self.stderr.read_line(&mut line).unwrap(), 0, "no {text}");
        }
        line
    }

    /// Ends it by a signal and returns the exit code and the rest of stderr.
    pub fn end(mut self, signal: &str) -> (Option<i32>, String) {
        Command::new("kill")
            .args([signal, &self.child.id().to_string()])
            .status()
            .unwrap();
        let status = self.child.wait().unwrap();
        let mut rest = String::new();
        let _ = self.stderr.read_to_string(&mut rest);
        (status.code(), rest)
    }

    /// POSTs a message.
    pub fn post(&self, headers: &[(&str, &str)], body: &str) -> HttpAnswer {
        let mut all = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        all.extend(headers);
        request(&self.address, "POST", &self.path, &all, body.as_bytes())
    }

    /// Opens a legacy session and returns its id.
    pub fn session(&self) -> String {
        self.session_with(&[])
    }

    /// The same with these headers.
    pub fn session_with(&self, headers: &[(&str, &str)]) -> String {
        let answer = self.post(headers, INITIALIZE);
        assert_eq!(answer.status, 200, "{answer:?}");
        let id = answer.header("mcp-session-id").unwrap().to_owned();
        let headers = [headers, &[("mcp-session-id", id.as_str())]].concat();
        assert_eq!(self.post(&headers, INITIALIZED).status, 202);
        id
    }
}

impl Drop for ListeningProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An HTTP answer, read to its end.
#[derive(Debug)]
pub struct HttpAnswer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpAnswer {
    /// The first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends a request on a connection of its own and reads the whole answer.
pub fn request(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> HttpAnswer {
    let mut stream = open(address, method, path, headers, body);
    let (status, headers) = stream.head();
    let body = stream.rest(&headers);
    HttpAnswer {
        status,
        headers,
        body,
    }
}

/// A request whose answer is read bit by bit.
pub struct OpenResponse(BufReader<TcpStream>);

/// Sends a request and leaves the answer to be read.
pub fn open(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> OpenResponse {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    if !headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        text += &format!("Host: {address}\r\n");
    }
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += &format!(
        "Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(text.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    OpenResponse(BufReader::new(stream))
}

impl OpenResponse {
    /// Status and headers.
    pub fn head(&mut self) -> (u16, Vec<(String, String)>) {
        let status = self.line();
        let status = status
            .split(' ')
            .nth(1)
            .unwrap_or_else(|| panic!("{status}"))
            .parse()
            .unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            if line.is_empty() {
                return (status, headers);
            }
            let (name, value) = line.split_once(':').unwrap();
            headers.push((name.trim().to_lowercase(), value.trim().to_owned()));
        }
    }

    /// One line, without its end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end_matches(['\r', '\n']).to_owned()
    }

    /// Reads lines of a chunked event stream until one starts with `prefix`; returns what follows it.
    pub fn until(&mut self, prefix: &str) -> String {
        loop {
            let line = self.line();
            if let Some(rest) = line.strip_prefix(prefix) {
                return rest.trim().to_owned();
            }
            assert!(
                !line.is_empty() || !self.0.buffer().is_empty() || !self.at_end(),
                "the stream ended before `{prefix}`"
            );
        }
    }

    fn at_end(&mut self) -> bool {
        self.0.fill_buf().map_or(true, <[u8]>::is_empty)
    }

    fn rest(&mut self, headers: &[(String, String)]) -> Vec<u8> {
        let chunked = headers
            .iter()
            .any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let mut body = Vec::new();
        if !chunked {
            self.0.read_to_end(&mut body).unwrap();
            return body;
        }
        loop {
            let size = self.line();
            let size = usize::from_str_radix(size.trim(), 16)
                .unwrap_or_else(|_| panic!("chunk size `{size}`"));
            let mut chunk = vec![0; size];
            self.0.read_exact(&mut chunk).unwrap();
            self.line();
            if size == 0 {
                return body;
            }
            body.extend(chunk);
        }
    }
}

/// The binary with a conversation on its stdin and stdout.
pub struct StdioProgram {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl StdioProgram {
    /// Starts the binary.
    pub fn start(args: &[&str]) -> StdioProgram {
        StdioProgram::start_with(args, &[])
    }

    /// The same with variables in its environment.
    pub fn start_with(args: &[&str], env: &[(&str, PathBuf)]) -> StdioProgram {
        let mut child = Command::new(PROXY)
            .args(args)
            .envs(env.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        StdioProgram {
            child,
            stdin,
            stdout,
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line.
    pub fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
    }

    /// The next line.
    pub fn hear(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Says nothing more.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Closes stdin and waits for the exit code.
    pub fn end(mut self) -> Option<i32> {
        self.stdin = None;
        self.child.wait().unwrap().code()
    }
}
