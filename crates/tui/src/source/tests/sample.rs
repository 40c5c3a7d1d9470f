//! A record with fixed times, and short ways to write into it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_proxy_session::{
    Act, Answers, Durability, Io, Mark, MessageId, NewBody, NewMessage, Origin, Place,
    RecordOptions, Recorder, SessionHeader,
};
use mcp_proxy_wire::{Carriage, Direction, Message, Transport};
use tempfile::TempDir;

/// A record in a folder of its own.
pub struct Sample {
    pub recorder: Recorder,
    next: u64,
    _folder: TempDir,
}

impl Sample {
    pub fn new() -> Sample {
        let folder = tempfile::tempdir().unwrap();
        let header = SessionHeader {
            id: "019a8888-0000-7000-8000-00005e550001".to_owned(),
            started_at: at(0),
            transport: Transport::Stdio,
            listen: Transport::Stdio,
            server_command: Some("server".to_owned()),
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
        Sample {
            recorder: Recorder::create(place, options, &header).unwrap(),
            next: 1,
            _folder: folder,
        }
    }

    /// The client calls a tool.
    pub fn call(&mut self, id: u64, tool: &str) -> u64 {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#
        );
        self.put(Direction::ClientToServer, body, None)
    }

    /// The server answers.
    pub fn answer(&mut self, id: u64, request: u64, result: &str) -> u64 {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        self.put(Direction::ServerToClient, body, Some(request))
    }

    /// The server writes a line to stderr.
    pub fn stderr(&mut self, line: &str) {
        let io = Io::Stderr {
            connection: 1,
            line: line.as_bytes(),
        };
        self.recorder.io(at(7), &io);
    }

    /// A message is marked, or is not any more.
    pub fn mark(&mut self, sequence: u64, mark: Mark) {
        let io = Io::Mark {
            sequence,
            mark,
            text: "user",
        };
        self.recorder.io(at(7), &io);
    }

    fn put(&mut self, direction: Direction, body: String, request: Option<u64>) -> u64 {
        let sequence = self.next;
        self.next += 1;
        self.recorder.message(&NewMessage {
            sequence,
            id: id(sequence),
            time: at(sequence),
            mono: Duration::from_millis(sequence),
            direction,
            transport: Transport::Stdio,
            connection: 1,
            exchange: 0,
            origin: Origin::Peer,
            carriage: &Carriage::Message,
            body: NewBody::Whole(&Message::parse(body)),
            answers: request.map(|request| Answers {
                id: id(request),
                sequence: request,
                latency: Duration::from_millis(sequence - request),
            }),
            late: false,
            duplicate: false,
            parts: &[],
        });
        sequence
    }
}

pub fn at(sequence: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_794_765_600) + Duration::from_millis(sequence)
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

fn id(sequence: u64) -> MessageId {
    MessageId::new(at(sequence), 7, sequence)
}
