//! Sample records for tests and examples: fixed ids and times, and short ways to write every kind of line.
//!
//! Behind the feature `testing`, which only development dependencies turn on. [`SampleRecord`] writes through the real
//! [`Recorder`], so what tests read is what a proxy writes. Common messages are one call (`record.client(raw)`); for the others
//! [`SampleRecord::from_client`] and [`SampleRecord::from_server`] begin a [`SampleMessage`] that is described step by step.

#![allow(
    clippy::unwrap_used,
    reason = "only tests and examples use it, and a sample that cannot be written ends them"
)]

mod message;
mod verdict;

pub use message::SampleMessage;
pub use verdict::SampleVerdict;

use crate::{
    AnsweredRequest, Durability, MarkOperation, MessageId, NewBody, NewMessage, PeerInfo,
    RecordErrorPolicy, RecordEvent, RecordLocation, RecordOptions, Recorder, SessionHeader,
    SessionRecord,
};
use bytes::Bytes;
use mcp_proxy_wire::{Direction, Origin, SseEvent, Transport, TransportEnvelope};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// Every sample has ids with this salt.
const SALT: u64 = 0x0123_4567_89ab_cdef;

/// A record in the making.
#[derive(Debug)]
pub struct SampleRecord {
    /// Writes the record. Tests use it for lines that have no method here.
    pub recorder: Recorder,
    /// The sequence number of the next message.
    next: u64,
    pace: SamplePace,
    /// What messages say that do not say otherwise.
    connection: u32,
    /// Who writes messages that do not say otherwise; without it their peers do.
    origin: Option<Origin>,
    /// Removed with the sample. A sample at a place that was given has none.
    folder: Option<TempDir>,
}

/// How fast a sample's time passes.
#[derive(Debug, Clone, Copy)]
pub struct SamplePace {
    /// From one message to the next.
    pub step: Duration,
    /// An answer's latency, for each message since its request.
    pub latency: Duration,
}

impl Default for SamplePace {
    fn default() -> SamplePace {
        SamplePace {
            step: Duration::from_millis(1),
            latency: Duration::from_millis(1),
        }
    }
}

impl SampleRecord {
    /// `session.jsonl` in a folder of its own, with [`header`] and [`options`].
    pub fn new() -> SampleRecord {
        SampleRecord::with(options(), &header())
    }

    /// The same with other options and another header.
    pub fn with(options: RecordOptions, header: &SessionHeader) -> SampleRecord {
        let folder = tempfile::tempdir().unwrap();
        let place = RecordLocation::File(folder.path().join("session.jsonl"));
        SampleRecord {
            folder: Some(folder),
            ..SampleRecord::writing(Recorder::create(place, options, header).unwrap())
        }
    }

    /// A sample at this place, which stays.
    pub fn at_place(place: RecordLocation, header: &SessionHeader) -> SampleRecord {
        SampleRecord::writing(Recorder::create(place, options(), header).unwrap())
    }

    /// A sample that this recorder writes.
    pub fn writing(recorder: Recorder) -> SampleRecord {
        SampleRecord {
            recorder,
            next: 1,
            pace: SamplePace::default(),
            connection: 1,
            origin: None,
            folder: None,
        }
    }

    /// The same sample at another pace.
    #[must_use]
    pub fn paced(self, pace: SamplePace) -> SampleRecord {
        SampleRecord { pace, ..self }
    }

    /// The messages that follow are of this connection.
    pub fn on(&mut self, connection: u32) -> &mut SampleRecord {
        self.connection = connection;
        self
    }

    /// The messages that follow are written by this one, whatever their direction.
    pub fn by(&mut self, origin: Origin) -> &mut SampleRecord {
        self.origin = Some(origin);
        self
    }

    /// The record's file.
    pub fn path(&self) -> &Path {
        self.recorder.path()
    }

    /// A file next to the record.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.path().with_file_name(name)
    }

    /// The folder that the record is in.
    pub fn folder(&self) -> &Path {
        self.path().parent().unwrap()
    }

    /// Writes what is pending.
    pub fn flush(&mut self) {
        self.recorder.flush().unwrap();
    }

    /// Reads the record as it is now.
    pub fn open(&mut self) -> SessionRecord {
        self.flush();
        SessionRecord::open(self.path()).unwrap()
    }

    /// The text of the record as it is now.
    pub fn text(&mut self) -> String {
        self.flush();
        std::fs::read_to_string(self.path()).unwrap()
    }

    /// Stops writing without an `end` line, as a killed proxy does. The folder goes with what this returns.
    pub fn killed(self) -> (PathBuf, Option<TempDir>) {
        (self.path().to_path_buf(), self.folder)
    }

    /// Writes the `end` line, a minute after the start.
    pub fn end(&mut self) {
        let end = start() + Duration::from_secs(60);
        self.recorder.end(end, "the client closed").unwrap();
    }

    /// When the message with this number is received.
    pub fn at(&self, sequence: u64) -> SystemTime {
        start() + self.mono(sequence)
    }

    fn mono(&self, sequence: u64) -> Duration {
        self.pace.step * u32::try_from(sequence).unwrap()
    }

    fn latency(&self, request: u64, answer: u64) -> Duration {
        self.pace.latency * u32::try_from(answer - request).unwrap()
    }

    /// The client sends this. Returns its sequence number.
    pub fn client(&mut self, raw: impl AsRef<[u8]>) -> u64 {
        self.from_client(raw).write()
    }

    /// The server sends this, and answers nothing with it.
    pub fn server(&mut self, raw: impl AsRef<[u8]>) -> u64 {
        self.from_server(raw).write()
    }

    /// The server answers `request` with this.
    pub fn answer(&mut self, request: u64, raw: impl AsRef<[u8]>) -> u64 {
        self.from_server(raw).answering(request).write()
    }

    /// The client calls a tool. `arguments` is JSON.
    pub fn call(&mut self, id: u64, tool: &str, arguments: &str) -> u64 {
        self.client(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        ))
    }

    /// The server answers `request`, whose id is `id`, with this result. `result` is JSON.
    pub fn result(&mut self, id: u64, request: u64, result: &str) -> u64 {
        let raw = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        self.answer(request, raw)
    }

    /// Many calls of 40 tools, each with its answer, written to the file: `messages` in all.
    pub fn calls(&mut self, messages: u64) {
        for pair in 0..messages / 2 {
            let id = self.next / 2;
            let arguments = format!(r#"{{"path":"/home/user/README-{id}.md","limit":100}}"#);
            let request = self.call(id, &format!("tool_{}", id % 40), &arguments);
            let text = "some text of the answer ".repeat(16);
            let result = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
            self.result(id, request, &result);
            if pair % 32 == 31 {
                self.flush();
            }
        }
        self.flush();
    }

    /// Begins a message of the client.
    pub fn from_client<'a>(&'a mut self, raw: impl AsRef<[u8]>) -> SampleMessage<'a> {
        SampleMessage::new(self, Direction::ClientToServer, raw.as_ref())
    }

    /// Begins a message of the server.
    pub fn from_server<'a>(&'a mut self, raw: impl AsRef<[u8]>) -> SampleMessage<'a> {
        SampleMessage::new(self, Direction::ServerToClient, raw.as_ref())
    }

    /// Begins a verdict on a message.
    pub fn verdict(&mut self, kind: &'static str, sequence: u64) -> SampleVerdict<'_> {
        SampleVerdict::new(self, kind, sequence)
    }

    /// Something else happens, when the next message would come.
    pub fn io(&mut self, io: &RecordEvent<'_>) {
        self.recorder.record_event(self.at(self.next), io);
    }

    /// A connection between these two opens.
    pub fn opened(&mut self, connection: u32, client: &PeerInfo, server: &PeerInfo) {
        self.io(&RecordEvent::Open {
            connection,
            client,
            server,
            parent: None,
        });
    }

    /// A connection opens because of the message with this number.
    pub fn opened_by(
        &mut self,
        parent: u64,
        connection: u32,
        client: &PeerInfo,
        server: &PeerInfo,
    ) {
        self.io(&RecordEvent::Open {
            connection,
            client,
            server,
            parent: Some(parent),
        });
    }

    /// A connection ends.
    pub fn closed(&mut self, connection: u32, why: &str) {
        self.io(&RecordEvent::Close { connection, why });
    }

    /// The server writes a line to stderr.
    pub fn stderr(&mut self, line: &str) {
        self.io(&RecordEvent::Stderr {
            connection: self.connection,
            line: line.as_bytes(),
        });
    }

    /// The server's process ends.
    pub fn exit(&mut self, code: i32, why: &str) {
        self.io(&RecordEvent::Exit {
            connection: self.connection,
            code: Some(code),
            signal: None,
            why,
        });
    }

    /// A message is marked, or its mark removed.
    pub fn mark(&mut self, sequence: u64, mark: MarkOperation) {
        let io = RecordEvent::Mark {
            sequence,
            mark,
            by: "user",
        };
        self.recorder.record_event(self.at(sequence), &io);
    }
}

impl Default for SampleRecord {
    fn default() -> SampleRecord {
        SampleRecord::new()
    }
}

/// When samples start: 2026-11-15T18:00:00Z.
pub fn start() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_794_765_600)
}

/// When the message with this number is received, at the usual pace.
pub fn at(sequence: u64) -> SystemTime {
    start() + Duration::from_millis(sequence)
}

/// The id of the message with this number, at the usual pace.
pub fn id(sequence: u64) -> MessageId {
    MessageId::new(at(sequence), SALT, sequence)
}

/// That message `answer` answers message `request`, at the usual pace.
pub fn answers(request: u64, answer: u64) -> AnsweredRequest {
    AnsweredRequest {
        id: id(request),
        sequence: request,
        latency: Duration::from_millis(answer - request),
        held: Duration::ZERO,
    }
}

/// A stdio server behind a stdio client.
pub fn header() -> SessionHeader {
    SessionHeader {
        id: "019a8888-0000-7000-8000-00005e550001".to_owned(),
        started_at: start(),
        client: PeerInfo::new(Transport::Stdio),
        server: PeerInfo::new(Transport::Stdio),
        server_command: Some("python server.py".to_owned()),
        server_url: None,
        argv: Vec::new(),
        cwd: None,
        version: "0.1.0".to_owned(),
        metadata: serde_json::Map::new(),
    }
}

/// Nothing is forced onto the disk, and a record that cannot be written is an error.
pub fn options() -> RecordOptions {
    RecordOptions {
        durability: Durability::None,
        on_error: RecordErrorPolicy::Stop,
        ..RecordOptions::default()
    }
}

/// A message of the client at the usual pace, to be handed to a recorder or a ring.
pub fn new_message<'a>(
    sequence: u64,
    envelope: &'a TransportEnvelope,
    body: NewBody<'a>,
) -> NewMessage<'a> {
    NewMessage {
        sequence,
        id: id(sequence),
        time: at(sequence),
        mono: Duration::from_millis(sequence),
        direction: Direction::ClientToServer,
        transport: transport_of(envelope),
        connection: 1,
        exchange: 0,
        origin: Origin::Client,
        parent: None,
        envelope,
        body,
        answered_request: None,
        client_id: None,
        late: false,
        duplicate: false,
        parts: &[],
    }
}

/// The head of a POST.
pub fn post(target: &str, headers: &[(&str, &str)]) -> TransportEnvelope {
    let mut request = http::Request::post(target);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    TransportEnvelope::Request(Box::new(request.body(()).unwrap().into_parts().0))
}

/// The head of a response.
pub fn response(status: u16, headers: &[(&str, &str)]) -> TransportEnvelope {
    let mut response = http::Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    TransportEnvelope::Response(Box::new(response.body(()).unwrap().into_parts().0))
}

/// An event with this id.
pub fn event(id: &str) -> TransportEnvelope {
    TransportEnvelope::Event(Box::new(SseEvent {
        id: Some(id.to_owned()),
        event: Some("message".to_owned()),
        ..SseEvent::default()
    }))
}

fn transport_of(envelope: &TransportEnvelope) -> Transport {
    match envelope {
        TransportEnvelope::Line(_) | TransportEnvelope::Bare => Transport::Stdio,
        _ => Transport::StreamableHttp,
    }
}

/// Bytes of a sample, copied.
fn bytes(raw: impl AsRef<[u8]>) -> Bytes {
    Bytes::copy_from_slice(raw.as_ref())
}
