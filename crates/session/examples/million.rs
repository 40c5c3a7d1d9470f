//! A million messages: `cargo run --release -p mcp-proxy-session --example million [FOLDER] [MESSAGES]`.
//!
//! Makes the record, then opens it in fresh processes (so that their peak memory is their own): without an index, with one, and
//! searches it. Prints times and the peak resident memory.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an example that prints figures"
)]

use mcp_proxy_session::*;
use mcp_proxy_wire::{Carriage, Direction, Message, Transport};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some("open".as_ref()) {
        return open(Path::new(&arguments.next().unwrap()));
    }
    let folder = first
        .map_or_else(std::env::temp_dir, PathBuf::from)
        .join(format!("million-{}", std::process::id()));
    let messages = arguments
        .next()
        .and_then(|text| text.to_string_lossy().parse().ok())
        .unwrap_or(1_000_000);
    let start = Instant::now();
    let path = make(&folder, messages);
    let bytes = std::fs::metadata(&path).unwrap().len();
    println!(
        "made {messages} messages, {} MB, in {:.2} s",
        bytes >> 20,
        start.elapsed().as_secs_f64()
    );
    for run in ["without an index", "with the index", "again"] {
        println!("{run}:");
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .arg("open")
            .arg(&path)
            .status()
            .unwrap();
        assert!(status.success());
    }
    std::fs::remove_dir_all(folder).unwrap();
}

fn open(path: &Path) {
    let start = Instant::now();
    let session = Session::open(path).unwrap();
    let opened = start.elapsed();
    let memory = peak_memory();
    let start = Instant::now();
    let middle = session.len() / 2;
    for index in middle..middle + 50 {
        session.message(index).unwrap();
    }
    let window = start.elapsed();
    println!(
        "  open {:.0} ms, {} rows, peak memory {memory}; a window of 50 messages {:.2} ms",
        opened.as_secs_f64() * 1e3,
        session.len(),
        window.as_secs_f64() * 1e3,
    );
    for (what, filter) in [
        ("words", "README-77777.md"),
        ("a pattern", r"/README-7{5}\.md/"),
        (
            "jq over a head",
            r#".tool == "tool_39" and .sequence < 1000"#,
        ),
        (
            "jq over bodies",
            r#".params.arguments.path == "/home/user/README-77777.md""#,
        ),
    ] {
        let filter = Filter::parse(filter).unwrap();
        let start = Instant::now();
        let mut found = 0;
        filter
            .search(&session, 0, |_| {
                found += 1;
                ControlFlow::Continue(())
            })
            .unwrap();
        println!(
            "  {what} {:.0} ms, {found} found, peak memory {}",
            start.elapsed().as_secs_f64() * 1e3,
            peak_memory()
        );
    }
}

fn make(folder: &Path, messages: u64) -> PathBuf {
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
    let mut recorder = Recorder::create(Place::In(folder.to_path_buf()), options, &header).unwrap();
    for pair in 0..messages / 2 {
        let sequence = pair * 2 + 1;
        let time = started_at + Duration::from_micros(sequence * 20);
        let request = Message::parse(format!(
            r#"{{"jsonrpc":"2.0","id":{pair},"method":"tools/call","params":{{"name":"tool_{}","arguments":{{"path":"/home/user/README-{pair}.md","limit":100}}}}}}"#,
            pair % 40
        ));
        let answer = Message::parse(format!(
            r#"{{"result":{{"content":[{{"type":"text","text":"{}"}}]}},"jsonrpc":"2.0","id":{pair}}}"#,
            "some text of the answer ".repeat(16)
        ));
        let mut new = NewMessage {
            sequence,
            id: MessageId::new(time, 1, sequence),
            time,
            mono: Duration::from_micros(sequence * 20),
            direction: Direction::ClientToServer,
            transport: Transport::Stdio,
            connection: 1,
            exchange: 0,
            origin: Origin::Peer,
            carriage: &Carriage::Message,
            body: NewBody::Whole(&request),
            answers: None,
            late: false,
            duplicate: false,
            parts: &[],
        };
        recorder.message(&new);
        new.answers = Some(Answers {
            id: new.id,
            sequence,
            latency: Duration::from_micros(20),
        });
        new.sequence += 1;
        new.id = MessageId::new(time, 1, sequence + 1);
        new.direction = Direction::ServerToClient;
        new.body = NewBody::Whole(&answer);
        recorder.message(&new);
        if pair % 32 == 31 {
            recorder.flush().unwrap();
        }
    }
    recorder.flush().unwrap();
    recorder.path().to_path_buf()
}

fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap_or("unknown")
        .trim()
        .to_owned()
}
