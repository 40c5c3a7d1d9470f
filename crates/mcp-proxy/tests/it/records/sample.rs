//! Records with fixed ids and times, made the way the proxy makes them, and the binary run on them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_proxy_session::*;
use mcp_proxy_wire::{Carriage, Direction, Message, SseEvent, Transport};
use serde_json::Map;
use tempfile::TempDir;

/// A folder with a state directory and files of its own.
pub struct Place {
    pub folder: TempDir,
}

/// What a run of the binary gave.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new() -> Place {
        Place {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where the binary looks for records.
    pub fn store(&self) -> PathBuf {
        self.path("state/mcp-proxy/sessions")
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-proxy"));
        command
            .args(words)
            .current_dir(self.folder.path())
            .env("XDG_STATE_HOME", self.path("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, words: &[&str]) -> Ran {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(words).output().unwrap();
        // Where the test's folder is differs from run to run.
        let here = self.folder.path().display().to_string();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(&here, "[HERE]");
        Ran {
            code: status.code(),
            stdout: text(stdout),
            stderr: text(stderr),
        }
    }

    /// Runs it, expects success and no words on stderr.
    pub fn print(&self, words: &[&str]) -> String {
        let ran = self.run(words);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{words:?}");
        ran.stdout
    }

    /// Runs it, expects a failure, and gives its text.
    pub fn fail(&self, words: &[&str], code: i32) -> String {
        let ran = self.run(words);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(code), ""),
            "{words:?}: {}",
            ran.stderr
        );
        ran.stderr
    }

    /// A record in the state directory, `number` hours after the first.
    pub fn stored(&self, number: u64) -> Sample {
        let id = format!("019a888{number}-0000-7000-8000-00005e55000{number}");
        let started_at = start() + Duration::from_secs(3600 * number);
        let header = SessionHeader {
            id,
            started_at,
            ..header()
        };
        Sample::create(mcp_proxy_session::Place::In(self.store()), &header)
    }

    /// A record in `session.jsonl`.
    pub fn sample(&self) -> Sample {
        Sample::create(
            mcp_proxy_session::Place::File(self.path("session.jsonl")),
            &header(),
        )
    }
}

/// 2026-11-15T18:00:00Z
pub fn start() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_794_765_600)
}

fn header() -> SessionHeader {
    SessionHeader {
        id: "019a8888-0000-7000-8000-00005e550001".to_owned(),
        started_at: start(),
        transport: Transport::Stdio,
        listen: Transport::Stdio,
        server_command: Some("python server.py".to_owned()),
        server_url: None,
        argv: Vec::new(),
        cwd: None,
        version: "0.1.0".to_owned(),
        metadata: Map::new(),
    }
}

/// A record that is being written.
pub struct Sample {
    pub recorder: Recorder,
    next: u64,
}

impl Sample {
    fn create(place: mcp_proxy_session::Place, header: &SessionHeader) -> Sample {
        let options = RecordOptions {
            durability: Durability::None,
            on_error: OnRecordError::Stop,
            ..RecordOptions::default()
        };
        Sample {
            recorder: Recorder::create(place, options, header).unwrap(),
            next: 1,
        }
    }

    pub fn path(&self) -> &Path {
        self.recorder.path()
    }

    pub fn client(&mut self, raw: impl AsRef<[u8]>) -> u64 {
        self.put(raw.as_ref(), &Carriage::Message, |_| {})
    }

    pub fn server(&mut self, raw: impl AsRef<[u8]>, request: Option<u64>) -> u64 {
        self.put(raw.as_ref(), &Carriage::Message, |new| {
            new.direction = Direction::ServerToClient;
            new.answers = request.map(|request| answers(request, new.sequence));
        })
    }

    pub fn put(
        &mut self,
        raw: &[u8],
        carriage: &Carriage,
        change: impl FnOnce(&mut NewMessage<'_>),
    ) -> u64 {
        let sequence = self.next;
        self.next += 1;
        let message = Message::parse(raw.to_vec());
        let mut new = NewMessage {
            sequence,
            id: id(sequence),
            time: at(sequence),
            mono: Duration::from_millis(sequence),
            direction: Direction::ClientToServer,
            transport: match carriage {
                Carriage::Line(_) | Carriage::Message => Transport::Stdio,
                _ => Transport::StreamableHttp,
            },
            connection: 1,
            exchange: 0,
            origin: Origin::Peer,
            carriage,
            body: if raw.is_empty() {
                NewBody::Empty
            } else {
                NewBody::Whole(&message)
            },
            answers: None,
            late: false,
            duplicate: false,
            parts: &[],
        };
        change(&mut new);
        self.recorder.message(&new);
        sequence
    }

    pub fn act(&mut self, kind: &'static str, sequence: u64, raw: Option<&'static str>) {
        self.recorder.act(&Act {
            time: at(sequence),
            sequence: Some(sequence),
            message: Some(id(sequence)),
            kind,
            by: "user".to_owned(),
            why: "as asked".to_owned(),
            original_raw: None,
            raw: raw.map(Into::into),
        });
    }

    pub fn end(&mut self) {
        self.recorder
            .end(start() + Duration::from_secs(60), "the client closed")
            .unwrap();
    }
}

pub fn at(sequence: u64) -> SystemTime {
    start() + Duration::from_millis(sequence)
}

fn id(sequence: u64) -> MessageId {
    MessageId::new(at(sequence), 0x0123_4567_89ab_cdef, sequence)
}

pub fn answers(request: u64, answer: u64) -> Answers {
    Answers {
        id: id(request),
        sequence: request,
        latency: Duration::from_millis(answer - request),
    }
}

/// One of everything, hostile text included.
pub fn everything(sample: &mut Sample) {
    let init = sample.client(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#);
    sample.server(
        r#"{"result":{"capabilities":{}},"jsonrpc":"2.0","id":1}"#,
        Some(init),
    );
    let call = sample.client(
        r#"{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"read_file","arguments":{"n":12345678901234567890123,"n":1.0}}}"#,
    );
    sample.act(
        "modify",
        call,
        Some(r#"{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"read_file","arguments":{}}}"#),
    );
    sample.server("{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"error\":{\"code\":-32602,\"message\":\"no \\u001b[2J\u{202e}path\"}}", Some(call));
    let failing = sample
        .client(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"shout"}}"#);
    sample.server(
        r#"{"jsonrpc":"2.0","id":2,"result":{"content":[],"isError":true}}"#,
        Some(failing),
    );
    let dropped = sample
        .client(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    sample.act("drop", dropped, None);
    sample.recorder.io(
        at(7),
        &Io::Stderr {
            connection: 1,
            line: b"warning: \x1b]0;title\x07",
        },
    );
    sample.recorder.io(
        at(7),
        &Io::Stray {
            connection: 1,
            direction: Direction::ServerToClient,
            bytes: b"hello",
        },
    );
    sample.client("not \x1b[31mjson\nat all");
    sample.client(b"\xff\xfe");
    sample.client("{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 12345678901234567890123456789,\n  \"method\": \"pi\u{9b}ng\"\n}");
    over_http(sample);
    let late = |new: &mut NewMessage<'_>| {
        new.direction = Direction::ServerToClient;
        new.answers = Some(answers(failing, new.sequence));
        new.late = true;
        new.duplicate = true;
    };
    let again = sample.put(
        br#"{"jsonrpc":"2.0","id":2,"result":{}}"#,
        &Carriage::Message,
        late,
    );
    sample.recorder.io(
        at(again),
        &Io::Undelivered {
            sequence: again,
            why: "the client is gone",
        },
    );
    sample.put(
        br#"{"jsonrpc":"2.0","id":9,"error":{"code":-31002,"message":"exited"}}"#,
        &Carriage::Message,
        |new| {
            new.direction = Direction::ServerToClient;
            new.origin = Origin::Proxy;
        },
    );
    let big = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/big\",\"params\":\"{}\"}}",
        "x".repeat(70_000)
    );
    sample.client(big);
    sample.recorder.io(
        at(20),
        &Io::Exit {
            connection: 1,
            code: Some(3),
            signal: None,
            why: "exited",
        },
    );
    sample.recorder.io(
        at(20),
        &Io::Note {
            text: "the end is near",
        },
    );
    sample.end();
}

fn over_http(sample: &mut Sample) {
    let request = http::Request::post("/mcp")
        .header("host", "127.0.0.1:8888")
        .header("authorization", "Bearer very-secret")
        .body(())
        .unwrap();
    let request = Carriage::Request(Box::new(request.into_parts().0));
    let list = sample.put(
        br#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#,
        &request,
        |new| {
            new.connection = 2;
            new.exchange = 5;
        },
    );
    let event = SseEvent {
        id: Some("e-1".to_owned()),
        event: Some("message".to_owned()),
        ..SseEvent::default()
    };
    let event = Carriage::Event(Box::new(event));
    sample.put(
        br#"{"jsonrpc":"2.0","id":7,"result":{"tools":[]}}"#,
        &event,
        |new| {
            new.connection = 2;
            new.exchange = 5;
            new.direction = Direction::ServerToClient;
            new.answers = Some(answers(list, new.sequence));
        },
    );
    let refused = http::Response::builder()
        .status(404)
        .header("content-type", "application/json")
        .body(())
        .unwrap();
    let refused = Carriage::Response(Box::new(refused.into_parts().0));
    sample.put(
        br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no session"}}"#,
        &refused,
        |new| {
            new.connection = 2;
            new.exchange = 6;
            new.direction = Direction::ServerToClient;
        },
    );
}
