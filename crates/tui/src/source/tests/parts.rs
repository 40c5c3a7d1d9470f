//! Views of records that continue in other files.

use mcp_proxy_session::testing::{SampleRecord, header, options};
use mcp_proxy_session::{MarkOperation, PeerInfo, RecordOptions};
use mcp_proxy_wire::Transport;

use super::super::{SessionEventKind, SessionView, ViewState};
use super::{opened, searched, sequences, until};

/// A record whose files have room for a few messages.
fn small_files() -> SampleRecord {
    let options = RecordOptions {
        max_size: Some(1_500),
        ..options()
    };
    let mut sample = SampleRecord::with(options, &header());
    let stdio = PeerInfo::new(Transport::Stdio);
    sample.opened(1, &stdio, &stdio);
    sample
}

fn say(sample: &mut SampleRecord, calls: std::ops::RangeInclusive<u64>) {
    for id in calls {
        sample.call(id, "other", "{}");
        sample.flush();
    }
}

#[test]
fn a_view_follows_its_record_into_the_next_files() {
    let mut sample = small_files();
    let slow = sample.call(1, "slow", "{}");
    let held = sample.call(2, "held", "{}");
    sample.verdict("hold", held).write();
    let mut view = opened(&mut sample);
    view.set_filter("slow").unwrap();
    say(&mut sample, 3..=10);
    sample.mark(3, MarkOperation::Set);
    sample.verdict("drop", held).write();
    let answer = sample.result(1, slow, r#"{"text":"late"}"#);
    sample.flush();
    assert!(sample.recorder.paths().len() > 2);
    view.request_refresh();
    until(&mut view, "all rows", |view| view.total() as u64 == answer);
    searched(&mut view);
    assert_eq!(view.trouble(), None);
    assert_eq!(sequences(&mut view), [slow, answer]);
    assert_eq!(view.peer(slow), Some(answer));
    assert_eq!(view.window(1, 1)[0].name.as_deref(), Some("slow"));
    view.set_filter("").unwrap();
    assert_eq!(view.len() as u64, answer);
    assert!(view.window(1, 1)[0].dropped);
    let told = view.message_with_context(answer).unwrap();
    let body = told.message.raw.to_bytes();
    assert!(body.windows(4).any(|word| word == b"late"));
    until(&mut view, "the mark", |view| view.marks().contains(&3));
    // The connection was opened once.
    let events = view.events().iter();
    let opened = events.filter(|event| event.kind == SessionEventKind::Open);
    assert_eq!(opened.count(), 1);
}

#[test]
fn a_view_of_the_last_file_shows_those_before_it() {
    let mut sample = small_files();
    say(&mut sample, 1..=3);
    sample.mark(2, MarkOperation::Set);
    say(&mut sample, 4..=10);
    let mut view = SessionView::open(sample.path().to_path_buf());
    until(&mut view, "open", |view| *view.state() == ViewState::Ready);
    assert_eq!(sequences(&mut view), (1..=10).collect::<Vec<u64>>());
    until(&mut view, "the mark", |view| view.marks().contains(&2));
    say(&mut sample, 11..=20);
    view.request_refresh();
    until(&mut view, "more rows", |view| view.total() == 20);
    assert_eq!(view.place_of(15), Some(14));
}
