//! How fast messages are read: `cargo run --profile dist -p mcp-proxy-wire --example scan_speed`.
//!
//! Prints the cost of `Message::parse` for a few shapes of message, and of splitting a stream of lines.

#![allow(
    clippy::print_stdout,
    reason = "the figures are what this program is for"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcp_proxy_wire::{LineSplitter, Message, SseSplitter, encode_event};

const CALL: &str = r#"{"jsonrpc":"2.0","id":1234567,"method":"tools/call","params":{"name":"answer-small","arguments":{"text":"hello"}"#;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}"#;

fn main() {
    let request = r#"{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello there"},"_meta":{"progressToken":12345}}}"#;
    report("request, 150 B", request.to_owned());
    report("call of 2025", format!("{CALL}}}}}"));
    report("call of 2026-07-28", format!("{CALL},{META}}}}}"));
    report(
        "answer, 100 B of text",
        text(64, r#"{\"row\":17,\"name\":\"a value\"}\n"#),
    );
    for size in [1_000, 100_000, 1_000_000] {
        report(
            &format!("text, {size} B"),
            text(size, "plain words without anything to escape in them, "),
        );
        report(
            &format!("escaped text, {size} B"),
            text(size, r#"fn main() {\n    println!(\"hello\");\n}\n"#),
        );
        report(
            &format!("wide text, {size} B"),
            text(size, "größer – 世界 "),
        );
        report(
            &format!("rows, {size} B"),
            rows(
                size,
                "{\"id\":NNN,\"name\":\"row NNN\",\"on\":true,\"rate\":0.25}",
                ",",
            ),
        );
        report(
            &format!("pretty rows, {size} B"),
            rows(
                size,
                "\n      {\n        \"id\": NNN,\n        \"name\": \"row NNN\"\n      }",
                ",",
            ),
        );
    }
    split(request);
}

fn text(size: usize, piece: &str) -> String {
    let content = piece.repeat(size / piece.len() + 1);
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"result":{{"content":[{{"type":"text","text":"{content}"}}]}}}}"#
    )
}

fn rows(size: usize, row: &str, between: &str) -> String {
    let rows: Vec<String> = (0..size / row.len())
        .map(|number| row.replace("NNN", &(number * 7919 % 100_003).to_string()))
        .collect();
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"result":{{"structuredContent":{{"rows":[{}]}}}}}}"#,
        rows.join(between)
    )
}

fn report(name: &str, text: String) {
    let bytes = Bytes::from(text);
    assert!(Message::parse(bytes.clone()).is_json());
    let each = measure(|| {
        black_box(Message::parse(black_box(bytes.clone())));
    });
    line(name, bytes.len(), each);
}

fn split(request: &str) {
    let lines = Bytes::from(format!("{request}\n").repeat(400));
    let mut units = Vec::new();
    let mut splitter = LineSplitter::new(usize::MAX);
    let each = measure(|| {
        units.clear();
        splitter.push(lines.clone(), &mut units);
        black_box(&units);
    });
    line("400 lines split", lines.len(), each);
    let events =
        Bytes::from(encode_event(Some("1"), Some("message"), request.as_bytes()).repeat(400));
    let mut units = Vec::new();
    let mut splitter = SseSplitter::new(usize::MAX);
    let each = measure(|| {
        units.clear();
        splitter.push(events.clone(), &mut units);
        black_box(&units);
    });
    line("400 events split", events.len(), each);
}

/// The best of many short rounds: what else the machine does only ever adds.
fn measure(mut work: impl FnMut()) -> f64 {
    let mut round = |times: u32| {
        let start = Instant::now();
        for _ in 0..times {
            work();
        }
        start.elapsed().as_nanos() as f64 / f64::from(times)
    };
    let times = (100_000.0 / round(10)).clamp(1.0, 10_000.0) as u32;
    let begin = Instant::now();
    let mut best = f64::MAX;
    while begin.elapsed() < Duration::from_millis(300) {
        best = best.min(round(times));
    }
    best
}

fn line(name: &str, bytes: usize, nanoseconds: f64) {
    let rate = bytes as f64 / nanoseconds;
    println!("{name:<24} {bytes:>8} B {nanoseconds:>10.0} ns {rate:>7.2} GB/s");
}
