//! A full disk, played by `/dev/full` and by a file-size limit of our own: a file that was closed to writing.

use super::*;
use crate::PeerInfo;
use crate::testing::{self, SampleRecord, header};
use mcp_proxy_wire::Transport;
use std::fs::OpenOptions;
use std::io::ErrorKind;

fn options(on_error: RecordErrorPolicy) -> RecordOptions {
    RecordOptions {
        on_error,
        ..testing::options()
    }
}

fn full() -> File {
    OpenOptions::new().append(true).open("/dev/full").unwrap()
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::StorageFull)
}

#[test]
fn stop_returns_the_error() {
    let error = Recorder::start(
        full(),
        "/dev/full".into(),
        options(RecordErrorPolicy::Stop),
        &header(),
    )
    .unwrap_err();
    assert!(is_full(&error), "{}", error.chain());
}

#[test]
fn warn_goes_on_says_so_once_and_catches_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let mut recorder = Recorder::start(
        full(),
        path.clone(),
        options(RecordErrorPolicy::Warn),
        &header(),
    )
    .unwrap();
    let no_space = "(os error 28)";
    assert!(recorder.warning().unwrap().contains(no_space));
    for _ in 0..3 {
        recorder.record_event(SystemTime::now(), &RecordEvent::Note { text: "lost" });
        recorder.flush().unwrap();
    }
    assert_eq!((recorder.warning(), recorder.lost()), (None, 3));
    // Room again.
    recorder.file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .unwrap();
    recorder.torn = false;
    recorder.record_event(SystemTime::now(), &RecordEvent::Note { text: "kept" });
    recorder.flush().unwrap();
    assert_eq!(recorder.lost(), 0);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("{\"t\":\"session\""));
    assert!(lines[1].contains("\"kind\":\"gap\",\"lost\":3"));
    assert!(lines[2].contains("kept"));
    // The next trouble is news again.
    recorder.file = full();
    recorder.record_event(SystemTime::now(), &RecordEvent::Note { text: "lost" });
    recorder.flush().unwrap();
    assert!(recorder.warning().is_some());
}

#[test]
fn a_write_that_could_not_be_taken_back_does_not_spoil_the_next_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .unwrap();
    let mut recorder = Recorder::start(
        file,
        path.clone(),
        options(RecordErrorPolicy::Warn),
        &header(),
    )
    .unwrap();
    recorder.file.write_all(b"{\"t\":\"msg\",\"half").unwrap();
    recorder.torn = true;
    recorder.record_event(SystemTime::now(), &RecordEvent::Note { text: "whole" });
    recorder.flush().unwrap();
    let session = SessionRecord::open(&path).unwrap();
    assert_eq!(session.damaged(), 1);
    assert_eq!(session.records().last().unwrap().unwrap().kind(), "note");
}

#[test]
fn a_flush_is_one_write() {
    // A pipe in packet mode would show it; a socket of datagrams does without anything special.
    let (ours, theirs) = std::os::unix::net::UnixDatagram::pair().unwrap();
    let file = File::from(std::os::fd::OwnedFd::from(ours));
    let mut recorder = Recorder::start(
        file,
        "a socket".into(),
        options(RecordErrorPolicy::Stop),
        &header(),
    )
    .unwrap();
    let mut buffer = vec![0; 65536];
    theirs.recv(&mut buffer).unwrap();
    for number in 0..64 {
        recorder.record_event(
            SystemTime::now(),
            &RecordEvent::Note {
                text: &format!("note {number}"),
            },
        );
    }
    recorder.flush().unwrap();
    let len = theirs.recv(&mut buffer).unwrap();
    assert_eq!(
        buffer[..len].iter().filter(|byte| **byte == b'\n').count(),
        64
    );
    assert_eq!(buffer[len - 1], b'\n');
}

/// A record whose folder was removed after its first message, a while ago.
fn removed(on_error: RecordErrorPolicy) -> SampleRecord {
    let mut sample = SampleRecord::with(options(on_error), &header());
    let peer = PeerInfo::new(Transport::Stdio);
    let opened = RecordEvent::Open {
        connection: 1,
        client: &peer,
        server: &peer,
        parent: None,
    };
    sample.recorder.record_event(SystemTime::now(), &opened);
    sample.client("{}");
    sample.flush();
    std::fs::remove_dir_all(sample.folder()).unwrap();
    sample.recorder.seen_at -= chain::LOOK_PAUSE;
    sample
}

#[test]
fn a15_a_record_that_is_removed_begins_again_and_the_user_is_told() {
    let mut sample = removed(RecordErrorPolicy::Warn);
    sample.client("{}");
    sample.flush();
    assert!(sample.recorder.warning().is_some());
    // It is there, so nothing is said again.
    sample.recorder.seen_at -= chain::LOOK_PAUSE;
    sample.client("{}");
    assert_eq!(sample.recorder.warning(), None);
    sample.end();
    let session = sample.open();
    assert_eq!((session.len(), session.damaged()), (2, 0));
    let text = sample.text();
    let lines = ["session", "gap", "open", "msg", "end"];
    let places = lines.map(|word| text.find(&format!("\"{word}\"")));
    assert!(places.is_sorted() && places[0].is_some(), "{text}");
}

#[test]
fn a15_a_record_that_is_removed_stops_the_run_if_that_was_wanted() {
    let mut sample = removed(RecordErrorPolicy::Stop);
    let path = sample.path().to_path_buf();
    let message = testing::new_message(2, &TransportEnvelope::Bare, NewBody::Empty);
    sample.recorder.record_message(&message);
    assert!(sample.recorder.flush().is_err());
    assert!(!path.exists());
}
