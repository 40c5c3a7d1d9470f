//! Views of records that grow, change and cannot be read.

mod parts;

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_proxy_session::testing::{SampleRecord, at};
use mcp_proxy_session::{MarkOperation, RecordEvent};

use super::{SessionEventKind, SessionView, ViewState};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// Polls until it is so.
fn until(view: &mut SessionView, what: &str, so: impl Fn(&SessionView) -> bool) {
    let deadline = Instant::now() + LONG;
    while !so(view) {
        assert!(view.wait(deadline - Instant::now()), "waiting until {what}");
        view.poll();
    }
}

fn opened(sample: &mut SampleRecord) -> SessionView {
    sample.flush();
    let mut view = SessionView::open(sample.path().to_path_buf());
    until(&mut view, "open", |view| *view.state() == ViewState::Ready);
    view
}

fn searched(view: &mut SessionView) {
    until(view, "searched", |view| view.searching().is_none());
}

fn sequences(view: &mut SessionView) -> Vec<u64> {
    let lines = view.window(0, usize::MAX);
    let places = (0..view.len()).map(|place| view.sequence_at(place).unwrap());
    assert_eq!(
        lines.iter().map(|line| line.sequence).collect::<Vec<_>>(),
        places.collect::<Vec<_>>()
    );
    lines.iter().map(|line| line.sequence).collect()
}

#[test]
fn a_record_that_grows_under_a_filter() {
    let mut sample = SampleRecord::new();
    let call = sample.call(1, "alpha", "{}");
    sample.call(2, "beta", "{}");
    let mut view = opened(&mut sample);
    assert_eq!((view.total(), view.len()), (2, 2));
    view.set_filter(" alpha ").unwrap();
    searched(&mut view);
    assert_eq!(view.filter(), "alpha");
    assert_eq!(sequences(&mut view), [1]);
    let answer = sample.result(1, call, r#"{"isError":true,"content":"alpha"}"#);
    sample.call(3, "gamma", "{}");
    sample.flush();
    view.request_refresh();
    until(&mut view, "four rows", |view| view.total() == 4);
    searched(&mut view);
    assert_eq!(sequences(&mut view), [call, answer]);
    let line = view.window(1, 10).remove(0);
    assert!(line.is_error && line.answers == Some(call));
    assert_eq!(line.method.as_deref(), Some("tools/call"));
    assert_eq!(line.name.as_deref(), Some("alpha"));
    assert_eq!(line.latency, Some(Duration::from_millis(2)));
    assert_eq!((view.peer(call), view.peer(answer)), (Some(3), Some(1)));
    assert_eq!((view.place_of(3), view.place_of(4)), (Some(1), None));
    assert_eq!((view.nearest(2), view.nearest(4)), (Some(1), Some(1)));
    view.set_filter("").unwrap();
    assert_eq!((view.len(), view.nearest(99)), (4, Some(3)), "at once");
    assert_eq!(
        view.message_with_context(4)
            .unwrap()
            .message
            .name
            .as_deref(),
        Some("gamma")
    );
    assert!(view.message_with_context(5).is_err());
    assert_eq!(view.connections(), [1]);
}

#[test]
fn a_wrong_filter_leaves_the_old_one() {
    let mut sample = SampleRecord::new();
    sample.call(1, "alpha", "{}");
    let mut view = opened(&mut sample);
    view.set_filter("beta").unwrap();
    assert!(view.set_filter("/(/").is_err());
    searched(&mut view);
    assert_eq!(
        (view.filter(), view.len(), view.nearest(1)),
        ("beta", 0, None)
    );
}

#[test]
fn verdicts_on_older_messages_show_up_and_are_filtered_again() {
    let mut sample = SampleRecord::new();
    for id in 1..=3 {
        sample.call(id, "alpha", "{}");
    }
    let mut view = opened(&mut sample);
    view.set_filter("jq:.dropped | not").unwrap();
    searched(&mut view);
    assert_eq!(sequences(&mut view), [1, 2, 3]);
    sample.verdict("drop", 2).write();
    let changed = r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#;
    sample.verdict("modify", 3).raw(changed).write();
    let gone = RecordEvent::Undelivered {
        sequence: 1,
        why: "gone",
    };
    sample.io(&gone);
    sample.flush();
    view.request_refresh();
    until(&mut view, "one is gone", |view| view.len() == 2);
    let lines = view.window(0, 2);
    assert!(lines[0].undelivered && lines[1].modified);
    assert_eq!(lines[1].method.as_deref(), Some("ping"));
    view.set_filter("jq:.dropped").unwrap();
    searched(&mut view);
    assert_eq!(sequences(&mut view), [2]);
    assert!(view.window(0, 1)[0].dropped);
}

#[test]
fn a_filter_changed_amid_a_search_leaves_nothing_of_the_old_one() {
    let mut sample = SampleRecord::new();
    for id in 1..=5_000 {
        sample.call(id, if id % 1000 == 0 { "rare" } else { "common" }, "{}");
    }
    let mut view = opened(&mut sample);
    for round in 0..20 {
        view.set_filter(&format!("jq:.tool == \"common\" and .sequence > {round}"))
            .unwrap();
        view.poll();
    }
    view.set_filter("rare").unwrap();
    assert_eq!(view.searching(), Some((0, 5_000)));
    searched(&mut view);
    assert_eq!(sequences(&mut view), [1000, 2000, 3000, 4000, 5000]);
    for id in 5_001..=8_000 {
        sample.call(id, if id % 1000 == 0 { "rare" } else { "common" }, "{}");
    }
    sample.flush();
    // One look takes in all of it, in portions.
    view.request_refresh();
    until(&mut view, "all are taken in", |view| view.total() == 8_000);
    searched(&mut view);
    assert_eq!(view.len(), 8);
}

#[test]
fn happenings_before_and_after_opening() {
    let mut sample = SampleRecord::new();
    sample.stderr("before");
    sample.call(1, "alpha", "{}");
    sample.verdict("hold", 1).write();
    sample.stderr("between");
    sample.call(2, "alpha", "{}");
    let mut view = opened(&mut sample);
    until(&mut view, "two lines", |view| view.events().len() == 2);
    sample.stderr("after");
    sample.recorder.end(at(9), "done").unwrap();
    view.request_refresh();
    until(&mut view, "all", |view| view.events().len() == 4);
    let told: Vec<_> = view
        .events()
        .iter()
        .map(|event| (event.kind, event.text.as_str()))
        .collect();
    use SessionEventKind::{End, Stderr};
    assert_eq!(
        told[..3],
        [(Stderr, "before"), (Stderr, "between"), (Stderr, "after")]
    );
    assert_eq!(
        (told[3].0, view.events().get(2).unwrap().time),
        (End, at(3))
    );
    assert_eq!(view.events().get(0).unwrap().connection, Some(1));
}

#[test]
fn a_record_that_cannot_be_opened_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut view = SessionView::open(folder.path().join("none.jsonl"));
    assert_eq!(*view.state(), ViewState::Opening);
    until(&mut view, "failed", |view| {
        *view.state() != ViewState::Opening
    });
    let ViewState::Failed(why) = view.state() else {
        panic!("it is open")
    };
    assert!(why.contains("none.jsonl"), "{why}");
    assert!(view.window(0, 10).is_empty() && view.message_with_context(1).is_err() && !view.poll());
}

#[test]
fn the_worker_ends_with_its_view() {
    let mut sample = SampleRecord::new();
    sample.call(1, "alpha", "{}");
    let view = opened(&mut sample);
    let rows = Arc::downgrade(view.rows.as_ref().unwrap());
    drop(view);
    let deadline = Instant::now() + LONG;
    while rows.strong_count() > 0 {
        assert!(Instant::now() < deadline, "the worker goes on");
        std::thread::yield_now();
    }
}

#[test]
fn of_a_flood_of_stderr_the_end_is_told() {
    let mut sample = SampleRecord::new();
    for number in 0..40_000 {
        sample.stderr(&format!("{number} {}", "x".repeat(100)));
    }
    sample.call(1, "alpha", "{}");
    sample.stderr("last");
    let mut view = opened(&mut sample);
    until(&mut view, "told", SessionView::has_read_events);
    let events = view.events();
    assert_eq!(events.len(), 5_000);
    assert_eq!(events.get(4_999).unwrap().text, "last");
    let text = |place: usize| &events.get(place).unwrap().text;
    assert!(text(4_998).starts_with("39999 ") && text(0).starts_with("35001 "));
}

#[test]
fn marks_are_found_behind_any_number_of_happenings() {
    let mut sample = SampleRecord::new();
    let flood = |sample: &mut SampleRecord| {
        for number in 0..6_000 {
            sample.stderr(&format!("{number} {}", "x".repeat(1_000)));
        }
    };
    for number in 1..=6 {
        sample.call(number, "alpha", "{}");
    }
    for number in 1..=4 {
        sample.mark(number, MarkOperation::Set);
    }
    flood(&mut sample);
    sample.mark(2, MarkOperation::Removed);
    flood(&mut sample);
    sample.call(7, "alpha", "{}");
    flood(&mut sample);
    sample.mark(5, MarkOperation::Set);
    flood(&mut sample);
    sample.mark(6, MarkOperation::Set);
    let mut view = opened(&mut sample);
    // Meanwhile somebody marks: older marks say nothing about that.
    view.mark(3, MarkOperation::Removed);
    until(&mut view, "all are found", |view| {
        view.marks().iter().eq(&[1, 4, 5, 6])
    });
    sample.mark(4, MarkOperation::Removed);
    sample.flush();
    view.request_refresh();
    until(&mut view, "it is gone", |view| {
        view.marks().iter().eq(&[1, 5, 6])
    });
}
