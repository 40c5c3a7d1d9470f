//! A record that grows to its limit continues in a new one, and both are read as one.

use mcp_proxy_session::testing::{SampleRecord, header, options};
use mcp_proxy_session::{
    CredentialRedaction, Durability, Filter, PeerInfo, RecordErrorPolicy, RecordEvent,
    RecordLocation, RecordOptions, Recorder, Redaction, RedactionRules, SessionRecord, copy_record,
    is_live, store,
};
use mcp_proxy_wire::Transport;
use std::path::{Path, PathBuf};

fn limited(max_size: u64) -> SampleRecord {
    let options = RecordOptions {
        max_size: Some(max_size),
        ..options()
    };
    SampleRecord::with(options, &header())
}

/// Writes calls and their answers, each with a write of its own.
fn talk(record: &mut SampleRecord, calls: u64) {
    for id in 1..=calls {
        let request = record.call(id, "tool", "{}");
        record.flush();
        record.result(id, request, "{}");
        record.flush();
    }
}

fn sequences(session: &SessionRecord) -> Vec<u64> {
    session.rows().iter().map(|row| row.sequence()).collect()
}

#[test]
fn files_name_each_other_and_are_read_as_one_whichever_is_opened() {
    let mut record = limited(4_000);
    talk(&mut record, 20);
    record.end();
    let paths = record.recorder.paths().to_vec();
    assert!(paths.len() > 2);
    for path in &paths {
        let session = SessionRecord::open(path).unwrap();
        assert!(session.paths().eq(paths.iter().map(PathBuf::as_path)));
        assert_eq!(sequences(&session), (1..=40).collect::<Vec<u64>>());
        assert_eq!(session.missing_beginning(), None);
        assert_eq!(session.missing_continuation(), None);
        assert_eq!((session.damaged(), session.oldest_sequence()), (0, 1));
        assert!(session.end().is_some());
    }
    let text = |path: &Path| std::fs::read_to_string(path).unwrap();
    let last_line = text(&paths[0]).lines().last().unwrap().to_owned();
    assert!(last_line.contains(r#""t":"end""#) && last_line.contains(r#""why":"continued""#));
    assert!(last_line.contains(r#""continued_in":"session.2.jsonl""#));
    assert!(text(&paths[1]).contains(r#""continues":"session.jsonl""#));
    assert!(paths.iter().all(|path| text(path).len() < 6_000));
}

#[test]
fn a_new_file_is_told_once() {
    let mut record = limited(1_500);
    assert_eq!(record.recorder.take_new_file(), None);
    talk(&mut record, 5);
    let told = record.recorder.take_new_file().unwrap();
    assert_eq!(told, record.path());
    assert_eq!(record.recorder.take_new_file(), None);
}

#[test]
fn a_session_whose_first_file_was_removed_begins_with_the_next_and_knows_its_connections() {
    let mut record = limited(1_500);
    let stdio = PeerInfo::new(Transport::Stdio);
    let named = PeerInfo {
        name: Some("files".to_owned()),
        ..stdio.clone()
    };
    record.opened(1, &stdio, &named);
    record.opened(2, &stdio, &stdio);
    record.closed(2, "over");
    talk(&mut record, 8);
    let paths = record.recorder.paths();
    std::fs::remove_file(&paths[0]).unwrap();
    let session = SessionRecord::open(paths.last().unwrap()).unwrap();
    assert_eq!(session.missing_beginning().as_ref(), Some(&paths[0]));
    assert_eq!(session.paths().count(), paths.len() - 1);
    let first = session.row(0).unwrap().sequence();
    assert!(first > 1 && session.oldest_sequence() == first);
    assert_eq!((session.find(1), session.at_or_after(1)), (None, 0));
    assert_eq!(session.server_name(1).unwrap(), "files");
    assert_eq!(session.connections().count(), 1);
}

#[test]
fn a_session_whose_last_file_is_missing_has_no_end() {
    let mut record = limited(1_500);
    talk(&mut record, 8);
    record.end();
    let paths = record.recorder.paths();
    let last = paths.last().unwrap();
    std::fs::remove_file(last).unwrap();
    let session = SessionRecord::open(&paths[0]).unwrap();
    assert_eq!(session.end(), None);
    assert_eq!(session.missing_continuation().as_ref(), Some(last));
}

#[test]
fn files_that_name_each_other_in_a_circle_are_read_once() {
    let mut record = limited(1_500);
    talk(&mut record, 4);
    record.end();
    let paths = record.recorder.paths();
    let (first, last) = (&paths[0], paths.last().unwrap());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let change = |path: &Path, from: &str, to: String| {
        let text = std::fs::read_to_string(path).unwrap();
        std::fs::write(path, text.replacen(from, &to, 1)).unwrap();
    };
    let continues = format!(r#"{{"continues":"{}","#, name(last));
    change(first, "{", continues);
    let continued = format!(r#""continued_in":"{}","messages""#, name(first));
    change(last, r#""messages""#, continued);
    // The type of a line comes first, so that file stops being a record; the others still are.
    assert!(SessionRecord::open(first).is_ok());
    assert_eq!(SessionRecord::open(last).unwrap().len(), 8);
    assert!(!store::list(record.folder()).unwrap().is_empty());
}

#[test]
fn messages_that_share_a_write_stay_in_one_file() {
    let mut record = limited(1_000);
    for id in 1..=20 {
        record.call(id, "tool", "{}");
    }
    record.flush();
    assert_eq!(record.recorder.paths().len(), 1);
    record.call(21, "tool", "{}");
    record.flush();
    assert_eq!(record.recorder.paths().len(), 2);
}

#[test]
fn all_files_are_listed_as_one_record() {
    // The sync thread has the old files open for up to a second.
    let options = RecordOptions {
        durability: Durability::Interval,
        max_size: Some(2_000),
        ..options()
    };
    let mut record = SampleRecord::with(options, &header());
    talk(&mut record, 10);
    let listed = store::list(record.folder()).unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].paths, record.recorder.paths());
    assert!(listed[0].live && listed[0].ended_at.is_none());
    let sizes = listed[0].paths.iter().map(|path| path.metadata().unwrap());
    let size: u64 = sizes.map(|facts| facts.len()).sum();
    assert!(listed[0].bytes >= size);
    // A copy has the whole session in one file, whichever file is named.
    let copy = record.beside("copy.jsonl");
    copy_record(&listed[0].paths[1], &copy).unwrap();
    let copy = SessionRecord::open(&copy).unwrap();
    assert_eq!((copy.paths().count(), copy.len()), (1, 20));
    assert_eq!((copy.missing_continuation(), copy.damaged()), (None, 0));
}

#[test]
fn a_file_that_cannot_be_made_is_reported_and_the_old_one_is_used() {
    let options = RecordOptions {
        on_error: RecordErrorPolicy::Warn,
        max_size: Some(1_000),
        ..options()
    };
    let folder = tempfile::tempdir().unwrap();
    let (place, moved) = (folder.path().join("a"), folder.path().join("b"));
    let location = RecordLocation::File(place.join("session.jsonl"));
    let recorder = Recorder::create(location, options, &header()).unwrap();
    let mut record = SampleRecord::writing(recorder);
    // A file where the folder was.
    std::fs::rename(&place, &moved).unwrap();
    std::fs::write(&place, "in the way").unwrap();
    talk(&mut record, 8);
    assert!(record.recorder.warning().is_some());
    assert_eq!(record.recorder.paths().len(), 1);
    let session = SessionRecord::open(moved.join("session.jsonl")).unwrap();
    assert_eq!(session.len(), 16);
}

#[test]
fn every_file_is_forced_onto_the_disk() {
    let options = RecordOptions {
        durability: Durability::Fsync,
        max_size: Some(1_500),
        ..options()
    };
    let mut record = SampleRecord::with(options, &header());
    talk(&mut record, 8);
    let disk = record.recorder.disk_sync().unwrap();
    let upto = disk.written();
    let waker = std::task::Waker::noop();
    let mut context = std::task::Context::from_waker(waker);
    let synced = loop {
        if let std::task::Poll::Ready(synced) = disk.poll_synced(&mut context, upto) {
            break synced;
        }
        std::thread::yield_now();
    };
    assert_eq!(synced, Ok(()));
    assert!(record.recorder.paths().len() > 1);
}

/// A session in several files with all that one file can say about messages of another, and the same in one file.
fn divided_and_whole() -> (SampleRecord, SampleRecord) {
    let write = |mut record: SampleRecord| {
        let stdio = PeerInfo::new(Transport::Stdio);
        let named = PeerInfo {
            name: Some("files".to_owned()),
            ..stdio.clone()
        };
        record.opened(1, &stdio, &named);
        let slow = record.call(1, "slow", "{}");
        let held = record.call(2, "held", "{}");
        record.verdict("hold", held).write();
        record.flush();
        for id in 3..6 {
            let large = "x".repeat(64_000);
            let request = record.call(id, "large", &format!(r#"{{"text":"{large}"}}"#));
            record.flush();
            record.result(id, request, "{}");
            record.flush();
        }
        record.result(1, slow, "{}");
        record.verdict("drop", held).write();
        let undelivered = RecordEvent::Undelivered {
            sequence: slow,
            why: "gone",
        };
        let now = std::time::SystemTime::UNIX_EPOCH;
        record.recorder.record_event(now, &undelivered);
        record.flush();
        record.end();
        record
    };
    let whole = RecordOptions {
        max_size: None,
        ..options()
    };
    (
        write(limited(64_000)),
        write(SampleRecord::with(whole, &header())),
    )
}

fn exported(format: &str, session: &SessionRecord) -> String {
    let mut out = Vec::new();
    let exporter = mcp_proxy_session::export::exporter(format).unwrap();
    exporter.export(session, &mut out, &mut |_, _| {}).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn every_export_has_all_files() {
    let (divided, whole) = divided_and_whole();
    assert!(divided.recorder.paths().len() > 2);
    let whole = SessionRecord::open(whole.path()).unwrap();
    let session = SessionRecord::open(divided.path()).unwrap();
    for exporter in mcp_proxy_session::exporters() {
        let name = exporter.name();
        let (lines, expected) = (exported(name, &session), exported(name, &whole));
        let count = |text: &str, word: &str| text.matches(word).count();
        for word in ["slow", "held", "large", "files", "drop", "\n"] {
            assert_eq!(count(&lines, word), count(&expected, word), "{name} {word}");
        }
    }
}

#[test]
fn files_that_are_read_as_one_tell_about_each_other() {
    let (divided, _) = divided_and_whole();
    let mut session = SessionRecord::open(divided.path()).unwrap();
    let last = session.len() - 1;
    let answer = session.message_with_context(last).unwrap();
    assert_eq!(answer.request.unwrap().name.as_deref(), Some("slow"));
    assert_eq!(session.row(0).unwrap().peer(), Some(last));
    assert!(session.message_with_context(0).unwrap().undelivered);
    let held = session.message(1).unwrap();
    assert!(held.dropped && !held.undecided);
    let filter = Filter::parse("xxxxxxxx").unwrap();
    session.retain_matching(&filter).unwrap();
    assert_eq!(session.len(), 3);
}

#[test]
fn a_jsonl_export_of_several_files_is_a_record_in_one_file() {
    let (divided, whole) = divided_and_whole();
    let session = SessionRecord::open(divided.path()).unwrap();
    let copy = divided.beside("one.jsonl");
    std::fs::write(&copy, exported("jsonl", &session)).unwrap();
    let copy = SessionRecord::open(&copy).unwrap();
    let whole = SessionRecord::open(whole.path()).unwrap();
    assert_eq!(copy.paths().count(), 1);
    assert_eq!(sequences(&copy), sequences(&whole));
    assert_eq!(copy.records().count(), whole.records().count());
}

#[test]
fn a_session_that_is_read_while_it_grows_takes_in_new_files() {
    let mut record = limited(1_500);
    talk(&mut record, 1);
    let mut session = SessionRecord::open(record.path()).unwrap();
    assert_eq!(session.len(), 2);
    talk(&mut record, 8);
    assert!(record.recorder.paths().len() > 2);
    assert_eq!(session.refresh().unwrap(), 16);
    assert!(session.is_live() && session.ends_with(record.path()));
    let lines: Result<Vec<_>, _> = session.stored_lines(0).collect();
    let kinds = lines.unwrap();
    let count = |kind: &str| kinds.iter().filter(|line| line.kind() == kind).count();
    assert_eq!((count("session"), count("msg"), count("end")), (1, 18, 0));
}

fn temporary(limit: u64, redaction: Option<Redaction>) -> SampleRecord {
    let masks = CredentialRedaction::none();
    let recorder = Recorder::temporary(limit, masks, redaction, &header());
    SampleRecord::writing(recorder.unwrap())
}

#[test]
fn a_temporary_record_has_the_newest_messages_and_is_gone_at_the_end() {
    let mut record = temporary(6_000, None);
    let path = record.path().to_path_buf();
    assert!(
        std::fs::read_link(&path)
            .unwrap()
            .to_str()
            .unwrap()
            .ends_with("(deleted)")
    );
    talk(&mut record, 3);
    assert_eq!(record.open().oldest_sequence(), 1);
    for round in 1..=6_u64 {
        talk(&mut record, 10);
        let session = record.open();
        assert!(session.paths().count() <= 2 && session.bytes() < 8_000);
        let found = sequences(&session);
        assert_eq!(found.last(), Some(&(6 + round * 20)));
        assert!(found.len() > 5 && found.is_sorted());
        assert!(session.is_live() && session.ends_with(record.path()));
    }
    assert!(record.open().oldest_sequence() > 100);
    assert_eq!(record.recorder.take_new_file(), None);
    record.end();
    let path = record.path().to_path_buf();
    drop(record);
    assert!(!path.exists() && !is_live(&path));
}

#[test]
fn what_is_redacted_is_not_in_a_temporary_record() {
    let rules = RedactionRules {
        keys: vec!["password".to_owned()],
        ..RedactionRules::default()
    };
    let mut record = temporary(1 << 20, Redaction::new(&rules).unwrap());
    let sent = record.client(r#"{"password":"S3CRET"}"#);
    let verdict = record.verdict("modify", sent);
    verdict.original(r#"{"password":"S3CRET"}"#).write();
    record.flush();
    let text = std::fs::read_to_string(record.path()).unwrap();
    assert!(!text.contains("S3CRET"));
    assert_eq!(record.open().message(0).unwrap().redacted, 2);
}
