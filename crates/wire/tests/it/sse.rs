//! Events, with every line end and every split.

use bytes::Bytes;
use mcp_proxy_wire::{Chunk, Limits, SseEvent, SseSplitter, SseUnit, encode_event};

fn split(limits: Limits, pushes: &[&[u8]]) -> Vec<SseUnit> {
    let mut splitter = SseSplitter::new(limits);
    let mut out = Vec::new();
    for push in pushes {
        splitter.push(push.to_vec(), &mut out);
    }
    splitter.finish(&mut out);
    out
}

fn events(limits: Limits, pushes: &[&[u8]]) -> Vec<SseEvent> {
    let event = |unit| match unit {
        SseUnit::Event(event) => event,
        other => panic!("{other:?}"),
    };
    split(limits, pushes).into_iter().map(event).collect()
}

const BIG: Limits = Limits::collect(1 << 20);

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

fn chunk(wire: &'static str, message: &'static str) -> Chunk {
    Chunk {
        wire: Bytes::from_static(wire.as_bytes()),
        message: Bytes::from_static(message.as_bytes()),
    }
}

#[test]
fn a_long_event_is_cut_through() {
    let units = split(
        Limits::cut_at(4),
        &[
            b"event: m\nid: 1\nda",
            b"ta: abc",
            b"def",
            b"g\ndata: h\n: c\n\ndata: x\n\n",
        ],
    );
    let head = SseEvent {
        event: Some("m".into()),
        id: Some("1".into()),
        ..SseEvent::default()
    };
    assert_eq!(
        units[0],
        SseUnit::Open {
            head,
            chunk: chunk("event: m\nid: 1\ndata: abcdef", "abcdef")
        }
    );
    assert_eq!(units[1], SseUnit::More(chunk("g\ndata", "g")));
    assert_eq!(units[2], SseUnit::More(chunk("", "\n")));
    assert_eq!(units[3], SseUnit::Close(chunk(": h\n: c\n\n", "h")));
    assert!(matches!(&units[4], SseUnit::Event(event) if event.data.as_deref() == Some(b"x")));
}

#[test]
fn a_block_over_the_maximum_is_told_once_and_skipped() {
    for pushes in [
        &[b"data: abcdefghijkl\nid: 1\n\ndata: x\n\n".as_slice()][..],
        &[b"data: abcdef", b"ghijkl\n", b"\ndata: x\n\n"],
    ] {
        let units = split(Limits::collect(14), pushes);
        assert!(
            matches!(&units[0], SseUnit::TooLarge { front, .. } if front.starts_with(b"abcdef")),
            "{units:?}"
        );
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
fn a_cut_event_that_ends_with_the_bare_name_of_a_data_line_has_an_empty_line_more() {
    for pushes in [&["data: data: \ndata"][..], &["data: data: \n", "da", "ta"]] {
        let mut splitter = SseSplitter::new(Limits {
            cut: 0,
            max: usize::MAX,
        });
        let mut units = Vec::new();
        for push in pushes {
            splitter.push(push.to_string(), &mut units);
        }
        splitter.finish(&mut units);
        let mut message = Vec::new();
        for unit in &units {
            match unit {
                SseUnit::Open { chunk, .. } | SseUnit::More(chunk) | SseUnit::Close(chunk) => {
                    message.extend_from_slice(&chunk.message);
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(message, b"data: \n");
    }
}

#[test]
fn an_events_data_can_be_exchanged_and_nothing_else_moves() {
    let wire = ": hi\r\nid: 7\r\ndata: {\r\nretry: 5\r\ndata: }\r\n\r\n";
    let mut splitter = SseSplitter::new(Limits {
        cut: 1024,
        max: 1024,
    });
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
    let text = b"id: 1\r\ndata: abcdef\r\n\r\ndata: next\n\n";
    for place in 1..23 {
        let (mut splitter, mut units) = (SseSplitter::new(Limits::collect(100)), Vec::new());
        splitter.push(&text[..place], &mut units);
        assert_eq!(splitter.held(), place);
        let mut given_up = splitter.give_up(&mut units).to_vec();
        assert_eq!(splitter.held(), 0);
        splitter.push(&text[place..], &mut units);
        let next = units.pop().unwrap();
        assert_eq!(next.wire(), b"data: next\n\n", "given up at {place}");
        assert!(matches!(units.last(), Some(SseUnit::Close(_))));
        for unit in units {
            let (SseUnit::More(chunk) | SseUnit::Close(chunk)) = unit else {
                panic!("{unit:?}");
            };
            given_up.extend_from_slice(&chunk.message);
        }
        assert_eq!(given_up.trim_ascii(), b"abcdef", "given up at {place}");
    }
}
