//! A session with fixed ids and times, and short ways to write messages into it.

use mcp_proxy_session::*;
use mcp_proxy_wire::{Carriage, Direction, Message, SseEvent, Transport};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// 2026-11-15T18:00:00Z.
pub fn start() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_794_765_600)
}

pub fn header() -> SessionHeader {
    let mut metadata = serde_json::Map::new();
    metadata.insert("target".to_owned(), "sample | server".into());
    SessionHeader {
        id: "019a8888-0000-7000-8000-00005e550001".to_owned(),
        started_at: start(),
        transport: Transport::Stdio,
        listen: Transport::Stdio,
        server_command: Some("python server.py".to_owned()),
        server_url: None,
        argv: ["mcp-proxy", "--", "python", "server.py"]
            .map(str::to_owned)
            .into(),
        cwd: Some("/home/user".to_owned()),
        version: "0.1.0".to_owned(),
        metadata,
    }
}

pub fn options() -> RecordOptions {
    RecordOptions {
        durability: Durability::None,
        on_error: OnRecordError::Stop,
        ..RecordOptions::default()
    }
}

/// A record in a folder of its own.
pub struct Sample {
    pub folder: TempDir,
    pub recorder: Recorder,
    next: u64,
}

impl Sample {
    pub fn new() -> Sample {
        Sample::with(options(), &header())
    }

    pub fn with(options: RecordOptions, header: &SessionHeader) -> Sample {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::File(folder.path().join("session.jsonl"));
        Sample {
            recorder: Recorder::create(place, options, header).unwrap(),
            folder,
            next: 1,
        }
    }

    pub fn path(&self) -> &Path {
        self.recorder.path()
    }

    pub fn open(&mut self) -> Session {
        self.recorder.flush().unwrap();
        Session::open(self.path()).unwrap()
    }

    pub fn text(&mut self) -> String {
        self.recorder.flush().unwrap();
        std::fs::read_to_string(self.path()).unwrap()
    }

    /// A message from the client, on a line.
    pub fn client(&mut self, raw: impl AsRef<[u8]>) -> u64 {
        self.put(
            Direction::ClientToServer,
            &Carriage::Message,
            raw.as_ref(),
            None,
        )
    }

    /// A message from the server, on a line, answering `request`.
    pub fn server(&mut self, raw: impl AsRef<[u8]>, request: Option<u64>) -> u64 {
        self.put(
            Direction::ServerToClient,
            &Carriage::Message,
            raw.as_ref(),
            request,
        )
    }

    pub fn put(
        &mut self,
        direction: Direction,
        carriage: &Carriage,
        raw: &[u8],
        request: Option<u64>,
    ) -> u64 {
        let message = Message::parse(raw.to_vec());
        self.put_with(carriage, NewBody::Whole(&message), |new| {
            new.direction = direction;
            new.answers = request.map(|sequence| answers(sequence, new.sequence));
        })
    }

    pub fn put_with(
        &mut self,
        carriage: &Carriage,
        body: NewBody<'_>,
        change: impl FnOnce(&mut NewMessage<'_>),
    ) -> u64 {
        let sequence = self.next;
        self.next += 1;
        let mut new = new_message(sequence, carriage, body);
        change(&mut new);
        self.recorder.message(&new);
        sequence
    }
}

pub fn new_message<'a>(sequence: u64, carriage: &'a Carriage, body: NewBody<'a>) -> NewMessage<'a> {
    NewMessage {
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
        body,
        answers: None,
        late: false,
        duplicate: false,
        parts: &[],
    }
}

pub fn at(sequence: u64) -> SystemTime {
    start() + Duration::from_millis(sequence)
}

pub fn id(sequence: u64) -> MessageId {
    MessageId::new(at(sequence), 0x0123_4567_89ab_cdef, sequence)
}

pub fn answers(request: u64, answer: u64) -> Answers {
    Answers {
        id: id(request),
        sequence: request,
        latency: Duration::from_millis(answer - request),
    }
}

pub fn act(kind: &'static str, sequence: u64) -> Act {
    Act {
        time: at(sequence),
        sequence: Some(sequence),
        message: Some(id(sequence)),
        kind,
        by: "user".to_owned(),
        why: "as asked".to_owned(),
        original_raw: None,
        raw: None,
    }
}

pub fn post() -> Carriage {
    let request = http::Request::post("/mcp?api_key=abc&x=1")
        .header("host", "127.0.0.1:8888")
        .header("content-type", "application/json")
        .header("authorization", "Bearer very-secret")
        .header("mcp-session-id", "s-1")
        .body(())
        .unwrap();
    Carriage::Request(Box::new(request.into_parts().0))
}

pub fn response(status: u16, headers: &[(&str, &str)]) -> Carriage {
    let mut response = http::Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    Carriage::Response(Box::new(response.body(()).unwrap().into_parts().0))
}

pub fn event(id: &str) -> Carriage {
    Carriage::Event(Box::new(SseEvent {
        id: Some(id.to_owned()),
        event: Some("message".to_owned()),
        ..SseEvent::default()
    }))
}

/// One of everything: a handshake on stdio, a changed call, a drop, noise, a batch, broken bytes, and an HTTP exchange.
pub fn everything() -> (Sample, PathBuf) {
    let mut sample = Sample::new();
    let one = sample.client(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#);
    sample.server(
        r#"{"result":{"capabilities":{}},"jsonrpc":"2.0","id":1}"#,
        Some(one),
    );
    let call = sample
        .client(r#"{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"read_file","arguments":{"path":"/etc"}}}"#);
    let mut change = act("modify", call);
    let changed = r#"{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"read_file","arguments":{"path":"/tmp"}}}"#;
    change.raw = Some(changed.into());
    sample.recorder.act(&change);
    sample.server(
        r#"{"jsonrpc":"2.0","id":"1","error":{"code":-32602,"message":"```no``` <b>|"}}"#,
        Some(call),
    );
    let dropped = sample
        .client(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    sample.recorder.act(&act("drop", dropped));
    sample.recorder.io(
        at(6),
        &Io::Stderr {
            connection: 1,
            line: b"warning: |pipe|",
        },
    );
    sample.recorder.io(
        at(6),
        &Io::Exit {
            connection: 1,
            code: Some(3),
            signal: None,
            why: "exited",
        },
    );
    sample.client("not json\nat all");
    sample.client(b"\xff\xfe");
    sample.client("{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 12345678901234567890123456789,\n  \"method\": \"ping\"\n}");
    let body = Message::parse(r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#);
    let request = post();
    let list = sample.put_with(&request, NewBody::Whole(&body), |new| new.exchange = 5);
    let head = response(
        200,
        &[("content-type", "text/event-stream"), ("set-cookie", "a=b")],
    );
    let head = Io::Http {
        connection: 1,
        exchange: 5,
        direction: Direction::ServerToClient,
        transport: Transport::StreamableHttp,
        carriage: &head,
    };
    sample.recorder.io(at(list), &head);
    let answer = Message::parse(r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[]}}"#);
    sample.put_with(&event("e-1"), NewBody::Whole(&answer), |new| {
        new.exchange = 5;
        new.direction = Direction::ServerToClient;
        new.answers = Some(answers(list, new.sequence));
    });
    sample
        .recorder
        .end(start() + Duration::from_secs(60), "the client closed")
        .unwrap();
    let path = sample.path().to_path_buf();
    (sample, path)
}
