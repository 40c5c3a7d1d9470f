//! Views of a proxy that keeps no record.

use mcp_proxy_session::{BodyInclusion, MessageWithContext, RawBody, SessionRecord};

use super::super::SessionView;
use super::super::fetched_messages::MOST_ROWS;
use super::{searched, until};
use mcp_proxy_session::testing::SampleRecord;

#[test]
fn rows_that_are_pushed_are_kept_replaced_and_let_go() {
    let mut sample = SampleRecord::new();
    let call = sample.call(1, "alpha", "{}");
    sample.result(1, call, "{}");
    sample.flush();
    let record = SessionRecord::open(sample.path()).unwrap();
    let fetched = |row: usize| {
        let line = record
            .message_with_context(row)
            .unwrap()
            .to_json(BodyInclusion::Include);
        MessageWithContext::from_json(&line.into()).unwrap()
    };
    let mut view = SessionView::without_record();
    view.push(vec![fetched(0), fetched(1)]);
    until(&mut view, "two rows", |view| view.total() == 2);
    assert_eq!((view.peer(1), view.peer(2)), (Some(2), Some(1)));
    assert_eq!(view.window(1, 1)[0].name.as_deref(), Some("alpha"));
    view.set_filter(".dropped and .tool == \"alpha\"").unwrap();
    searched(&mut view);
    assert_eq!(view.len(), 0);
    let mut dropped = fetched(0);
    dropped.message.dropped = true;
    view.push(vec![dropped]);
    until(&mut view, "it is shown", |view| view.len() == 1);
    assert!(view.window(0, 1)[0].dropped && view.path().is_none());
    view.set_filter("").unwrap();
    let one = fetched(0);
    let many = (3..MOST_ROWS as u64 + 3).map(|sequence| {
        let mut told = one.clone();
        told.message.sequence = sequence;
        told
    });
    view.push(many.collect());
    until(&mut view, "the oldest are gone", |view| {
        view.message_with_context(1).is_err()
    });
    until(&mut view, "all are taken", |view| view.total() == MOST_ROWS);
    assert_eq!((view.sequence_at(0), view.place_of(3)), (Some(3), Some(0)));
    assert_eq!(view.nearest(1), Some(0));
    let large = (0..3).map(|number| {
        let mut told = one.clone();
        told.message.sequence = 100_000 + number;
        told.message.raw = RawBody::Text("x".repeat(30 << 20));
        told
    });
    view.push(large.collect());
    until(&mut view, "bodies are forgotten", |view| view.total() == 2);
    assert_eq!(view.sequence_at(0), Some(100_001));
}
