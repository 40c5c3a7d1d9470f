//! The grammar, and where it ends.

use super::*;
use crate::json;

fn end(text: &[u8]) -> ScanEnd {
    scan(text, |_, _| {}).end
}

#[test]
fn the_grammar_is_that_of_rfc_8259() {
    let good = [
        "{}",
        "[]",
        " [ ] ",
        "\t\r\n{ \"a\" : 1 , \"b\" : [ true , false , null ] }\n",
        "0",
        "-0",
        "10",
        "-1.5e+10",
        "1E9",
        "0.0",
        r#""""#,
        r#""\"\\\/\b\f\n\r\t\u00e9\ud800""#,
        r#"{"":{"":[{}]}}"#,
        "[1,2]",
        "[[],{}]",
        "\"\u{7f}\u{80}é世\"",
    ];
    for text in good {
        assert_eq!(end(text.as_bytes()), ScanEnd::Complete, "{text}");
    }
    let bad = [
        "{,}",
        "{]",
        "[}",
        "[1,]",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{a:1}",
        "{1:1}",
        "01",
        "-a",
        "1.a",
        "1ea",
        "+1",
        ".5",
        "trux",
        "nul,",
        "[1 2]",
        "{}{}",
        "1 2",
        "\"\t\"",
        "\"\n\"",
        "\"\0\"",
        r#""\x""#,
        r#""\u12g4""#,
        "'a'",
        "\u{a0}1",
        "[1]]",
        "}",
        "]",
        ",",
        ":",
        "NaN",
        "[1}",
        "{\"a\":1]",
    ];
    for text in bad {
        assert_eq!(end(text.as_bytes()), ScanEnd::Bad, "{text}");
    }
}

#[test]
fn every_true_prefix_of_a_container_is_cut_not_bad() {
    let text = r#" {"a\u00e9\"":[1.5e+3,-0,true,{"b":null}, "x\ud800\n" ],"long enough to use words":"and enough to use the wide loop as well, yes"} "#;
    for length in 0..text.len() - 1 {
        assert_eq!(
            end(&text.as_bytes()[..length]),
            ScanEnd::Cut,
            "{}",
            &text[..length]
        );
    }
    assert_eq!(end(text.as_bytes()), ScanEnd::Complete);
}

#[test]
fn members_are_reported_with_exact_spans() {
    let text = br#"{ "a" : 1 , "b":{"c":[2]} , "d" :"x" }"#;
    let mut seen = Vec::new();
    let scan = scan(text, |key, span| seen.push((key.raw, &text[span.range()])));
    let expected: [(&[u8], &[u8]); 3] = [(b"a", b"1"), (b"b", br#"{"c":[2]}"#), (b"d", br#""x""#)];
    assert_eq!(seen, expected);
    assert_eq!(
        (scan.root, scan.depth, scan.newline, scan.ascii),
        (RootKind::Object, 3, false, true)
    );
    assert!(scan.open.is_none());
}

#[test]
fn elements_are_reported_like_members() {
    let text = b"[1, [2,3] ,{\"a\":4}]";
    let mut seen = Vec::new();
    scan(text, |_, span| seen.push(&text[span.range()]));
    let expected: [&[u8]; 3] = [b"1", b"[2,3]", b"{\"a\":4}"];
    assert_eq!(seen, expected);
}

#[test]
fn an_unfinished_member_is_told_apart() {
    let scan = scan(br#"{"id":1,"result":{"x":[1,"#, |_, _| {});
    assert_eq!(scan.end, ScanEnd::Cut);
    assert!(
        scan.open
            .is_some_and(|(key, at)| key.is("result") && at == 17)
    );
}

#[test]
fn depth_is_counted_and_limited() {
    for (depth, expected) in [
        (1, ScanEnd::Complete),
        (64, ScanEnd::Complete),
        (65, ScanEnd::Complete),
        (1000, ScanEnd::Complete),
        (1001, ScanEnd::TooDeep),
    ] {
        let text = "[".repeat(depth) + &"]".repeat(depth);
        let scan = scan(text.as_bytes(), |_, _| {});
        assert_eq!((scan.end, scan.depth), (expected, depth.min(1000)));
        let text = "{\"a\":[".repeat(depth / 2) + "1" + &"]}".repeat(depth / 2);
        assert_eq!(end(text.as_bytes()), ScanEnd::Complete);
    }
}

#[test]
fn a_stop_byte_is_found_at_every_place_of_a_long_string() {
    for length in 0..100 {
        let text = format!("\"{}\"", "x".repeat(length));
        assert_eq!(end(text.as_bytes()), ScanEnd::Complete);
        for place in 0..length {
            for byte in [b'\n', 0, 0x1f] {
                let mut text = text.clone().into_bytes();
                text[place + 1] = byte;
                assert_eq!(end(&text), ScanEnd::Bad);
            }
            let mut text = text.clone().into_bytes();
            text[place + 1] = 0xc3;
            assert!(!scan(&text, |_, _| {}).ascii);
        }
    }
}

#[test]
fn strings_full_of_escapes_are_read_as_serde_reads_them() {
    let parts = [
        "a",
        "\\\"",
        "\\\\",
        "\\n",
        "\\t",
        "\\u00e9",
        "é",
        "seventeen letters",
        "\\x",
        "\u{1}",
        "\\u12",
    ];
    // Every part at every place of a block, between others of all kinds.
    for length in 0..40 {
        for first in 0..parts.len() {
            let middle: String = (0..length)
                .map(|at| parts[(first + at * first) % 8])
                .collect();
            for last in parts {
                let token = format!("\"\\\"{middle}{last}\"");
                let is_json = serde_json::from_str::<serde_json::Value>(&token).is_ok();
                let found = scan(token.as_bytes(), |_, _| {});
                assert_eq!(found.end == ScanEnd::Complete, is_json, "{token}");
                let object = format!(r#"{{"a":{token},"b":1}}"#);
                if is_json {
                    assert_eq!(found.ascii, token.is_ascii(), "{token}");
                    let b = json::find(object.as_bytes(), "b");
                    assert_eq!(b, find(object.as_bytes(), "b"), "{token}");
                }
            }
        }
    }
}
