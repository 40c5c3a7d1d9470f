//! A record that grows to its limit continues in another file.

use mcp_proxy_session::testing::{SampleRecord, header, options};
use mcp_proxy_session::{
    Durability, PeerInfo, RecordErrorPolicy, RecordEvent, RecordOptions, SessionParts,
    SessionRecord, copy_record, store,
};
use mcp_proxy_wire::Transport;
use std::path::PathBuf;

fn small_parts(max_size: u64) -> SampleRecord {
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

fn open_all(record: &SampleRecord) -> Vec<SessionRecord> {
    let paths = record.recorder.part_paths().iter();
    paths
        .map(|path| SessionRecord::open(path).unwrap())
        .collect()
}

fn name(path: Option<PathBuf>) -> Option<String> {
    path.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
}

#[test]
fn parts_follow_each_other_and_numbers_continue() {
    let mut record = small_parts(4_000);
    talk(&mut record, 20);
    record.end();
    let parts = open_all(&record);
    assert!(parts.len() > 2);
    let numbers: Vec<u64> = parts
        .iter()
        .flat_map(|part| part.rows().iter().map(|row| row.sequence()))
        .collect();
    assert_eq!(numbers, (1..=40).collect::<Vec<u64>>());
    let last = parts.len();
    for (index, part) in parts.iter().enumerate() {
        let number = index + 1;
        assert_eq!(part.part().number as usize, number);
        assert_eq!(part.header().id, header().id);
        let before = match number {
            1 => None,
            2 => Some("session.jsonl".to_owned()),
            _ => Some(format!("session.part{}.jsonl", number - 1)),
        };
        let after = (number < last).then(|| format!("session.part{}.jsonl", number + 1));
        assert_eq!(name(part.previous_part()), before);
        assert_eq!(name(part.next_part()), after);
        assert_eq!(part.end().is_some(), number == last);
        assert!(part.bytes() < 6_000, "{}", part.bytes());
        assert!(!part.is_empty() && part.damaged() == 0);
    }
    let end = parts[last - 1].end().unwrap();
    assert_eq!(end.messages, parts[last - 1].len() as u64);
    // Also where the index was stored and not built.
    parts[0].store_index().unwrap();
    let again = SessionRecord::open(parts[0].path()).unwrap();
    assert_eq!(again.next_part(), parts[0].next_part());
}

#[test]
fn a_new_part_is_told_once() {
    let mut record = small_parts(1_500);
    assert_eq!(record.recorder.take_new_part(), None);
    talk(&mut record, 5);
    let told = record.recorder.take_new_part().unwrap();
    assert_eq!(told, record.path());
    assert_eq!(record.recorder.take_new_part(), None);
}

#[test]
fn connections_that_are_open_are_known_in_the_next_part() {
    let mut record = small_parts(1_500);
    let stdio = PeerInfo::new(Transport::Stdio);
    let named = PeerInfo {
        name: Some("files".to_owned()),
        ..stdio.clone()
    };
    record.opened(1, &stdio, &named);
    record.opened(2, &stdio, &stdio);
    record.closed(2, "over");
    talk(&mut record, 6);
    let parts = open_all(&record);
    let last = parts.last().unwrap();
    assert!(last.part().number > 1);
    assert_eq!(last.server_name(1).unwrap(), "files");
    assert_eq!(last.connections().count(), 1);
}

#[test]
fn an_answer_in_the_next_part_still_names_its_request() {
    let mut record = small_parts(1_500);
    let request = record.call(1, "slow", "{}");
    record.flush();
    for id in 2..6 {
        record.call(id, "other", "{}");
        record.flush();
    }
    record.result(1, request, "{}");
    record.flush();
    let parts = open_all(&record);
    let last = parts.last().unwrap();
    let answer = last.message_with_context(last.len() - 1).unwrap();
    assert_eq!(answer.message.answers, Some(request));
    assert!(answer.message.correlated_id.is_some() && answer.message.latency.is_some());
    // What it asked is in another file.
    assert_eq!(answer.request, None);
}

#[test]
fn messages_that_share_a_write_stay_in_one_part() {
    let mut record = small_parts(1_000);
    for id in 1..=20 {
        record.call(id, "tool", "{}");
    }
    record.flush();
    assert_eq!(record.recorder.part_paths().len(), 1);
    record.call(21, "tool", "{}");
    record.flush();
    assert_eq!(record.recorder.part_paths().len(), 2);
    assert_eq!(record.open().len(), 1);
}

#[test]
fn only_the_last_part_is_live_and_all_are_listed_as_one_session() {
    // The sync thread has the old parts open for up to a second.
    let options = RecordOptions {
        durability: Durability::Interval,
        max_size: Some(2_000),
        ..options()
    };
    let mut record = SampleRecord::with(options, &header());
    talk(&mut record, 10);
    let listed = store::list(record.folder()).unwrap();
    let parts: Vec<u32> = listed.iter().map(|record| record.part).collect();
    let count = record.recorder.part_paths().len() as u32;
    assert_eq!(parts, (1..=count).rev().collect::<Vec<u32>>());
    assert!(listed.iter().all(|record| record.id == header().id));
    let live: Vec<bool> = listed.iter().map(|record| record.live).collect();
    assert!(live[0] && !live[1..].contains(&true));
    let continues: Vec<bool> = listed.iter().map(|record| record.continues).collect();
    assert!(!continues[0] && !continues[1..].contains(&false));
    // A copy has the whole session, whichever part is named.
    let copy = record.beside("copy.jsonl");
    copy_record(&listed[1].path, &copy).unwrap();
    let copy = SessionRecord::open(&copy).unwrap();
    assert_eq!((copy.part().number, copy.len()), (1, 20));
    assert_eq!((copy.next_part(), copy.damaged()), (None, 0));
}

#[test]
fn a_part_that_cannot_begin_is_reported_and_the_old_file_is_used() {
    let options = RecordOptions {
        on_error: RecordErrorPolicy::Warn,
        max_size: Some(1_000),
        ..options()
    };
    let mut record = SampleRecord::with(options, &header());
    // Neither a file nor a folder that a record could use can be made under this name.
    std::fs::create_dir(record.beside("session.part2.jsonl")).unwrap();
    talk(&mut record, 8);
    assert!(record.recorder.warning().is_some());
    assert_eq!(record.open().len(), 16);
    assert_eq!(record.recorder.part_paths().len(), 1);
}

#[test]
fn every_part_is_forced_onto_the_disk() {
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
    assert!(record.recorder.part_paths().len() > 1);
}

#[test]
fn parts_are_one_list_of_rows() {
    let mut record = small_parts(1_500);
    let request = record.call(1, "slow", "{}");
    let held = record.call(2, "held", "{}");
    record.verdict("hold", held).write();
    record.flush();
    let mut parts = SessionParts::open(record.path()).unwrap();
    for id in 3..9 {
        record.call(id, "other", "{}");
        record.flush();
    }
    let answer = record.result(1, request, "{}");
    record.verdict("drop", held).write();
    record.io(&RecordEvent::Undelivered {
        sequence: request,
        why: "gone",
    });
    record.flush();
    let paths = record.recorder.part_paths();
    assert!(paths.len() > 2);
    // The last part is stored, so its index is read and not built.
    let last = paths.last().unwrap();
    SessionRecord::open(last).unwrap().store_index().unwrap();

    let check = |parts: &SessionParts| {
        assert_eq!(parts.len() as u64, answer);
        let numbers = (0..parts.len()).map(|row| parts.row(row).unwrap().sequence());
        assert!(numbers.eq(1..=answer));
        assert_eq!(parts.at_or_after(5), 4);
        assert_eq!(parts.find(answer), Some(answer as usize - 1));
        assert_eq!(
            (parts.find(answer + 1), parts.part_of(99).is_none()),
            (None, true)
        );
        // What the last file says about messages of the first.
        let answer = parts.find(answer).unwrap();
        assert_eq!((parts.peer(0), parts.peer(answer)), (Some(answer), Some(0)));
        let told = parts.message_with_context(answer).unwrap();
        assert_eq!(told.request.unwrap().name.as_deref(), Some("slow"));
        assert!(parts.message_with_context(0).unwrap().undelivered);
        let dropped = parts.message(1).unwrap();
        assert!(dropped.dropped && !dropped.undecided);
        assert!(parts.has_outside_facts(1) && !parts.has_outside_facts(3));
    };
    // One that grew, one that was opened at its beginning, and one that was opened at its end.
    parts.refresh().unwrap();
    check(&parts);
    check(&SessionParts::open(&paths[0]).unwrap());
    let mut parts = SessionParts::open(last).unwrap();
    assert!(parts.row(0).unwrap().sequence() > 2 && parts.oldest_sequence() == 1);
    parts.open_earlier(1).unwrap();
    check(&parts);
}

#[test]
fn parts_that_were_removed_are_left_out() {
    let mut record = small_parts(1_500);
    talk(&mut record, 8);
    let paths = record.recorder.part_paths();
    std::fs::remove_file(&paths[0]).unwrap();
    let mut parts = SessionParts::open(paths.last().unwrap()).unwrap();
    parts.open_earlier(1).unwrap();
    let first = parts.row(0).unwrap().sequence();
    assert!(first > 1 && parts.oldest_sequence() == first);
    assert_eq!(parts.find(1), None);
}

/// A session in parts with all that one file can say about messages of another, and the same in one file.
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
        record.flush();
        record.end();
        record
    };
    let whole = RecordOptions {
        max_size: None,
        ..options()
    };
    (
        write(small_parts(64_000)),
        write(SampleRecord::with(whole, &header())),
    )
}

/// An export without what differs between two records of one conversation.
fn exported(format: &str, session: &SessionRecord) -> String {
    let mut out = Vec::new();
    let exporter = mcp_proxy_session::export::exporter(format).unwrap();
    exporter.export(session, &mut out, &mut |_, _| {}).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn every_export_has_all_parts() {
    let (divided, whole) = divided_and_whole();
    let paths = divided.recorder.part_paths();
    assert!(paths.len() > 2);
    let whole = SessionRecord::open_session(whole.path()).unwrap();
    for path in [&paths[0], &paths[1], paths.last().unwrap()] {
        let session = SessionRecord::open_session(path).unwrap();
        assert!(session.paths().eq(paths.iter().map(PathBuf::as_path)));
        assert_eq!((session.len(), session.part().number), (whole.len(), 1));
        assert_eq!((session.next_part(), session.damaged()), (None, 0));
        assert!(session.end().is_some());
        for exporter in mcp_proxy_session::exporters() {
            let name = exporter.name();
            let (lines, expected) = (exported(name, &session), exported(name, &whole));
            let count = |text: &str, word: &str| text.matches(word).count();
            for word in ["slow", "held", "large", "files", "drop", "\n"] {
                assert_eq!(count(&lines, word), count(&expected, word), "{name} {word}");
            }
        }
    }
}

#[test]
fn parts_that_are_read_as_one_tell_about_each_other() {
    let (divided, _) = divided_and_whole();
    let session = SessionRecord::open_session(divided.path()).unwrap();
    let answer = session.message_with_context(session.len() - 1).unwrap();
    assert_eq!(answer.request.unwrap().name.as_deref(), Some("slow"));
    let held = session.message(1).unwrap();
    assert!(held.dropped && !held.undecided);
    // A filter looks into every part.
    let mut filtered = SessionRecord::open_session(divided.path()).unwrap();
    let filter = mcp_proxy_session::Filter::parse("xxxxxxxx").unwrap();
    filtered.retain_matching(&filter).unwrap();
    assert_eq!(filtered.len(), 3);
}

#[test]
fn a_jsonl_export_of_parts_is_a_record_in_one_file() {
    let (divided, whole) = divided_and_whole();
    let session = SessionRecord::open_session(divided.path()).unwrap();
    let copy = divided.beside("one.jsonl");
    std::fs::write(&copy, exported("jsonl", &session)).unwrap();
    let copy = SessionRecord::open(&copy).unwrap();
    assert_eq!((copy.part().number, copy.next_part()), (1, None));
    let sequences =
        |session: &SessionRecord| session.rows().iter().map(|row| row.sequence()).collect();
    let expected: Vec<u64> = sequences(&SessionRecord::open(whole.path()).unwrap());
    let found: Vec<u64> = sequences(&copy);
    assert_eq!(found, expected);
    let lines = |session: &SessionRecord| session.records().count();
    assert_eq!(
        lines(&copy),
        lines(&SessionRecord::open(whole.path()).unwrap())
    );
}

#[test]
fn a_session_that_is_read_while_it_grows_takes_in_new_parts() {
    let mut record = small_parts(1_500);
    talk(&mut record, 1);
    let mut session = SessionRecord::open_session(record.path()).unwrap();
    assert_eq!(session.len(), 2);
    talk(&mut record, 8);
    assert!(record.recorder.part_paths().len() > 2);
    assert_eq!(session.refresh().unwrap(), 16);
    assert!(session.is_live());
    let lines: Result<Vec<_>, _> = session.stored_lines(0).collect();
    let kinds = lines.unwrap();
    let count = |kind: &str| kinds.iter().filter(|line| line.kind() == kind).count();
    assert_eq!((count("session"), count("msg"), count("next")), (1, 18, 0));
}

#[test]
fn a_session_whose_first_part_was_removed_begins_with_the_next() {
    let mut record = small_parts(1_500);
    talk(&mut record, 8);
    let paths = record.recorder.part_paths();
    std::fs::remove_file(&paths[0]).unwrap();
    let session = SessionRecord::open_session(paths.last().unwrap()).unwrap();
    assert_eq!(session.part().number, 2);
    assert!(session.row(0).unwrap().sequence() > 1);
    assert_eq!(session.paths().count(), paths.len() - 1);
}
