//! A million messages: `cargo run --profile dist -p mcp-proxy-session --example million [FOLDER] [MESSAGES]`.
//!
//! Makes the record, then opens it in fresh processes (so that their peak memory is their own): without an index, with one, and
//! searches it. Prints times and the peak resident memory.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an example that prints figures"
)]

use mcp_proxy_session::testing::{self, SampleRecord};
use mcp_proxy_session::{Filter, RecordLocation, SessionRecord};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

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
    let session = SessionRecord::open(path).unwrap();
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
    let place = RecordLocation::Folder(folder.to_path_buf());
    let mut record = SampleRecord::at_place(place, &testing::header());
    record.calls(messages);
    record.path().to_path_buf()
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
