//! Prints how fast results are spilled, sliced and searched on this machine: the least wall time and the least CPU time of
//! several rounds, which differ when other programs run.
//!
//! With a word as its argument it does only what has that word in its name, and memory is that of a fresh process. A number
//! behind it is the number of rounds. With one, the clock of the CPU is not asked, which valgrind cannot do, and instructions
//! can be counted.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement prints, and stops at the first thing that is wrong"
)]

use std::fmt::Write;
use std::hint::black_box;
use std::time::{Duration, Instant};

use mcp_proxy_spill::{
    JqRunner, ReadLimit, ReadRequest, SpillFormat, SpillOptions, SpillOwner, SpillStore,
};

const OWNER: SpillOwner = SpillOwner(1);
const ROUNDS: usize = 7;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let word = arguments.next().unwrap_or_default();
    let rounds = arguments
        .next()
        .map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let home = tempfile::tempdir().unwrap();
    let store = SpillStore::open(SpillOptions {
        directory: home.path().join("spill"),
        quota: 4 << 30,
        ttl: Duration::from_secs(3600),
        roots: Vec::new(),
        spawn_sweeper: None,
        jq: JqRunner::InProcess,
    })
    .unwrap();
    for form in ["one JSON text", "whole result", "one indented JSON text"] {
        if !format!("spill {form}").contains(&word) {
            continue;
        }
        let result = result_of_form(form);
        let before = reset_peak_memory();
        let (wall, cpu) = fastest(rounds, || {
            store
                .spill(OWNER, result.as_bytes(), SpillFormat::Json, Instant::now())
                .unwrap();
        });
        let megabytes = result.len() as f64 / 1e6;
        let speed = |took: Duration| megabytes / took.as_secs_f64();
        let more = memory("VmHWM:").saturating_sub(before) as f64 / 1e3;
        println!(
            "spill {form}: {megabytes:.1} MB, {:.0} MB/s wall, {:.0} MB/s CPU, peak memory +{more:.1} MB",
            speed(wall),
            speed(cpu)
        );
    }
    let grep = |pattern: &str, context| ReadRequest::Grep {
        pattern: pattern.to_owned(),
        context,
    };
    let slice = |from_line, to_line| ReadRequest::Slice {
        from_line: Some(from_line),
        to_line: Some(to_line),
        from_column: None,
    };
    let requests = [
        ReadRequest::Stat,
        ReadRequest::Tail { lines: 50 },
        slice(600_000, 600_100),
        slice(1, 10_000),
        grep("nothing like this", 0),
        grep("record 777777\\b", 2),
        grep("name", 2),
        grep("[^a]777777", 2),
        grep(r"\d{7}.*true", 0),
        grep(r"(\w+\s+)*777777", 0),
    ];
    let is_wanted = |request: &ReadRequest| format!("{request:?}").contains(&word);
    if !requests.iter().any(is_wanted) {
        return;
    }
    let large = records(100 << 20);
    let handle = store
        .spill(OWNER, large.as_bytes(), SpillFormat::Json, Instant::now())
        .unwrap()
        .handle;
    drop(large);
    for request in requests.into_iter().filter(is_wanted) {
        let (wall, cpu) = fastest(rounds, || {
            black_box(
                store
                    .read(OWNER, &handle, &request, ReadLimit::MOST, Instant::now())
                    .unwrap(),
            );
        });
        println!("{wall:>10.1?} wall {cpu:>10.1?} CPU {request:?}");
    }
}

/// About ten megabytes of records, as the result of a tool.
fn result_of_form(form: &str) -> String {
    let json = records(10 << 20);
    match form {
        "whole result" => format!(r#"{{"content":[],"structuredContent":{json}}}"#),
        "one indented JSON text" => one_text(
            &json
                .replace(":", ": ")
                .replace(",\"", ",\n    \"")
                .replace("{", "\n  {\n    ")
                .replace("}", "\n  }"),
        ),
        _ => one_text(&json),
    }
}

fn one_text(text: &str) -> String {
    serde_json::json!({"content": [{"type": "text", "text": text}]}).to_string()
}

/// A list of small records with this many bytes.
fn records(bytes: usize) -> String {
    let mut json = "[".to_owned();
    for id in 1.. {
        if json.len() > bytes {
            break;
        }
        let comma = if id > 1 { "," } else { "" };
        let ok = id % 2 == 0;
        write!(
            json,
            r#"{comma}{{"id":{id},"name":"record {id}","price":{}.5,"tags":["a","bc"],"ok":{ok}}}"#,
            id % 1000
        )
        .unwrap();
    }
    json.push(']');
    json
}

/// The least wall time and the least CPU time of all rounds.
fn fastest(rounds: usize, mut run: impl FnMut()) -> (Duration, Duration) {
    let cpu_time = match rounds {
        1 => || Duration::ZERO,
        _ => cpu_time,
    };
    let times = (0..rounds).map(|_| {
        let (begun, cpu_before) = (Instant::now(), cpu_time());
        run();
        (begun.elapsed(), cpu_time() - cpu_before)
    });
    let (wall, cpu): (Vec<_>, Vec<_>) = times.unzip();
    (
        wall.into_iter().min().unwrap(),
        cpu.into_iter().min().unwrap(),
    )
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Forgets the most memory that this process had so far, and tells how much it has now.
fn reset_peak_memory() -> u64 {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    memory("VmRSS:")
}

/// In kilobytes.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}
