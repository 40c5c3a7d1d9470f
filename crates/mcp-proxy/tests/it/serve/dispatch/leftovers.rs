//! Nothing stays on disk, however the program ends.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::control::test_home::{TestHome, until_within};
use crate::programs::{INITIALIZE, INITIALIZED};

const SPILLS: u64 = 10_000;

fn spill_folder(home: &TestHome) -> PathBuf {
    home.path("state/mcp-proxy/spill")
}

fn files_below(folder: &PathBuf) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            if path.is_dir() { files_below(&path) } else { 1 }
        })
        .sum()
}

/// A hub over stdio that has written this many results, and still runs.
fn spilling(home: &TestHome, spills: u64) -> Child {
    let mut command = home.command(&[
        "serve",
        "--listen",
        "stdio",
        "--no-record",
        "--quiet",
        "--expose",
        "dispatch",
        "--config",
        home.path("config.json").to_str().unwrap(),
    ]);
    let config = json!({"mcpServers": {"time": {"mcp-proxy": {"builtin": "time"}}}});
    std::fs::write(home.path("config.json"), config.to_string()).unwrap();
    command.stdin(Stdio::piped()).stderr(Stdio::null());
    let mut hub = command.spawn().unwrap();
    let mut stdin = hub.stdin.take().unwrap();
    let writing = std::thread::spawn(move || {
        let call = json!({"action": "call", "tool": "get_current_time", "resultToFile": true,
            "arguments": {"timezone": "UTC"}});
        let params = json!({"name": "proxy-dispatch", "arguments": call});
        writeln!(stdin, "{INITIALIZE}\n{INITIALIZED}").unwrap();
        for id in 0..spills {
            let request =
                json!({"jsonrpc": "2.0", "id": id + 2, "method": "tools/call", "params": params});
            writeln!(stdin, "{request}").unwrap();
        }
        stdin
    });
    let mut lines = BufReader::new(hub.stdout.take().unwrap()).lines();
    let mut spilled = 0;
    while spilled < spills {
        let line = lines.next().unwrap().unwrap();
        spilled += u64::from(line.contains("\"resultFile\":\"spill:"));
        assert!(!line.contains("\"error\""), "{line}");
    }
    hub.stdin = Some(writing.join().unwrap());
    hub
}

fn signal(hub: &Child, signal: &str) {
    kill(signal, &hub.id().to_string());
}

fn kill(signal: &str, process: &str) {
    let sent = Command::new("kill").args([signal, process]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn nothing_is_left_after_the_end_of_stdin() {
    let home = TestHome::new();
    let mut hub = spilling(&home, SPILLS);
    assert!(files_below(&spill_folder(&home)) as u64 >= SPILLS);
    drop(hub.stdin.take());
    assert!(hub.wait().unwrap().success());
    assert_eq!(files_below(&spill_folder(&home)), 0);
}

#[test]
fn nothing_is_left_after_sigterm() {
    let home = TestHome::new();
    let mut hub = spilling(&home, SPILLS);
    signal(&hub, "-TERM");
    hub.wait().unwrap();
    assert_eq!(files_below(&spill_folder(&home)), 0);
}

/// Kills the process that would remove the results of this hub.
fn kill_sweeper(hub: &Child) {
    let parent = format!(" {} ", hub.id());
    let is_sweeper = |process: &PathBuf| {
        let command = std::fs::read_to_string(process.join("cmdline")).unwrap_or_default();
        let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
        command.contains("__sweeper") && stat.contains(&parent)
    };
    let processes = std::fs::read_dir("/proc").unwrap();
    let mut processes = processes.map(|process| process.unwrap().path());
    let sweeper = processes.find(is_sweeper).expect("a sweeper");
    kill("-KILL", sweeper.file_name().unwrap().to_str().unwrap());
}

#[test]
fn nothing_is_left_after_sigkill() {
    let home = TestHome::new();
    let mut killed = spilling(&home, SPILLS);
    signal(&killed, "-KILL");
    killed.wait().unwrap();
    let left = || files_below(&spill_folder(&home));
    until_within(
        Duration::from_secs(30),
        || left() == 0,
        || format!("{} files are left", left()),
    );
}

#[test]
fn the_next_start_removes_what_a_killed_run_has_left() {
    let home = TestHome::new();
    let mut killed = spilling(&home, SPILLS);
    let mut neighbour = spilling(&home, 1);
    kill_sweeper(&killed);
    signal(&killed, "-KILL");
    killed.wait().unwrap();
    assert!(files_below(&spill_folder(&home)) as u64 >= SPILLS);
    let mut next = spilling(&home, 1);
    // Each of the two that run has its lock and one result.
    assert_eq!(files_below(&spill_folder(&home)), 4);
    for hub in [&mut neighbour, &mut next] {
        drop(hub.stdin.take());
        assert!(hub.wait().unwrap().success());
    }
    assert_eq!(files_below(&spill_folder(&home)), 0);
}
