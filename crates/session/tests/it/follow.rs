//! Reading while somebody writes, and the index on disk.

use crate::sample::*;
use mcp_proxy_session::*;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

fn index_of(path: &Path) -> PathBuf {
    path.with_extension("jsonl.idx")
}

#[test]
fn refresh_takes_in_what_was_added() {
    let mut sample = SampleRecord::new();
    let one = sample.client(r#"{"id":1,"method":"tools/list"}"#);
    let mut session = sample.open();
    assert_eq!((session.len(), session.row(0).unwrap().peer()), (1, None));
    sample.answer(one, r#"{"id":1,"result":{}}"#);
    assert_eq!(session.refresh().unwrap(), 0, "not written yet");
    sample.verdict("drop", one).write();
    sample.recorder.record_event(
        at(3),
        &RecordEvent::Undelivered {
            sequence: 2,
            why: "gone",
        },
    );
    sample.flush();
    assert_eq!(session.refresh().unwrap(), 1);
    assert_eq!(session.row(0).unwrap().peer(), Some(1));
    assert!(session.row(0).unwrap().is_dropped());
    assert!(session.row(1).unwrap().is_undelivered());
    assert!(session.end().is_none() && session.is_live());
    sample.recorder.end(at(9), "done").unwrap();
    session.refresh().unwrap();
    assert_eq!(session.session().ended_at, Some(at(9)));
}

#[test]
fn a_stored_index_gives_the_same_rows_and_is_extended() {
    let (mut sample, path) = everything();
    let fresh = {
        std::fs::remove_file(index_of(&path)).unwrap();
        SessionRecord::open(&path).unwrap()
    };
    fresh.store_index().unwrap();
    let loaded = SessionRecord::open(&path).unwrap();
    assert_eq!(loaded.rows(), fresh.rows());
    sample.client(r#"{"id":99,"method":"later"}"#);
    sample.flush();
    let extended = SessionRecord::open(&path).unwrap();
    assert_eq!(extended.len(), fresh.len() + 1);
    assert_eq!(&extended.rows()[..fresh.len()], fresh.rows());
    let last = extended.row(fresh.len()).unwrap();
    assert_eq!(extended.method(last), Some("later"));
    assert_eq!(extended.message(2).unwrap().verdicts.len(), 1);
}

#[test]
fn an_index_that_does_not_fit_is_rebuilt() {
    let (_sample, path) = everything();
    let good = std::fs::read(index_of(&path)).unwrap();
    let rows = SessionRecord::open(&path).unwrap().rows().to_vec();
    let mut wrong: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"mcpidx".to_vec(),
        good[..good.len() - 1].to_vec(),
    ];
    for at in (0..good.len()).step_by(7) {
        let mut flipped = good.clone();
        flipped[at] ^= 0x55;
        wrong.push(flipped);
    }
    for bytes in wrong {
        std::fs::write(index_of(&path), &bytes).unwrap();
        assert_eq!(SessionRecord::open(&path).unwrap().rows(), rows);
    }
    // An index of another record, whose lines have the same lengths.
    let text = std::fs::read_to_string(&path)
        .unwrap()
        .replace("5e550001", "5e550002")
        .replace("tools/call", "tools/cull");
    std::fs::write(index_of(&path), &good).unwrap();
    std::fs::write(&path, text).unwrap();
    let session = SessionRecord::open(&path).unwrap();
    assert_eq!(session.method(session.row(2).unwrap()), Some("tools/cull"));
}

#[test]
fn large_bodies_recorded_late_are_found_by_their_number() {
    let mut sample = SampleRecord::new();
    for _ in 0..50 {
        sample.client("{\"id\":1,\"method\":\"m\"}");
    }
    let text = sample.text();
    let mut lines: Vec<&str> = text.lines().collect();
    // Message 10 ended after message 40 came.
    let late = lines.remove(10);
    lines.insert(40, late);
    let path = sample.beside("late.jsonl");
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let session = SessionRecord::open(&path).unwrap();
    for sequence in 1..=50 {
        let row = session.find(sequence).unwrap();
        assert_eq!(session.row(row).unwrap().sequence(), sequence);
    }
    assert_eq!(session.find(51), None);
}

#[test]
fn filters_choose_rows() {
    let (_sample, path) = everything();
    let session = SessionRecord::open(path).unwrap();
    let found = |text: &str| {
        let filter = Filter::parse(text).unwrap();
        let mut rows = Vec::new();
        filter
            .search(&session, 0, |row| {
                rows.push(row);
                ControlFlow::Continue(())
            })
            .unwrap();
        for row in 0..session.len() {
            assert_eq!(
                filter.matches(&session, session.row(row).unwrap()).unwrap(),
                rows.contains(&row)
            );
        }
        rows
    };
    assert_eq!(found("").len(), session.len());
    assert_eq!(found("TOOLS/call"), [2, 3]);
    assert_eq!(found("tools read_FILE /etc"), [2]);
    assert_eq!(found("tools"), [2, 3, 8, 9]);
    assert_eq!(found("12345678901234567890123456789"), [7]);
    assert_eq!(found("not json all"), [5]);
    assert_eq!(
        found("client_to_server"),
        Vec::<usize>::new(),
        "the envelope is not searched"
    );
    assert_eq!(found("/read_.ile/"), [2]);
    assert_eq!(found("/READ_.ILE/i"), [2]);
    assert_eq!(found("/client_to_server/").len(), 0);
    let all = found("");
    for row in &all {
        let sequence = session.row(*row).unwrap().sequence();
        assert_eq!(found(&format!(".sequence == {sequence}")), [*row]);
    }
    assert_eq!(found(".raw or .raw == null"), all);
    assert_eq!(
        found(".tool == \"read_file\" and .kind == \"request\""),
        [2]
    );
}
