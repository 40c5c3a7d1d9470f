//! How fast messages are recorded: `cargo run --profile dist -p mcp-proxy-session --example record_speed [FOLDER]`.
//!
//! Prints nanoseconds for making one line in memory, and messages per second with a write for each message and with a write for
//! 64. Give a folder on tmpfs to leave the disk out.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an example that prints figures"
)]

use mcp_proxy_session::testing;
use mcp_proxy_session::{NewBody, NewMessage, RecordLocation, Recorder};
use mcp_proxy_wire::{Message, TransportEnvelope};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

const LINES: u64 = 2_000_000;
const WRITES: u64 = 500_000;

fn main() {
    let folder = std::env::args_os()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = folder.join(format!("record-speed-{}", std::process::id()));
    let small = Message::parse(body(200));
    let kilobyte = Message::parse(body(1024));
    let line = TransportEnvelope::Bare;
    let http = ten_headers();
    println!("making a line, nothing written, processor time");
    for (name, message, envelope) in [
        ("200 B", &small, &line),
        ("200 B, 10 headers", &small, &http),
        ("1 KB", &kilobyte, &line),
    ] {
        let nanos = (0..5)
            .map(|_| make_lines(&folder, message, envelope))
            .fold(f64::MAX, f64::min);
        println!("  {name:<20} {nanos:>8.0} ns");
    }
    println!("recording, messages/s");
    for (name, message, envelope) in [
        ("200 B", &small, &line),
        ("200 B, 10 headers", &small, &http),
        ("1 KB", &kilobyte, &line),
    ] {
        for batch in [1, 64, 1024] {
            println!(
                "  {name:<20} batches of {batch:<5} {:>10.0}",
                record(&folder, message, envelope, batch)
            );
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

fn make_lines(folder: &std::path::Path, message: &Message, envelope: &TransportEnvelope) -> f64 {
    let mut recorder = recorder(folder);
    let start = processor_time();
    let now = SystemTime::now();
    for sequence in 0..LINES {
        recorder.record_message(&new_message(
            sequence,
            now + Duration::from_micros(sequence),
            message,
            envelope,
        ));
        if sequence % 64 == 63 {
            recorder.discard_pending();
        }
    }
    (processor_time() - start) / LINES as f64
}

/// Nanoseconds of processor time, so that other work on the machine does not count.
fn processor_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn record(
    folder: &std::path::Path,
    message: &Message,
    envelope: &TransportEnvelope,
    batch: u64,
) -> f64 {
    let mut recorder = recorder(folder);
    let start = Instant::now();
    let now = SystemTime::now();
    for sequence in 0..WRITES {
        recorder.record_message(&new_message(
            sequence,
            now + Duration::from_micros(sequence),
            message,
            envelope,
        ));
        if sequence % batch == batch - 1 {
            recorder.flush().unwrap();
        }
    }
    recorder.flush().unwrap();
    let rate = WRITES as f64 / start.elapsed().as_secs_f64();
    std::fs::remove_file(recorder.path()).unwrap();
    rate
}

fn recorder(folder: &std::path::Path) -> Recorder {
    let place = RecordLocation::Folder(folder.to_path_buf());
    Recorder::create(place, testing::options(), &testing::header()).unwrap()
}

fn new_message<'a>(
    sequence: u64,
    time: SystemTime,
    message: &'a Message,
    envelope: &'a TransportEnvelope,
) -> NewMessage<'a> {
    NewMessage {
        client_id: None,
        time,
        ..testing::new_message(sequence, envelope, NewBody::Whole(message))
    }
}

fn body(len: usize) -> String {
    let head = r#"{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"read_file","arguments":{"path":""#;
    format!("{head}{}\"}}}}}}", "x".repeat(len - head.len() - 4))
}

fn ten_headers() -> TransportEnvelope {
    testing::post(
        "/mcp",
        &[
            ("host", "127.0.0.1:8888"),
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("content-length", "200"),
            ("user-agent", "node"),
            ("authorization", "Bearer 0123456789abcdef"),
            ("mcp-session-id", "6f9b3c1e-7c1f-4a52-9a55-0d8c1d7e6f11"),
            ("mcp-protocol-version", "2025-11-25"),
            ("accept-encoding", "gzip, deflate, br"),
            ("sec-fetch-mode", "cors"),
        ],
    )
}
