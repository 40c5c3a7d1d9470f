//! What a frame costs: `cargo run --profile dist -p mcp-proxy-tui --example frames [FOLDER] [MESSAGES]`.
//!
//! Opens a record of a million messages in the UI, on a screen of cells in memory, while a thread appends 5,000 messages a
//! second. A frame is all that happens between two keys: a key, taking in what is new, and drawing. Prints the middle one, the
//! longest of 99 in 100 and the longest, of frames that follow, jump about, and have a filter running.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an example that prints figures"
)]

use mcp_proxy_session::RecordLocation;
use mcp_proxy_session::testing::{self, SampleRecord};
use mcp_proxy_tui::ProxyPort;
use mcp_proxy_tui::UiCommand;
use mcp_proxy_tui::ViewState;
use mcp_proxy_tui::{App, Tab, Theme, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Thirty frames a second, as the UI draws at most.
const TURN: Duration = Duration::from_millis(33);
/// Frames of each kind: about five seconds.
const FRAMES: u64 = 150;

/// What is done before each frame.
#[derive(Clone, Copy)]
enum FrameWorkload {
    Following,
    JumpingAbout,
    Scrolling,
    /// Another filter every second, while the one before still runs.
    Filtering,
}

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments
        .next()
        .map_or_else(std::env::temp_dir, PathBuf::from)
        .join(format!("frames-{}", std::process::id()));
    let messages: u64 = arguments
        .next()
        .and_then(|text| text.to_string_lossy().parse().ok())
        .unwrap_or(1_000_000);
    let mut record =
        SampleRecord::at_place(RecordLocation::Folder(folder.clone()), &testing::header());
    record.calls(messages);
    let path = record.path().to_path_buf();
    let (port, _far) = ProxyPort::pair();
    let mut app = App::recorded(Tab::open(path), port, Theme::Dark);
    while *app.tabs[0].view.state() == ViewState::Opening {
        app.tabs[0].view.wait(Duration::from_secs(60));
        app.tick(Instant::now());
    }
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let appender = std::thread::spawn(move || {
        let start = Instant::now();
        let mut written = 0;
        while !stopped.load(Ordering::Relaxed) {
            let due = start.elapsed().as_millis() as u64 * 5;
            if due > written {
                record.calls((due - written).next_multiple_of(2));
                written = due.next_multiple_of(2).max(written);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let mut terminal = Terminal::new(TestBackend::new(160, 50)).unwrap();
    for (what, doing) in [
        ("following", FrameWorkload::Following),
        ("jumping about", FrameWorkload::JumpingAbout),
        ("scrolling", FrameWorkload::Scrolling),
        ("with a filter running", FrameWorkload::Filtering),
    ] {
        app.run(UiCommand::ClearFilter, "");
        app.run(UiCommand::Last, "");
        let mut times = Vec::new();
        for frame in 0..FRAMES {
            let start = Instant::now();
            act(&mut app, doing, frame);
            app.tabs[0].view.request_refresh();
            app.tick(start);
            terminal.draw(|drawn| draw(&mut app, drawn)).unwrap();
            times.push(start.elapsed());
            std::thread::sleep(TURN.saturating_sub(start.elapsed()));
        }
        times.sort();
        let at = |part: usize| times[(times.len() - 1) * part / 100];
        println!(
            "{what}: {:.2?} / {:.2?} / {:.2?} a frame (median / 99 % / longest); {} rows, {} shown",
            at(50),
            at(99),
            at(100),
            app.tabs[0].view.total(),
            app.tabs[0].view.len()
        );
    }
    stop.store(true, Ordering::Relaxed);
    appender.join().unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

fn act(app: &mut App, doing: FrameWorkload, frame: u64) {
    let filters = [
        "README-7",
        r"/README-[0-9]*77\.md/",
        ".tool == \"tool_39\"",
        "text answer",
    ];
    match doing {
        FrameWorkload::Following => {}
        FrameWorkload::JumpingAbout => {
            let total = app.tabs[0].view.total() as u64;
            let number = frame.wrapping_mul(7_919_777) % total.max(1) + 1;
            app.run(UiCommand::Goto, &number.to_string());
        }
        FrameWorkload::Scrolling => app.run(UiCommand::PageUp, ""),
        FrameWorkload::Filtering if frame.is_multiple_of(30) => {
            app.run(
                UiCommand::Filter,
                filters[(frame / 30) as usize % filters.len()],
            );
        }
        FrameWorkload::Filtering => {}
    }
}
