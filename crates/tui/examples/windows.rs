//! A million rows under load: `cargo run --profile dist -p mcp-proxy-tui --example windows [FOLDER] [MESSAGES]`.
//!
//! Makes a record, opens a view of it and asks for windows as a screen would, sixty times a second, while a thread appends
//! 5,000 messages a second and while filters run. Prints times and the peak resident memory.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an example that prints figures"
)]

use mcp_proxy_session::RecordLocation;
use mcp_proxy_session::testing::{self, SampleRecord};
use mcp_proxy_tui::{SessionView, ViewState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const FRAME: Duration = Duration::from_millis(16);
const SCREEN: usize = 50;

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments
        .next()
        .map_or_else(std::env::temp_dir, PathBuf::from)
        .join(format!("million-rows-{}", std::process::id()));
    let messages: u64 = arguments
        .next()
        .and_then(|text| text.to_string_lossy().parse().ok())
        .unwrap_or(1_000_000);
    let mut record =
        SampleRecord::at_place(RecordLocation::Folder(folder.clone()), &testing::header());
    record.calls(messages);
    let path = record.path().to_path_buf();
    println!("{messages} messages; resident {}", memory("VmRSS:"));
    drop(first_window(&path, "without an index"));
    let mut view = first_window(&path, "with the index");
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let appender = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            record.calls(50);
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    frames(&mut view, "following", 240, |view, _| {
        view.len().saturating_sub(SCREEN)
    });
    frames(&mut view, "jumping about", 240, |view, frame| {
        frame.wrapping_mul(7_919_777) % view.len().max(1)
    });
    for filter in [
        "README-77777.md",
        r"/README-7{5}\.md/",
        r#".tool == "tool_39""#,
        r#".params.arguments.path == "/home/user/README-77777.md""#,
    ] {
        let start = Instant::now();
        view.set_filter(filter).unwrap();
        println!("filter {filter}: set in {:?}", start.elapsed());
        let mut first = None;
        let mut busy = 0;
        while busy < 5 || view.searching().is_some() {
            frames(&mut view, "", 1, |_, _| 0);
            busy += 1;
            if !view.is_empty() {
                first.get_or_insert(start.elapsed());
            }
        }
        println!(
            "  first row after {first:?}, all {} after {:?}",
            view.len(),
            start.elapsed()
        );
        frames(&mut view, "  following it", 60, |view, _| {
            view.len().saturating_sub(SCREEN)
        });
    }
    let start = Instant::now();
    view.set_filter("").unwrap();
    println!("all {} rows again in {:?}", view.len(), start.elapsed());
    stop.store(true, Ordering::Relaxed);
    appender.join().unwrap();
    println!(
        "resident {}, at most {}",
        memory("VmRSS:"),
        memory("VmHWM:")
    );
    std::fs::remove_dir_all(folder).unwrap();
}

fn first_window(path: &Path, how: &str) -> SessionView {
    let start = Instant::now();
    let mut view = SessionView::open(path.to_path_buf());
    let returned = start.elapsed();
    while *view.state() == ViewState::Opening {
        view.wait(Duration::from_secs(60));
        view.poll();
    }
    let ready = start.elapsed();
    let lines = view.window(view.len() / 2, SCREEN).len();
    println!(
        "{how}: open returned after {returned:?}, ready after {ready:?}, {lines} lines after {:?}; resident {}",
        start.elapsed(),
        memory("VmRSS:")
    );
    view
}

/// Frames as a screen draws them; prints the middle one, the longest of 99 in 100, and the longest.
fn frames(
    view: &mut SessionView,
    what: &str,
    count: usize,
    from: impl Fn(&SessionView, usize) -> usize,
) {
    let (mut polls, mut windows) = (Vec::new(), Vec::new());
    for frame in 0..count {
        let start = Instant::now();
        view.request_refresh();
        view.poll();
        polls.push(start.elapsed());
        let start = Instant::now();
        let place = from(view, frame);
        view.window(place, SCREEN);
        windows.push(start.elapsed());
        std::thread::sleep(FRAME);
    }
    polls.sort();
    windows.sort();
    if !what.is_empty() {
        println!(
            "{what}: poll {}; window {}; {} rows",
            spread(&polls),
            spread(&windows),
            view.total()
        );
    }
}

fn spread(sorted: &[Duration]) -> String {
    let at = |part: usize| sorted[(sorted.len() - 1) * part / 100];
    format!("{:?} / {:?} / {:?}", at(50), at(99), at(100))
}

fn memory(what: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what));
    line.unwrap_or("unknown").trim().to_owned()
}
