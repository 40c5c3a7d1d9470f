//! Lines, however they are pushed.

use bytes::Bytes;
use mcp_proxy_wire::{Id, LineSplitter, LineUnit};

fn split(max: usize, pushes: &[&str]) -> Vec<LineUnit> {
    let mut splitter = LineSplitter::new(max);
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
        let units = split(100, &[&text[..cut], &text[cut..]]);
        assert_eq!(units, expected);
    }
}

#[test]
fn a_complete_line_is_a_slice_of_what_was_pushed() {
    let data = Bytes::from_static(b"abc\ndef\n");
    let mut out = Vec::new();
    LineSplitter::new(10).push(data.clone(), &mut out);
    let LineUnit::Line { wire, .. } = &out[1] else {
        panic!("{out:?}")
    };
    assert_eq!(wire.as_ptr(), data[4..].as_ptr());
}

#[test]
fn exactly_the_limit_is_not_over_it() {
    for pushes in [
        &["abcd\r\n"][..],
        &["abcd\r", "\n"],
        &["abcd", "\r\n"],
        &["ab", "cd\r", "\n"],
    ] {
        assert_eq!(split(4, pushes), [line("abcd\r\n", "abcd")]);
    }
}

#[test]
fn a_line_over_the_maximum_is_skipped() {
    for pushes in [
        &["abcdef\nx\n"][..],
        &["abc", "def", "ghi\nx\n"],
        &["abcde", "\n", "x\n"],
    ] {
        let units = split(4, pushes);
        assert!(matches!(units[0], LineUnit::GivenUp(_)), "{units:?}");
        assert_eq!(units[1..], [line("x\n", "x")]);
    }
}

#[test]
fn the_ends_of_a_line_that_is_given_up_are_known() {
    let filler = "x".repeat(100_000);
    let mut splitter = LineSplitter::new(10);
    let mut units = Vec::new();
    splitter.push(format!(r#"{{"result":["{filler}"#), &mut units);
    let front = splitter.given_up().unwrap().front_head();
    assert_eq!(front.id, None);
    splitter.push(format!("{filler}\"],\"id\":7}}\n"), &mut units);
    assert!(splitter.given_up().is_none());
    let [LineUnit::GivenUp(ends)] = &units[..] else {
        panic!("{units:?}")
    };
    assert_eq!(ends.head().id, Some(Id::from_token(b"7")));
}

#[test]
fn a_last_carriage_return_without_line_feed_counts_as_content() {
    assert_eq!(split(1, &["\r"]), [line("\r", "\r")]);
    let units = split(1, &["a\r"]);
    assert!(matches!(units[..], [LineUnit::GivenUp(_)]));
}

#[test]
fn a_line_that_is_given_up_takes_no_other_with_it() {
    let text = b"abcdef\r\nnext\n";
    for place in 1..7 {
        let (mut splitter, mut units) = (LineSplitter::new(100), Vec::new());
        splitter.push(&text[..place], &mut units);
        assert_eq!(splitter.held(), place);
        splitter.give_up();
        assert_eq!(splitter.held(), 0);
        splitter.push(&text[place..], &mut units);
        assert!(
            matches!(&units[..], [LineUnit::GivenUp(_), LineUnit::Line { message, .. }] if message == "next"),
            "{units:?}"
        );
    }
}
