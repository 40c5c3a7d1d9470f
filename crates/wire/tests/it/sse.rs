//! Events, with every line end and every split.

use bytes::Bytes;
use mcp_proxy_wire::{Id, SseEvent, SseSplitter, SseUnit, encode_event};

fn split(max: usize, pushes: &[&[u8]]) -> Vec<SseUnit> {
    let mut splitter = SseSplitter::new(max);
    let mut out = Vec::new();
    for push in pushes {
        splitter.push(push.to_vec(), &mut out);
    }
    splitter.finish(&mut out);
    out
}

fn events(max: usize, pushes: &[&[u8]]) -> Vec<SseEvent> {
    let event = |unit| match unit {
        SseUnit::Event(event) => event,
        other => panic!("{other:?}"),
    };
    split(max, pushes).into_iter().map(event).collect()
}

const BIG: usize = 1 << 20;

#[test]
fn fields_are_read_by_the_standard() {
    let text = b"\xef\xbb\xbfevent: a\nid: 1\nid:2\nid: 3\0\nretry: 10\nretry: x\n:c\ndata:  x\ndata\ndata:y\nother: z\n\n";
    let events = events(BIG, &[text]);
    assert_eq!(events.len(), 1);
    let event = &events[0];
    assert_eq!(
        (event.event.as_deref(), event.id.as_deref(), event.retry),
        (Some("a"), Some("2"), Some(10))
    );
    assert_eq!(event.data.as_deref(), Some(b" x\n\ny".as_slice()));
    assert!(!event.partial);
    assert_eq!(event.wire.as_ref(), text);
}

#[test]
fn every_line_end_ends_lines_wherever_the_stream_is_cut() {
    for end in ["\n", "\r\n", "\r"] {
        let text = "data: a\n\n: c\n\nid: 1\ndata: b\ndata: c\n\n".replace('\n', end);
        for cut in 0..=text.len() {
            let (one, two) = text.as_bytes().split_at(cut);
            let events = events(BIG, &[one, two]);
            let wire: Vec<u8> = events
                .iter()
                .flat_map(|event| event.wire.to_vec())
                .collect();
            assert_eq!(wire, text.as_bytes());
            let data: Vec<_> = events
                .iter()
                .filter_map(|event| event.data.as_deref())
                .collect();
            assert_eq!(data, [b"a".as_slice(), b"b\nc"], "{end:?} {cut}");
            assert!(events.iter().all(|event| !event.partial));
        }
    }
}

#[test]
fn an_event_is_told_with_its_last_byte() {
    for text in [
        b"data: a\n\n".as_slice(),
        b"data: a\r\n\r\n",
        b"data: a\r\r",
    ] {
        let mut out = Vec::new();
        let mut splitter = SseSplitter::new(BIG);
        for byte in text {
            assert!(out.is_empty());
            splitter.push(vec![*byte], &mut out);
        }
        assert_eq!(out.len(), 1, "{text:?}");
    }
}

#[test]
fn comments_do_not_wait_for_an_event() {
    let mut out = Vec::new();
    let mut splitter = SseSplitter::new(BIG);
    splitter.push(b": keep-alive\ndata".to_vec(), &mut out);
    assert_eq!(out.len(), 1);
    splitter.push(b": a\n\n".to_vec(), &mut out);
    let SseUnit::Event(event) = &out[1] else {
        panic!("{out:?}")
    };
    assert_eq!(
        (event.wire.as_ref(), event.data.as_deref()),
        (b"data: a\n\n".as_slice(), Some(b"a".as_slice()))
    );
}

#[test]
fn an_unfinished_block_is_not_lost() {
    let events = events(BIG, &[b"data: a\n\nid: 7\ndata: b"]);
    assert!(!events[0].partial && events[1].partial);
    assert_eq!(events[1].data.as_deref(), Some(b"b".as_slice()));
    assert_eq!(events[1].id.as_deref(), Some("7"));
}

#[test]
fn one_data_line_is_not_copied() {
    let data = Bytes::from_static(b"data: abc\n\n");
    let mut out = Vec::new();
    SseSplitter::new(BIG).push(data.clone(), &mut out);
    let SseUnit::Event(event) = &out[0] else {
        panic!("{out:?}")
    };
    assert_eq!(
        event.data.as_ref().map(|data| data.as_ptr()),
        Some(data[6..].as_ptr())
    );
}

#[test]
fn a_block_over_the_maximum_is_told_once_and_skipped() {
    for pushes in [
        &[b"data: abcdefghijkl\nid: 1\n\ndata: x\n\n".as_slice()][..],
        &[b"data: abcdef", b"ghijkl\n", b"\ndata: x\n\n"],
    ] {
        let units = split(14, pushes);
        assert!(matches!(units[0], SseUnit::TooLarge), "{units:?}");
        assert!(
            matches!(&units[1], SseUnit::Event(event) if event.data.as_deref() == Some(b"x")),
            "{units:?}"
        );
        assert_eq!(units.len(), 2);
    }
}

#[test]
fn encoded_events_read_back() {
    let wire = encode_event(Some("a\nb"), Some("message"), b"{\r\n\"x\":1\n}\r");
    assert_eq!(
        wire.as_ref(),
        b"event: message\nid: ab\ndata: {\ndata: \"x\":1\ndata: }\ndata: \n\n"
    );
    let events = events(BIG, &[&wire, &encode_event(None, None, b"")]);
    assert_eq!(
        events[0].data.as_deref(),
        Some(b"{\n\"x\":1\n}\n".as_slice())
    );
    assert_eq!(events[1].data.as_deref(), Some(b"".as_slice()));
}

#[test]
fn an_events_data_can_be_exchanged_and_nothing_else_moves() {
    let wire = ": hi\r\nid: 7\r\ndata: {\r\nretry: 5\r\ndata: }\r\n\r\n";
    let mut splitter = SseSplitter::new(1024);
    let mut units = Vec::new();
    splitter.push(Bytes::from(wire), &mut units);
    let [SseUnit::Event(event)] = units.as_slice() else {
        panic!("{units:?}")
    };
    let changed = event.with_data(Bytes::from("[1]"));
    assert_eq!(changed.wire, ": hi\r\nid: 7\r\ndata: [1]\nretry: 5\r\n\r\n");
    assert_eq!(changed.data.as_deref(), Some(b"[1]".as_slice()));
    assert_eq!(changed.id.as_deref(), Some("7"));
}

#[test]
fn an_event_that_is_given_up_takes_no_other_with_it() {
    for end in ["\n", "\r\n", "\r"] {
        let text = "id: 1\ndata: {\"id\":7}\n\ndata: next\n\n".replace('\n', end);
        let length = text.find("data: next").unwrap();
        for place in 1..length - end.len() {
            let (mut splitter, mut units) = (SseSplitter::new(100), Vec::new());
            splitter.push(text.as_bytes()[..place].to_vec(), &mut units);
            assert_eq!(splitter.held(), place);
            splitter.give_up(&mut units);
            assert_eq!(splitter.held(), 0);
            splitter.push(text.as_bytes()[place..].to_vec(), &mut units);
            let (Some(SseUnit::GivenUp(ends)), Some(SseUnit::Event(next))) =
                (units.first(), units.last())
            else {
                panic!("{end:?} {place}: {units:?}");
            };
            assert_eq!(next.data.as_deref(), Some(b"next".as_slice()));
            if place > "id: 1\ndata: ".len() + end.len() {
                assert_eq!(
                    ends.head().id,
                    Some(Id::from_token(b"7")),
                    "{end:?} {place}"
                );
            }
        }
    }
}
