//! A record with fixed times, and short ways to write into it.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use mcp_proxy_session::{
    Act, Answers, Durability, Io, Mark, MessageId, NewBody, NewMessage, Origin, Place,
    RecordOptions, Recorder, SessionHeader,
};
use mcp_proxy_wire::{Carriage, Direction, Message, Transport};
use tempfile::TempDir;

/// A record in a folder of its own.
pub struct Record {
    recorder: Recorder,
    next: u64,
    connection: u32,
    origin: Origin,
    folder: TempDir,
}

impl Record {
    pub fn new() -> Record {
        let folder = tempfile::tempdir().unwrap();
        let header = SessionHeader {
            id: "019a8888-0000-7000-8000-00005e550001".to_owned(),
            started_at: at(0),
            transport: Transport::Stdio,
            listen: Transport::StreamableHttp,
            server_command: Some("python server.py".to_owned()),
            server_url: None,
            argv: Vec::new(),
            cwd: None,
            version: "0".to_owned(),
            metadata: Default::default(),
        };
        let options = RecordOptions {
            durability: Durability::None,
            ..RecordOptions::default()
        };
        let place = Place::File(folder.path().join("session.jsonl"));
        Record {
            recorder: Recorder::create(place, options, &header).unwrap(),
            next: 1,
            connection: 1,
            origin: Origin::Peer,
            folder,
        }
    }

    /// An ordinary session: a tool that works, and one that does not.
    pub fn ordinary() -> Record {
        let mut record = Record::new();
        record.open_session();
        let call = record.call(2, "search", r#"{"query":"rust proxies"}"#);
        let found = r#"{"content":[{"type":"text","text":"3 results"}],"isError":false}"#;
        record.answer(2, call, found);
        let call = record.call(3, "read_file", r#"{"path":"/srv/notes/plan.txt"}"#);
        record.stderr("WARNING reader: /srv/notes/plan.txt does not exist");
        let failed = r#"{"content":[{"type":"text","text":"no such file: /srv/notes/plan.txt"}],"isError":true}"#;
        record.answer(3, call, failed);
        record.flush();
        record
    }

    /// What every session begins with: messages 1 to 5.
    pub fn open_session(&mut self) {
        let first = self.client(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"editor","version":"1.4.0"}}}"#,
        );
        self.answer(
            0,
            first,
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"files","version":"0.9"}}"#,
        );
        self.client(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        let list = self.client(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        self.answer(
            1,
            list,
            r#"{"tools":[{"name":"search","inputSchema":{"type":"object"}},{"name":"read_file","inputSchema":{"type":"object"}}]}"#,
        );
    }

    pub fn path(&self) -> &Path {
        self.recorder.path()
    }

    /// A place beside the record.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The client calls a tool.
    pub fn call(&mut self, id: u64, tool: &str, arguments: &str) -> u64 {
        self.client(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        ))
    }

    /// The client says something.
    pub fn client(&mut self, body: &str) -> u64 {
        self.put(Direction::ClientToServer, body, None)
    }

    /// The server says something of its own accord.
    pub fn server(&mut self, body: &str) -> u64 {
        self.put(Direction::ServerToClient, body, None)
    }

    /// The server answers.
    pub fn answer(&mut self, id: u64, request: u64, result: &str) -> u64 {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        self.put(Direction::ServerToClient, &body, Some(request))
    }

    /// What comes now comes on this connection, of peers or of the proxy.
    pub fn on(&mut self, connection: u32, origin: Origin) {
        (self.connection, self.origin) = (connection, origin);
    }

    /// The server writes a line to stderr.
    pub fn stderr(&mut self, line: &str) {
        let io = Io::Stderr {
            connection: self.connection,
            line: line.as_bytes(),
        };
        self.recorder.io(at(self.next), &io);
    }

    /// The server's process ends.
    pub fn exit(&mut self, code: i32) {
        let io = Io::Exit {
            connection: self.connection,
            code: Some(code),
            signal: None,
            why: "it ended by itself",
        };
        self.recorder.io(at(self.next), &io);
    }

    /// A message is decided on; with other bytes if there are some.
    pub fn decided(&mut self, sequence: u64, kind: &'static str, bytes: Option<(&str, &str)>) {
        self.recorder.act(&Act {
            time: at(sequence),
            sequence: Some(sequence),
            message: Some(id(sequence)),
            kind,
            by: "user (tui, pid 4711)".to_owned(),
            why: "breakpoint 1".to_owned(),
            original_raw: bytes.map(|(before, _)| Bytes::copy_from_slice(before.as_bytes())),
            raw: bytes.map(|(_, after)| Bytes::copy_from_slice(after.as_bytes())),
        });
    }

    /// A mark, as the proxy writes it for a viewer.
    pub fn mark(&mut self, sequence: u64, mark: Mark) {
        let text = "user (tui, pid 4711)";
        let io = Io::Mark {
            sequence,
            mark,
            text,
        };
        self.recorder.io(at(sequence), &io);
    }

    /// A verdict that changes no bytes.
    pub fn acted(&mut self, sequence: u64, kind: &'static str, by: &str, why: &str) {
        self.recorder.act(&Act {
            time: at(sequence),
            sequence: Some(sequence),
            message: Some(id(sequence)),
            kind,
            by: by.to_owned(),
            why: why.to_owned(),
            original_raw: None,
            raw: None,
        });
    }

    pub fn flush(&mut self) {
        self.recorder.flush().unwrap();
    }

    fn put(&mut self, direction: Direction, body: &str, request: Option<u64>) -> u64 {
        let sequence = self.next;
        self.next += 1;
        self.recorder.message(&NewMessage {
            sequence,
            id: id(sequence),
            time: at(sequence),
            mono: Duration::from_millis(17 * sequence),
            direction,
            transport: Transport::Stdio,
            connection: self.connection,
            exchange: 0,
            origin: self.origin,
            carriage: &Carriage::Message,
            body: NewBody::Whole(&Message::parse(body.to_owned())),
            answers: request.map(|request| Answers {
                id: id(request),
                sequence: request,
                latency: Duration::from_micros(17_300 * (sequence - request)),
            }),
            late: false,
            duplicate: false,
            parts: &[],
        });
        sequence
    }
}

fn at(sequence: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_794_765_600) + Duration::from_millis(17 * sequence)
}

fn id(sequence: u64) -> MessageId {
    MessageId::new(at(sequence), 7, sequence)
}
