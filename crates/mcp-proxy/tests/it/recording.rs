//! What a run does about its record: secrets, a record that cannot be begun or written, the limit of the state directory.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::control::test_home::{PING, TestHome, until};
use crate::programs::{INITIALIZE, ListeningProgram, PROXY, error_answer, record_lines};
use crate::records::sample::TestStore;

/// A proxy before a server that answers with what it was asked.
fn echo(flags: &[&str], file: &str, input: &str) -> Output {
    let mut command = Command::new(PROXY);
    command
        .args(["proxy", "--listen", "stdio", "--session-file", file])
        .args(flags)
        .args(["--", "sh", "-c", "echo \"up with $KEY\" >&2; exec cat"]);
    feed(&mut command, input)
}

/// Runs a command with `input` on its stdin.
fn feed(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn values_of_env_are_masked_unless_secrets_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let body = r#"{"jsonrpc":"2.0","method":"m","params":{"key":"hush-in-a-body"}}"#;
    let record = |name: &str, flags: &[&str]| {
        let file = folder.path().join(name);
        let env = [&["--env", "KEY=hush-env"], flags].concat();
        let output = echo(&env, file.to_str().unwrap(), &format!("{body}\n"));
        assert!(output.status.success(), "{}", text(&output.stderr));
        std::fs::read_to_string(file).unwrap()
    };
    let masked = record("masked.jsonl", &[]);
    assert!(!masked.contains("hush-env"), "{masked}");
    assert!(masked.contains("up with [masked]"), "{masked}");
    assert!(masked.contains("hush-in-a-body"), "bodies stay: {masked}");
    let kept = record("kept.jsonl", &["--keep-secrets"]);
    assert!(kept.contains("up with hush-env"), "{kept}");
    assert!(
        kept.contains("KEY=hush-env") && !kept.contains("[masked]"),
        "{kept}"
    );
}

#[test]
fn values_of_env_are_masked_in_the_answers_of_the_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let mut command = Command::new(PROXY);
    command
        .args(["proxy", "--listen", "stdio", "--session-file"])
        .arg(&file)
        .args(["--env", "KEY=hush-env"])
        .args([
            "--",
            "sh",
            "-c",
            "read -r line; echo \"key $KEY\" >&2; exit 3",
        ]);
    let output = feed(&mut command, &format!("{PING}\n"));
    let answer = text(&output.stdout);
    assert_eq!(error_answer(&answer).1, -31002, "{answer}");
    assert!(answer.contains("key [masked]"), "{answer}");
    assert!(!text(&output.stderr).contains("exited with 3: key hush-env"));
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(!kept.contains("hush-env"), "{kept}");
}

/// Nothing can be made beneath a file.
fn impossible(folder: &TempDir) -> String {
    let file = folder.path().join("file");
    File::create(&file).unwrap();
    file.join("s.jsonl").to_str().unwrap().to_owned()
}

#[test]
fn a_record_that_cannot_be_begun_is_a_warning_and_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = impossible(&folder);
    for flags in [&["--quiet"][..], &["--quiet", "--output-format", "json"]] {
        let output = echo(flags, &file, &format!("{PING}\n"));
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(text(&output.stdout), format!("{PING}\n"));
        let folder = file.strip_suffix("/s.jsonl").unwrap();
        assert_eq!(said.matches(folder).count(), 1, "{said}");
    }
}

#[test]
fn a_record_that_cannot_be_begun_ends_a_run_that_is_told_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let file = impossible(&folder);
    let output = echo(&["--on-record-error", "stop"], &file, &format!("{PING}\n"));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(output.stdout.is_empty());
    let path = file.strip_suffix("/s.jsonl").unwrap();
    assert!(
        said.contains("--no-record") && said.contains(path),
        "{said}"
    );
}

#[test]
fn without_the_record_that_was_wanted_viewers_have_a_temporary_one() {
    let house = TestHome::new();
    File::create(house.path("file")).unwrap();
    let file = house.path("file/s.jsonl");
    let mut run = house.demo(&["--session-file", file.to_str().unwrap()]);
    run.round(INITIALIZE);
    let rows = house.ctl(&["get"]);
    assert_eq!(rows["rows"].as_array().unwrap().len(), 2, "{rows}");
    run.end();
}

#[test]
fn a_listener_says_where_it_listens_before_it_warns() {
    let folder = tempfile::tempdir().unwrap();
    let file = impossible(&folder);
    let target = ["--", PROXY, "demo-server", "stdio"];
    let listen = ["proxy", "--listen", "http", "--listen-port", "0"];
    // `start` wants the first line to be `listening on`.
    let proxy =
        ListeningProgram::start(&[&listen[..], &["--session-file", &file], &target].concat());
    assert_eq!(proxy.post(&[], INITIALIZE).status, 200);
    let (_, rest) = proxy.end("-INT");
    let warning = rest.lines().next().unwrap();
    let path = file.strip_suffix("/s.jsonl").unwrap();
    assert!(warning.contains(path), "{rest}");
}

/// A proxy whose files cannot grow over 4 KiB: what a full disk is, without one.
fn on_a_small_disk(flags: &[&str], file: &Path) -> Command {
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            "trap '' XFSZ; ulimit -S -f 8; exec \"$@\"",
            "sh",
            PROXY,
        ])
        .args([
            "proxy",
            "--listen",
            "stdio",
            "--no-control",
            "--session-file",
        ])
        .arg(file)
        .args(flags)
        .args(["--", "cat"]);
    command
}

#[test]
fn a_disk_that_is_full_is_told_once_and_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let mut child = on_a_small_disk(&["--quiet"], &file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    // One after the other, so that each has a write of its own.
    for _ in 0..50 {
        writeln!(stdin, "{PING}").unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), PING);
    }
    drop((stdin, stdout));
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let told = said.lines().filter(|line| line.contains("s.jsonl"));
    assert_eq!(told.count(), 1, "{said}");
    let kept = std::fs::read(&file).unwrap();
    assert!(kept.len() <= 4096 && kept.ends_with(b"\n"), "whole lines");
    assert!(text(&kept).contains("\"method\":\"ping\""));
}

#[test]
fn a_disk_that_is_full_ends_a_run_that_is_told_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let input = format!("{PING}\n").repeat(50);
    let output = feed(
        &mut on_a_small_disk(&["--on-record-error", "stop"], &file),
        &input,
    );
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("--on-record-error stop"), "{said}");
    // What went on is in the record.
    let passed = text(&output.stdout)
        .lines()
        .filter(|line| *line == PING)
        .count();
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(
        passed < 50 && kept.matches("\"t\":\"msg\"").count() >= passed,
        "{kept}"
    );
}

#[test]
fn a_client_is_answered_when_its_request_cannot_be_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let mut command = on_a_small_disk(&["--quiet", "--on-record-error", "stop"], &file);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut last = String::new();
    for _ in 0..50 {
        writeln!(stdin, "{PING}").unwrap();
        last.clear();
        stdout.read_line(&mut last).unwrap();
        if last.trim_end() != PING {
            break;
        }
    }
    // Stdin is still open: the client does nothing to get this.
    assert_eq!(error_answer(&last).1, -31014, "{last}");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    drop(stdin);
}

#[test]
fn a15_a_run_that_stops_because_of_the_disk_says_so_in_its_record() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let mut command = on_a_small_disk(&["--quiet", "--on-record-error", "stop"], &file);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let large = "x".repeat(4_000);
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{PING}").unwrap();
    writeln!(stdin, r#"{{"jsonrpc":"2.0","method":"{large}"}}"#).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let kept = std::fs::read_to_string(&file).unwrap();
    let lines = record_lines(&kept);
    assert_eq!(lines.last().unwrap()["t"], "end", "{kept}");
}

#[test]
fn each_outage_of_the_disk_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let mut child = on_a_small_disk(&["--quiet"], &file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut rounds = |count: usize| {
        for _ in 0..count {
            writeln!(stdin, "{PING}").unwrap();
            stdout.read_line(&mut String::new()).unwrap();
        }
    };
    let pid = child.id().to_string();
    let allow = |bytes: &str| {
        let limit = format!("--fsize={bytes}:");
        let mut prlimit = Command::new("prlimit");
        let set = prlimit.args(["--pid", &pid, &limit]).status().unwrap();
        assert!(set.success());
    };
    rounds(50);
    allow("unlimited");
    rounds(2);
    allow("4096");
    rounds(2);
    drop((stdin, stdout));
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    let told = said.lines().filter(|line| line.contains("s.jsonl"));
    assert_eq!(told.count(), 2, "{said}");
}

/// Three finished records, together larger than the state directory may be; the oldest first.
fn three_large_records(place: &TestStore) -> Vec<PathBuf> {
    let store = |number| {
        let mut sample = place.stored(number);
        sample.client(PING);
        sample.end();
        let path = sample.path().to_owned();
        // Nothing of it is on the disk: the file that goes with it is one hole.
        let hole = File::create(path.with_extension("jsonl.torn")).unwrap();
        hole.set_len(900 << 20).unwrap();
        path
    };
    (1..=3).map(store).collect()
}

#[test]
fn a_run_that_starts_keeps_the_state_directory_under_two_gibibytes() {
    let place = TestStore::new();
    let paths = three_large_records(&place);
    let listed = place.print(&["sessions"]);
    assert!(listed.contains("2.6 GiB"), "{listed}");
    let mut run = place
        .command(&["proxy", "--listen", "stdio", "--", "cat"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    until("the oldest is gone", || !paths[0].exists());
    assert!(!paths[0].with_extension("jsonl.torn").exists());
    drop(run.stdin.take());
    assert!(run.wait().unwrap().success());
    assert!(paths[1].exists() && paths[2].exists());
    assert_eq!(place.print(&["sessions", "--json"]).lines().count(), 3);
}

#[test]
fn records_that_are_removed_at_the_start_are_reported_on_stderr() {
    let place = TestStore::new();
    let paths = three_large_records(&place);
    let mut run = place
        .command(&["proxy", "--listen", "stdio", "--", "cat"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = BufReader::new(run.stderr.take().unwrap());
    let mut lines = stderr.lines().map(Result::unwrap);
    // How much was removed, and from where.
    let told = lines.find(|line| line.contains("900 MiB")).unwrap();
    assert!(told.contains(place.store().to_str().unwrap()), "{told}");
    assert!(!paths[0].exists());
    drop(run.stdin.take());
    assert_eq!(lines.filter(|line| line.contains("MiB")).count(), 0);
    assert!(run.wait().unwrap().success());
}

#[test]
fn the_export_of_a_run_goes_with_its_record() {
    let place = TestStore::new();
    let flags = ["proxy", "--listen", "stdio", "--output-format", "json"];
    let mut command = place.command(&[&flags[..], &["--", "cat"]].concat());
    let output = feed(&mut command, &format!("{PING}\n"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let names = || {
        let entries = std::fs::read_dir(place.store()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect::<Vec<_>>()
    };
    assert!(
        names().iter().any(|name| name.ends_with(".json")),
        "{:?}",
        names()
    );
    place.print(&["prune", "--all", "-y"]);
    assert_eq!(names(), Vec::<String>::new());
}
