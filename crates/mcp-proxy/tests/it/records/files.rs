//! Files of records as users name them: exports opened as records, session files of every kind, parts, failed starts.

use std::fs::OpenOptions;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::process::Stdio;

use mcp_proxy_session::testing::{SampleRecord, header, options};
use mcp_proxy_session::{RecordLocation, RecordOptions, Recorder};
use serde_json::Value;

use super::sample::*;
use crate::programs::record_lines;

const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";

/// Runs a proxy in front of `cat`, with one message.
fn proxy(place: &TestStore, flags: &[&str]) -> CommandOutput {
    let words = [&["proxy", "--listen", "stdio"], flags, &["--", "cat"]].concat();
    fed(place, &words)
}

fn fed(place: &TestStore, words: &[&str]) -> CommandOutput {
    let mut command = place.command(words);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    // A program that refuses to start does not read it.
    let _ = child.stdin.take().unwrap().write_all(PING.as_bytes());
    let output = child.wait_with_output().unwrap();
    CommandOutput {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn names(place: &TestStore) -> Vec<String> {
    let entries = std::fs::read_dir(place.folder.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| !name.ends_with(".idx")).collect();
    names.sort();
    names
}

fn json(place: &TestStore, name: &str) -> Value {
    let text = std::fs::read_to_string(place.path(name)).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{name} is not JSON: {text}"))
}

#[test]
fn a_session_file_called_json_is_json_and_its_record_is_next_to_it() {
    let place = TestStore::new();
    for flags in [
        &["--session-file", "x.json"][..],
        &["--session-file", "x.json", "--output-format", "json"],
    ] {
        let ran = proxy(&place, flags);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    assert_eq!(
        names(&place),
        ["x.2.json", "x.2.jsonl", "x.json", "x.jsonl"]
    );
    for number in ["", ".2"] {
        let session = json(&place, &format!("x{number}.json"));
        assert_eq!(session["messages"].as_array().unwrap().len(), 2);
        let record = std::fs::read_to_string(place.path(&format!("x{number}.jsonl"))).unwrap();
        assert_eq!(record_lines(&record)[0]["id"], session["id"]);
    }
    let ran = proxy(
        &place,
        &["--session-file", "x.json", "--output-format", "har"],
    );
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}

#[test]
fn a_folder_or_a_device_is_refused_as_a_session_file() {
    let place = TestStore::new();
    std::fs::create_dir(place.path("ex")).unwrap();
    for refused in ["ex", "/dev/full"] {
        let ran = proxy(&place, &["--session-file", refused]);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(2), ""),
            "{}",
            ran.stderr
        );
    }
    assert_eq!(names(&place), ["ex"]);
}

#[test]
fn a_start_that_fails_leaves_no_record() {
    let place = TestStore::new();
    let mut sample = place.stored(1);
    sample.client(PING.trim_end());
    sample.end();
    let before = std::fs::read_dir(place.store()).unwrap().count();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let failing: [&[&str]; 3] = [
        &[
            "proxy",
            "--listen",
            "http",
            "--headless",
            "--listen-port",
            &port,
            "--",
            "cat",
        ],
        &[
            "proxy",
            "--rules",
            "nofile.toml",
            "--listen",
            "stdio",
            "--",
            "cat",
        ],
        &["proxy", "--transport", "sse", "--", "cat"],
    ];
    for words in failing {
        let ran = fed(&place, words);
        assert_ne!(ran.code, Some(0), "{words:?}");
        let records = std::fs::read_dir(place.store()).unwrap();
        assert_eq!(records.count(), before, "{words:?}: {}", ran.stderr);
    }
    assert!(place.print(&["inspect"]).contains("ping"));
}

#[test]
fn an_export_is_read_like_the_record_it_came_from() {
    let place = TestStore::new();
    everything(&mut place.sample());
    let exported = place.print(&["export", "session.jsonl"]);
    std::fs::write(place.path("s.json"), &exported).unwrap();
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(value(&place.print(&["export", "s.json"])), value(&exported));
    let shown = place.print(&["inspect", "s.json", "read_file"]);
    assert!(shown.contains("↩ tools/call read_file"), "{shown}");
    // What is read is not kept.
    assert!(!place.store().exists());
    // `open` has no terminal here, but gets as far as to say so.
    let opened = place.fail(&["open", "s.json"], 1);
    assert!(opened.contains("inspect"), "{opened}");
}

#[test]
fn without_a_name_the_newest_record_is_meant() {
    let place = TestStore::new();
    for number in [1, 2] {
        let mut sample = place.stored(number);
        sample.client(format!(r#"{{"method":"number/{number}"}}"#));
        sample.end();
    }
    assert!(place.print(&["inspect"]).contains("number/2"));
    assert!(place.print(&["export"]).contains("number/2"));
    assert!(
        place
            .print(&["inspect", "--filter", "number/2"])
            .contains("1 of 1 message")
    );
}

fn in_files(place: &TestStore) -> SampleRecord {
    let options = RecordOptions {
        max_size: Some(1_500),
        ..options()
    };
    let location = RecordLocation::Folder(place.store());
    let recorder = Recorder::create(location, options, &header()).unwrap();
    let mut sample = SampleRecord::writing(recorder);
    for id in 1..=6 {
        let call = sample.call(id, "tool", "{}");
        sample.flush();
        sample.result(id, call, r#"{"content":[]}"#);
        sample.flush();
    }
    sample
}

#[test]
fn a_record_of_several_files_is_one_row_and_every_command_reads_all_of_them() {
    let place = TestStore::new();
    let mut sample = in_files(&place);
    sample.end();
    let files = sample.recorder.paths().to_vec();
    assert!(files.len() > 1);
    let listed = place.print(&["sessions", "--json"]);
    let listed = record_lines(&listed);
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (&listed[0]["files"], &listed[0]["messages"]),
        (&files.len().into(), &12.into())
    );
    let table = place.print(&["sessions"]);
    assert!(
        table.contains(&format!("({} files)", files.len())),
        "{table}"
    );
    let name = |index: usize| files[index].file_name().unwrap().to_str().unwrap();
    // Whichever way it is named, it is the whole session.
    let names = ["LAST", &header().id, name(0), name(1)];
    for record in names {
        for follow in [&[][..], &["--follow"]] {
            let words = [&["inspect", record, "--json"], follow].concat();
            let all = record_lines(&place.print(&words));
            let numbers = all
                .iter()
                .map(|message| message["sequence"].as_u64().unwrap());
            assert!(numbers.eq(1..=12), "{record} {follow:?}: {all:?}");
            let answer = all.last().unwrap();
            assert_eq!(answer["asked"]["name"], "tool", "{answer}");
        }
        let document: Value = serde_json::from_str(&place.print(&["export", record])).unwrap();
        assert_eq!(document["messages"].as_array().unwrap().len(), 12);
        assert!(document["ended_at"].is_string(), "{document}");
        let lines = place.print(&["export", record, "--output-format", "jsonl"]);
        assert_eq!(lines.matches(r#"{"t":"msg""#).count(), 12, "{lines}");
        assert_eq!(lines.matches(r#"{"t":"end""#).count(), 1, "{lines}");
    }
    // No file is overwritten by an export of the session.
    let file = files[1].to_str().unwrap();
    let refused = place.run(&["export", name(0), "--output", file, "--force"]);
    assert_ne!(refused.code, Some(0));
    drop(sample);
    let removed = place.print(&["prune", &header().id, "-y"]);
    assert!(removed.contains("Removed 1 record "), "{removed}");
    assert!(files.iter().all(|file| !file.exists()));
}

#[test]
fn a_run_continues_its_record_in_a_new_file_and_says_so() {
    let place = TestStore::new();
    let mut command = place.command(&[
        "proxy",
        "--listen",
        "stdio",
        "--session-file",
        "r.jsonl",
        "--max-record-size",
        "2K",
        "--output-format",
        "json",
        "--",
        "cat",
    ]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    for id in 1..=9 {
        writeln!(stdin, r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
        assert!(line.contains("ping"));
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("r.2.jsonl"), "{stderr}");
    // One export has all of them.
    let exported = json(&place, "r.json");
    assert_eq!(exported["messages"].as_array().unwrap().len(), 18);
    assert!(!place.path("r.2.json").exists());
}

#[test]
fn a_huge_file_without_lines_is_not_read_into_memory() {
    let place = TestStore::new();
    std::fs::create_dir_all(place.store()).unwrap();
    let path = place.store().join("huge.jsonl");
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .unwrap();
    file.write_all(br#"{"t":"session","#).unwrap();
    file.seek(SeekFrom::Start(1 << 30)).unwrap();
    file.write_all(b"}").unwrap();
    // More address space than the program needs by far, and less than the file has bytes.
    let limited = |words: &str| {
        let script = format!(
            "ulimit -v 900000; exec {} {words}",
            env!("CARGO_BIN_EXE_mcp-proxy")
        );
        let mut command = std::process::Command::new("sh");
        command
            .args(["-c", &script])
            .env("XDG_STATE_HOME", place.path("state"));
        command.stdin(Stdio::null()).output().unwrap()
    };
    let listed = limited("sessions");
    assert!(listed.status.success(), "{listed:?}");
    let inspected = limited(&format!("inspect {}", path.display()));
    assert_eq!(inspected.status.code(), Some(1), "{inspected:?}");
}

#[test]
fn a_pipe_in_place_of_a_record_is_refused_at_once() {
    let place = TestStore::new();
    let made = std::process::Command::new("mkfifo")
        .arg(place.path("r.jsonl"))
        .status();
    assert!(made.unwrap().success());
    for words in [
        &["inspect", "r.jsonl"][..],
        &["export", "r.jsonl"],
        &["mock", "r.jsonl"],
    ] {
        place.fail(words, 1);
    }
}
