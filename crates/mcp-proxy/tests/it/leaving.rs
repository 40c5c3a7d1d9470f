//! HTTP clients that leave, that only stop sending, or that have no stream open; and messages over the limit: who is told, and what the
//! record says.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::control::test_home::until;
use crate::programs::{
    HttpAnswer, INITIALIZE, INITIALIZED, ListeningProgram, error_answer, record_lines, request,
};

/// A folder with a record and pipes for events between a test and its server.
struct PipeFolder(tempfile::TempDir);

impl PipeFolder {
    fn new() -> PipeFolder {
        let stage = PipeFolder(tempfile::tempdir().unwrap());
        for name in ["told", "go"] {
            let made = Command::new("mkfifo").arg(stage.path(name)).status();
            assert!(made.unwrap().success());
        }
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The proxy before `target`, with a record.
    fn proxy(&self, more: &[&str], target: &[&str]) -> ListeningProgram {
        let record = self.path("s.jsonl");
        let mut args = vec!["proxy", "--listen", "http", "--listen-port", "0"];
        args.extend(["--session-file", record.to_str().unwrap()]);
        args.extend(more);
        args.extend(target);
        ListeningProgram::start(&args)
    }

    /// The proxy before a server of shell commands. Beside `told` and `go` they have `say ID`, which answers.
    fn shell(&self, script: &str) -> ListeningProgram {
        let script = format!(
            "cd {}; say() {{ echo '{{\"jsonrpc\":\"2.0\",\"id\":'$1',\"result\":{{}}}}'; }}; {script}",
            self.0.path().display()
        );
        self.proxy(&[], &["--", "sh", "-c", &script])
    }

    /// What the server has told; waits for it.
    fn told(&self) -> String {
        std::fs::read_to_string(self.path("told")).unwrap()
    }

    /// Lets the server go on.
    fn go(&self) {
        std::fs::write(self.path("go"), "go\n").unwrap();
    }
}

/// The lines of a record that are as wanted.
fn lines(record: &Path, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
    let text = std::fs::read_to_string(record).unwrap();
    record_lines(&text).into_iter().filter(wanted).collect()
}

fn is_undelivered(line: &Value, sequence: u64) -> bool {
    line["kind"] == "undelivered" && line["sequence"] == sequence
}

/// A POST whose head has been answered with 100 Continue, which lies unread: when this socket is closed, that resets it.
fn post_unread(proxy: &ListeningProgram, headers: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&proxy.address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\n{headers}Expect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(stream.peek(&mut [0; 1]).unwrap(), 1);
    stream.write_all(body.as_bytes()).unwrap();
    stream
}

#[test]
fn a_client_that_only_stops_sending_gets_its_answer() {
    let stage = PipeFolder::new();
    let proxy = stage.shell("read a; echo asked > told; read x < go; say 1; sleep 100");
    let mut stream = TcpStream::connect(&proxy.address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\nContent-Length: {}\r\n\r\n{INITIALIZE}",
        INITIALIZE.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(stage.told(), "asked\n");
    stage.go();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
}

#[test]
fn a_half_closed_client_is_given_up_in_time_and_the_record_says_so() {
    let stage = PipeFolder::new();
    let target = ["--", "sh", "-c", "read a; sleep 100"];
    let proxy = stage.proxy(&["--stall-timeout", "1"], &target);
    let mut stream = TcpStream::connect(&proxy.address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{INITIALIZE}",
        INITIALIZE.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    proxy.end("-TERM");
    let given_up = lines(&stage.path("s.jsonl"), |line| line["t"] == "note");
    assert_eq!(given_up.len(), 1, "{given_up:?}");
}

#[test]
fn an_answer_whose_client_has_left_is_recorded_as_undelivered() {
    let stage = PipeFolder::new();
    let proxy = stage.shell(
        "read a; say 1; read b; read c; echo asked > told; read x < go; say 2; echo said > told; sleep 100",
    );
    let session = format!("Mcp-Session-Id: {}\r\n", proxy.session());
    let ask = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{}}"#;
    let client = post_unread(&proxy, &session, ask);
    assert_eq!(stage.told(), "asked\n");
    drop(client);
    stage.go();
    assert_eq!(stage.told(), "said\n");
    let record = stage.path("s.jsonl");
    let lost = || lines(&record, |line| is_undelivered(line, 5)).len();
    until("the answer is recorded as undelivered", || lost() > 0);
    proxy.end("-TERM");
    assert_eq!(lost(), 1, "{}", std::fs::read_to_string(&record).unwrap());
}

#[test]
fn where_http_passes_through_the_record_says_that_a_client_left() {
    let stage = PipeFolder::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", server.local_addr().unwrap());
    let proxy = stage.proxy(&["--transport", "streamable-http"], &[&url]);
    let client = post_unread(&proxy, "", INITIALIZE);
    let (mut asked, _) = server.accept().unwrap();
    assert!(asked.read(&mut [0; 64]).unwrap() > 0);
    drop(client);
    // The proxy closes its connection to the server when it has seen that.
    let _ = asked.read_to_end(&mut Vec::new());
    proxy.end("-TERM");
    let left = lines(&stage.path("s.jsonl"), |line| line["t"] == "note");
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_server_request_that_cannot_wait_for_a_stream_is_answered() {
    let stage = PipeFolder::new();
    let proxy = stage.shell(
        r#"read a; say 1; read b; printf '{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":"';
           head -c 1500000 /dev/zero | tr '\0' y; echo '"}'; read c; echo "$c" > told; sleep 100"#,
    );
    proxy.session();
    let told = stage.told();
    assert_eq!(error_answer(&told), (json!("s1"), -31004), "{told}");
    proxy.end("-TERM");
    let lost = lines(&stage.path("s.jsonl"), |line| is_undelivered(line, 4));
    assert_eq!(lost.len(), 1, "{lost:?}");
}

const VERSION: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

#[test]
fn a_subscription_that_the_server_cancels_is_over() {
    let stage = PipeFolder::new();
    let proxy = stage.shell(
        r#"read a; echo '{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}';
           echo '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'; sleep 100"#,
    );
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "subscriptions/listen"),
    ];
    let listen = format!(
        r#"{{"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{{"notifications":{{}},{VERSION}}}}}"#
    );
    // Read to its end: the stream closes.
    let answer = proxy.post(&headers, &listen);
    let text = answer.text();
    assert!(text.contains(r#"/subscriptionId":"L""#), "{text}");
    assert!(text.contains(r#""requestId":"L""#), "{text}");
}

#[test]
fn a_modern_client_that_closes_its_stream_cancels() {
    let stage = PipeFolder::new();
    let proxy = stage.shell(
        r#"read a; echo '{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}';
           read b; echo "$b" > told; sleep 100"#,
    );
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "subscriptions/listen"),
    ];
    let listen = format!(
        r#"{{"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{{"notifications":{{}},{VERSION}}}}}"#
    );
    let mut stream =
        crate::programs::open(&proxy.address, "POST", "/mcp", &headers, listen.as_bytes());
    stream.until("data: ");
    drop(stream);
    let told = stage.told();
    assert!(told.contains("notifications/cancelled"), "{told}");
}

/// A server over HTTP whose answers are as long as asked.
fn long_answers(lengths: &'static [usize]) -> String {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    std::thread::spawn(move || {
        for length in lengths {
            let (mut stream, _) = server.accept().unwrap();
            let mut read = Vec::new();
            while !read.ends_with(b"}}}") {
                let mut piece = [0; 4096];
                let count = stream.read(&mut piece).unwrap();
                assert_ne!(count, 0);
                read.extend_from_slice(&piece[..count]);
            }
            let filler = "y".repeat(*length);
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{filler}"}}"#);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
            let size = body.len();
            // The proxy may break off.
            let _ = write!(stream, "{head}Content-Length: {size}\r\n\r\n{body}");
        }
    });
    format!("http://{address}/mcp")
}

#[test]
fn the_limit_of_a_message_holds_between_two_http_sides_too() {
    let stage = PipeFolder::new();
    let url = long_answers(&[900, 1_000, 70_000, 2_000_000]);
    let proxy = stage.proxy(
        &["--max-message", "1000", "--transport", "streamable-http"],
        &[&url],
    );
    assert_eq!(proxy.post(&[], INITIALIZE).status, 200);
    for _ in 0..3 {
        let answer = proxy.post(&[], INITIALIZE);
        assert_eq!(answer.status, 502, "{answer:?}");
        assert_eq!(error_answer(&answer.text()), (json!(1), -31005));
    }
    for size in [1_000, 70_000, 2_000_000] {
        let filler = "y".repeat(size);
        let body = INITIALIZED.replace('}', &format!(r#","params":"{filler}"}}"#));
        let answer = proxy.post(&[], &body);
        assert_eq!(answer.status, 413, "{answer:?}");
        assert_eq!(error_answer(&answer.text()), (Value::Null, -31005));
    }
    proxy.end("-TERM");
    let noted = |line: &Value| {
        let text = line["text"].as_str().unwrap_or_default();
        line["t"] == "note" && text.contains("413") && text.contains("--max-message")
    };
    let refused = lines(&stage.path("s.jsonl"), noted);
    assert_eq!(refused.len(), 3, "{refused:?}");
    let is_error = |line: &Value| line["raw"]["error"]["code"] == -31005;
    let broken = lines(&stage.path("s.jsonl"), is_error);
    assert_eq!(broken.len(), 3, "{broken:?}");
}

#[test]
fn a_client_that_writes_all_of_a_refused_body_first_reads_why() {
    let stage = PipeFolder::new();
    let large = "y".repeat(8_000_000);
    let limit = ["--max-message", "1000"];
    let proxy = stage.proxy(&limit, &["--", "cat"]);
    let answer = proxy.post(&[], &large);
    assert_eq!(answer.status, 413, "{answer:?}");
    assert_eq!(error_answer(&answer.text()), (Value::Null, -31005));
    let foreign = [("origin", "https://elsewhere.example")];
    assert_eq!(proxy.post(&foreign, &large).status, 403);
}

#[test]
fn an_answer_that_grows_over_the_limit_is_answered_in_its_place() {
    let stage = PipeFolder::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", server.local_addr().unwrap());
    let limit = ["--max-message", "1000000", "--transport", "streamable-http"];
    let proxy = stage.proxy(&limit, &[&url]);
    let serving = std::thread::spawn(move || {
        let (mut asked, _) = server.accept().unwrap();
        assert!(asked.read(&mut [0; 4096]).unwrap() > 0);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n";
        asked.write_all(head.as_bytes()).unwrap();
        // Its length is not told; the proxy closes when it has seen enough.
        let _ = asked.write_all("y".repeat(9_000_000).as_bytes());
    });
    let answer = proxy.post(&[], INITIALIZE);
    assert_eq!(error_answer(&answer.text()), (json!(1), -31005));
    serving.join().unwrap();
}

#[test]
fn an_event_over_the_limit_is_answered_in_its_place() {
    let stage = PipeFolder::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", server.local_addr().unwrap());
    let limit = ["--max-message", "1000", "--transport", "streamable-http"];
    let proxy = stage.proxy(&limit, &[&url]);
    let serving = std::thread::spawn(move || {
        let (mut asked, _) = server.accept().unwrap();
        assert!(asked.read(&mut [0; 4096]).unwrap() > 0);
        let filler = "y".repeat(3_000);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        let event = format!(r#"data: {{"jsonrpc":"2.0","id":1,"result":"{filler}"}}"#);
        let _ = write!(asked, "{head}{event}\n\n");
        let _ = asked.read_to_end(&mut Vec::new());
    });
    let answer = proxy.post(&[], INITIALIZE);
    assert_eq!(error_answer(&answer.text()), (json!(1), -31005));
    serving.join().unwrap();
}

/// A client that ends its session while a request of its own is open: the answer to that request.
fn end_session_with_a_request_open() -> HttpAnswer {
    let stage = PipeFolder::new();
    let proxy = stage.shell("read a; say 1; read b; read c; echo asked > told; sleep 100");
    let id = proxy.session();
    let session = [("mcp-session-id", id.as_str())];
    std::thread::scope(|scope| {
        let ask = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{}}"#;
        let asking = scope.spawn(|| proxy.post(&session, ask));
        assert_eq!(stage.told(), "asked\n");
        let ended = request(&proxy.address, "DELETE", "/mcp", &session, b"");
        assert_eq!(ended.status, 200);
        asking.join().unwrap()
    })
}

#[test]
fn a_request_that_is_open_when_its_client_ends_the_session_ends_without_an_answer() {
    let answer = end_session_with_a_request_open();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(answer.text(), "");
}

#[test]
fn a_stream_that_is_open_when_its_client_ends_the_session_ends() {
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
    let stage = PipeFolder::new();
    let proxy = stage.shell(&format!(
        "read a; say 1; read b; read c; echo '{log}'; sleep 100"
    ));
    let id = proxy.session();
    let ask = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{}}"#;
    let headers = format!("Mcp-Session-Id: {id}\r\nConnection: close\r\n");
    let mut stream = BufReader::new(post_unread(&proxy, &headers, ask));
    let mut read = String::new();
    // The stream is open once its first event is there.
    while !read.contains(log) {
        assert!(stream.read_line(&mut read).unwrap() > 0, "{read}");
    }
    let session = [("mcp-session-id", id.as_str())];
    let ended = request(&proxy.address, "DELETE", "/mcp", &session, b"");
    assert_eq!(ended.status, 200);
    stream.read_to_string(&mut read).unwrap();
    assert!(read.contains("text/event-stream"), "{read}");
    assert!(!read.contains(r#""id":2"#), "{read}");
}
