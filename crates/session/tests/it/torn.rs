//! What a crash leaves behind.

use crate::sample::*;
use mcp_proxy_session::*;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

/// Cut at every byte of the last records: all whole lines are there, the rest is reported and can be cut off.
#[test]
fn a_record_cut_anywhere_keeps_every_whole_line() {
    let (sample, path) = everything();
    let whole = std::fs::read(&path).unwrap();
    let header_len = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let cut_path = sample.beside("cut.jsonl");
    // Every byte of the last three lines, every 97th of the rest.
    let (early, late) = (whole.len() - 1200, whole.len());
    for cut in (header_len..early).step_by(97).chain(early..=late) {
        std::fs::write(&cut_path, &whole[..cut]).unwrap();
        let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        let last = whole[..cut]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .unwrap()
            + 1;
        let session = SessionRecord::open(&cut_path).unwrap();
        assert_eq!(session.records().count(), lines, "cut at {cut}");
        assert_eq!(session.torn(), (cut - last) as u64);
        assert_eq!(session.damaged(), 0);
        for index in 0..session.len() {
            session.message(index).unwrap();
        }
        // Repairing forces the file onto the disk, which takes its time.
        if cut % 50 == 0 || cut == last {
            let repaired = repair(&cut_path).unwrap();
            assert_eq!(std::fs::read(&cut_path).unwrap(), &whole[..last]);
            assert_eq!(repaired.is_some(), cut != last);
            if let Some(repaired) = repaired {
                assert_eq!(repaired.bytes, (cut - last) as u64);
                assert_eq!(std::fs::read(&repaired.kept).unwrap(), &whole[last..cut]);
            }
        }
    }
}

#[test]
fn a_file_without_a_whole_header_is_no_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jsonl");
    for content in [
        &b""[..],
        b"{\"t\":\"session\"",
        b"hello\n",
        b"{}\n",
        b"{\"t\":\"session\",\"format\":2}\n",
    ] {
        std::fs::write(&path, content).unwrap();
        assert!(matches!(
            SessionRecord::open(&path),
            Err(Error::NotARecord { .. })
        ));
        assert!(repair(&path).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }
    for other in [u64::from(FORMAT) - 2, u64::from(FORMAT) + 1] {
        let line = format!("{{\"t\":\"session\",\"format\":{other}}}\n");
        std::fs::write(&path, line).unwrap();
        assert!(matches!(
            SessionRecord::open(&path),
            Err(Error::Format { format, .. }) if format == other
        ));
    }
}

#[test]
fn a_live_record_is_not_repaired() {
    let mut sample = SampleRecord::new();
    sample.client("{}");
    sample.flush();
    let mut file = OpenOptions::new().append(true).open(sample.path()).unwrap();
    file.write_all(b"{\"t\":\"ms").unwrap();
    let before = std::fs::read(sample.path()).unwrap();
    assert!(matches!(repair(sample.path()), Err(Error::Locked { .. })));
    assert_eq!(std::fs::read(sample.path()).unwrap(), before);
    assert!(is_live(sample.path()));
    let (path, _folder) = sample.killed();
    assert!(!is_live(&path));
    assert_eq!(repair(&path).unwrap().unwrap().bytes, 8);
    assert_eq!(repair(path).unwrap(), None);
}

#[test]
fn what_is_cut_off_is_kept_and_a_read_only_record_stays_as_it_is() {
    let (sample, path) = everything();
    let whole = std::fs::read(&path).unwrap();
    let torn = sample.beside("torn.jsonl");
    std::fs::write(&torn, &whole[..whole.len() - 10]).unwrap();
    let mut permissions = std::fs::metadata(&torn).unwrap().permissions();
    permissions.set_mode(0o400);
    std::fs::set_permissions(&torn, permissions.clone()).unwrap();
    assert!(matches!(repair(&torn), Err(Error::Io { .. })));
    assert_eq!(std::fs::read(&torn).unwrap(), &whole[..whole.len() - 10]);
    permissions.set_mode(0o600);
    std::fs::set_permissions(&torn, permissions).unwrap();
    for name in ["torn.jsonl.torn", "torn.jsonl.torn.2"] {
        std::fs::write(&torn, &whole[..whole.len() - 10]).unwrap();
        let cut = repair(&torn).unwrap().unwrap();
        assert_eq!(cut.kept, sample.folder().join(name));
        let kept = std::fs::metadata(&cut.kept).unwrap();
        assert_eq!(
            (kept.len(), kept.permissions().mode() & 0o777),
            (cut.bytes, 0o600)
        );
    }
    assert_eq!(repair(&torn).unwrap(), None);
}

#[test]
fn a_damaged_line_in_the_middle_is_skipped_and_counted() {
    let mut sample = SampleRecord::new();
    sample.client("{\"method\":\"a\"}");
    let mut text = sample.text();
    text.push_str("garbage\n");
    let second = text
        .lines()
        .nth(1)
        .unwrap()
        .replace("\"sequence\":1", "\"sequence\":2");
    text.push_str(&second);
    text.push('\n');
    let path = sample.beside("damaged.jsonl");
    std::fs::write(&path, &text).unwrap();
    let session = SessionRecord::open(&path).unwrap();
    assert_eq!((session.len(), session.damaged()), (2, 1));
    assert_eq!(session.find(2), Some(1));
}

#[test]
fn unknown_kinds_of_record_are_kept() {
    let mut sample = SampleRecord::new();
    sample.client("{}");
    let mut text = sample.text();
    text.push_str("{\"t\":\"find\",\"rule\":\"from the future\"}\n");
    let path = sample.beside("newer.jsonl");
    std::fs::write(&path, &text).unwrap();
    let session = SessionRecord::open(&path).unwrap();
    let kinds: Vec<String> = session
        .records()
        .map(|record| record.unwrap().kind().to_owned())
        .collect();
    assert_eq!(kinds, ["session", "msg", "find"]);
    let mut copy = Vec::new();
    export::exporter("jsonl")
        .unwrap()
        .export(&session, &mut copy, &mut |_, _| {})
        .unwrap();
    assert_eq!(copy, text.as_bytes());
}

/// The writer's half of the test below: it says a number once that message is flushed, and never ends by itself.
#[test]
#[ignore = "run by kill_9_loses_no_message_that_was_flushed"]
fn endless_writer() {
    let Some(path) = std::env::var_os("RECORD_HERE") else {
        return;
    };
    let mut recorder =
        Recorder::create(RecordLocation::File(path.into()), options(), &header()).unwrap();
    for sequence in 1.. {
        let body = format!(
            "{{\"id\":{sequence},\"method\":\"{}\"}}",
            "m".repeat(sequence as usize % 5000)
        );
        let message = mcp_proxy_wire::Message::parse(body);
        recorder.record_message(&new_message(
            sequence,
            &mcp_proxy_wire::TransportEnvelope::Bare,
            NewBody::Whole(&message),
        ));
        recorder.flush().unwrap();
        println!("flushed {sequence}");
    }
}

#[test]
fn kill_9_loses_no_message_that_was_flushed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("killed.jsonl");
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "torn::endless_writer",
            "--ignored",
            "--nocapture",
        ])
        .env("RECORD_HERE", &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(writer.stdout.take().unwrap()).lines();
    let flushed = |line: String| {
        line.rsplit_once("flushed ")
            .map(|(_, number)| number.parse::<u64>().unwrap())
    };
    let mut last = said
        .by_ref()
        .map_while(Result::ok)
        .filter_map(flushed)
        .nth(3000)
        .unwrap();
    assert!(is_live(&path));
    writer.kill().unwrap();
    writer.wait().unwrap();
    // What it said before it died counts too.
    last = said
        .map_while(Result::ok)
        .filter_map(flushed)
        .last()
        .unwrap_or(last);
    assert!(!is_live(&path));
    repair(&path).unwrap();
    let session = SessionRecord::open(&path).unwrap();
    assert!(session.len() as u64 >= last, "{} of {last}", session.len());
    for index in (0..session.len()).step_by(100) {
        assert_eq!(session.message(index).unwrap().sequence, index as u64 + 1);
    }
}
