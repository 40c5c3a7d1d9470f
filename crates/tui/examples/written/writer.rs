//! A record of calls and answers, as large as one likes.

use mcp_proxy_session::*;
use mcp_proxy_wire::{Carriage, Direction, Message, Transport};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Writes calls and their answers.
pub struct Writer {
    pub recorder: Recorder,
    started_at: SystemTime,
    next: u64,
}

impl Writer {
    pub fn new(folder: &Path) -> Writer {
        let started_at = SystemTime::now();
        let header = SessionHeader {
            id: new_session_id(started_at),
            started_at,
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
        let place = Place::In(folder.to_path_buf());
        Writer {
            recorder: Recorder::create(place, options, &header).unwrap(),
            started_at,
            next: 1,
        }
    }

    /// So many messages, and what is written goes to the file.
    pub fn put(&mut self, messages: u64) {
        for pair in 0..messages / 2 {
            let id = self.next / 2;
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"tool_{}","arguments":{{"path":"/home/user/README-{id}.md"}}}}}}"#,
                id % 40
            );
            let answer = format!(
                r#"{{"result":{{"content":[{{"type":"text","text":"{}"}}]}},"jsonrpc":"2.0","id":{id}}}"#,
                "some text of the answer ".repeat(16)
            );
            self.one(Direction::ClientToServer, call, None);
            let request = self.next - 1;
            self.one(Direction::ServerToClient, answer, Some(request));
            if pair % 32 == 31 {
                self.recorder.flush().unwrap();
            }
        }
        self.recorder.flush().unwrap();
    }

    fn one(&mut self, direction: Direction, body: String, request: Option<u64>) {
        let sequence = self.next;
        self.next += 1;
        let time = self.started_at + Duration::from_micros(sequence * 20);
        self.recorder.message(&NewMessage {
            sequence,
            id: MessageId::new(time, 1, sequence),
            time,
            mono: Duration::from_micros(sequence * 20),
            direction,
            transport: Transport::Stdio,
            connection: 1,
            exchange: 0,
            origin: Origin::Peer,
            carriage: &Carriage::Message,
            body: NewBody::Whole(&Message::parse(body)),
            answers: request.map(|sequence| Answers {
                id: MessageId::new(time, 1, sequence),
                sequence,
                latency: Duration::from_micros(20),
            }),
            late: false,
            duplicate: false,
            parts: &[],
        });
    }
}
