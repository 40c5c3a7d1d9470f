//! Lines, however they are pushed.

use bytes::Bytes;
use mcp_proxy_wire::{Chunk, Limits, LineSplitter, LineUnit};

fn split(limits: Limits, pushes: &[&str]) -> Vec<LineUnit> {
    let mut splitter = LineSplitter::new(limits);
    let mut out = Vec::new();
    for push in pushes {
        splitter.push(push.as_bytes().to_vec(), &mut out);
    }
    splitter.finish(&mut out);
    out
}

fn line(wire: &str, message: &str) -> LineUnit {
    LineUnit::Line {
        wire: wire.to_owned().into(),
        message: message.to_owned().into(),
    }
}

fn chunk(wire: &str, message: &str) -> Chunk {
    Chunk {
        wire: wire.to_owned().into(),
        message: message.to_owned().into(),
    }
}

#[test]
fn lines_come_whole_however_they_are_pushed() {
    let expected = [
        line("a\n", "a"),
        line("\r\n", ""),
        line("bc\r\n", "bc"),
        line("\n", ""),
        line("d\re\n", "d\re"),
        line("f", "f"),
    ];
    let text = "a\n\r\nbc\r\n\nd\re\nf";
    for cut in 0..=text.len() {
        let units = split(Limits::collect(100), &[&text[..cut], &text[cut..]]);
        assert_eq!(units, expected);
    }
}

#[test]
fn a_complete_line_is_a_slice_of_what_was_pushed() {
    let data = Bytes::from_static(b"abc\ndef\n");
    let mut out = Vec::new();
    LineSplitter::new(Limits::cut_at(10)).push(data.clone(), &mut out);
    let LineUnit::Line { wire, .. } = &out[1] else {
        panic!("{out:?}")
    };
    assert_eq!(wire.as_ptr(), data[4..].as_ptr());
}

#[test]
fn a_long_line_is_cut_through() {
    let units = split(Limits::cut_at(4), &["abc", "def", "gh\r", "\nx\n"]);
    assert_eq!(
        units,
        [
            LineUnit::Open(chunk("abc", "abc")),
            LineUnit::More(chunk("def", "def")),
            LineUnit::More(chunk("gh", "gh")),
            LineUnit::Close(chunk("\r\n", "")),
            line("x\n", "x"),
        ]
    );
    let units = split(Limits::cut_at(4), &["abcdef\r\n"]);
    assert_eq!(
        units,
        [
            LineUnit::Open(chunk("abcd", "abcd")),
            LineUnit::Close(chunk("ef\r\n", "ef"))
        ]
    );
}

#[test]
fn a_carriage_return_inside_a_long_line_is_content() {
    let units = split(Limits::cut_at(2), &["abc\r", "d\r", "\r", "\n"]);
    let message: Vec<u8> = units.iter().flat_map(content).collect();
    assert_eq!(message, b"abc\rd\r");
    let units = split(Limits::cut_at(2), &["abc\r"]);
    assert_eq!(
        units.iter().flat_map(content).collect::<Vec<u8>>(),
        b"abc\r"
    );
}

fn content(unit: &LineUnit) -> Vec<u8> {
    match unit {
        LineUnit::Open(chunk) | LineUnit::More(chunk) | LineUnit::Close(chunk) => {
            chunk.message.to_vec()
        }
        _ => Vec::new(),
    }
}

#[test]
fn exactly_the_limit_is_not_over_it() {
    for pushes in [
        &["abcd\r\n"][..],
        &["abcd\r", "\n"],
        &["abcd", "\r\n"],
        &["ab", "cd\r", "\n"],
    ] {
        assert_eq!(split(Limits::cut_at(4), pushes), [line("abcd\r\n", "abcd")]);
        assert_eq!(
            split(Limits::collect(4), pushes),
            [line("abcd\r\n", "abcd")]
        );
    }
}

#[test]
fn a_line_over_the_maximum_is_told_once_and_skipped() {
    for pushes in [
        &["abcdef\nx\n"][..],
        &["abc", "def", "ghi\nx\n"],
        &["abcde", "\n", "x\n"],
    ] {
        let units = split(Limits::collect(4), pushes);
        assert!(
            matches!(&units[0], LineUnit::TooLarge { seen: 5.., front } if front.starts_with(b"abc")),
            "{units:?}"
        );
        assert_eq!(units[1..], [line("x\n", "x")]);
    }
}

#[test]
fn a_maximum_below_the_cut_size_is_reached_first_however_the_line_is_pushed() {
    let limits = Limits { cut: 6, max: 3 };
    for pushes in [&["abcdefgh\n"][..], &["abcd", "efgh\n"]] {
        let units = split(limits, pushes);
        assert!(
            matches!(units[..], [LineUnit::TooLarge { .. }]),
            "{units:?}"
        );
    }
}

#[test]
fn a_last_carriage_return_without_line_feed_counts_as_content() {
    let units = split(Limits { cut: 0, max: 0 }, &["\r"]);
    assert_eq!(
        units,
        [
            LineUnit::Open(chunk("\r", "\r")),
            LineUnit::Close(chunk("", ""))
        ]
    );
    let units = split(Limits::collect(1), &["a\r"]);
    assert!(matches!(units[..], [LineUnit::TooLarge { seen: 2, .. }]));
}

#[test]
fn a_line_that_is_given_up_takes_no_other_with_it() {
    let text = b"abcdef\r\nnext\n";
    for place in 1..7 {
        let (mut splitter, mut units) = (LineSplitter::new(Limits::collect(100)), Vec::new());
        splitter.push(&text[..place], &mut units);
        assert_eq!(splitter.held(), place);
        assert_eq!(splitter.give_up(), text[..place]);
        assert_eq!(splitter.held(), 0);
        splitter.push(&text[place..], &mut units);
        assert_eq!(
            units.iter().map(LineUnit::wire).collect::<Vec<_>>(),
            [b"next\n"]
        );
    }
}
