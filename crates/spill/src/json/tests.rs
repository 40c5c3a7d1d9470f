//! The scanner agrees with serde_json on any text.

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;

fn compacted(text: &str) -> Option<String> {
    let checked = check(text.as_bytes())?;
    let compact = compact(Cow::Borrowed(text.as_bytes()), &checked);
    Some(String::from_utf8(compact.into_owned()).unwrap())
}

#[test]
fn only_white_space_between_tokens_is_removed() {
    assert_eq!(
        compacted(" { \"a \\\" \\\\\" : [ 1.50 ,\n-0e+10 ] , \"\\u00e9\":\" \" } ").unwrap(),
        r#"{"a \" \\":[1.50,-0e+10],"\u00e9":" "}"#
    );
    assert_eq!(compacted("[1,2]").unwrap(), "[1,2]");
    assert_eq!(compacted(" null ").unwrap(), "null");
}

#[test]
fn what_is_not_json_is_refused() {
    for text in [
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{a:1}",
        "[01]",
        "[1.]",
        "[.5]",
        "[1e]",
        "[+1]",
        "[nul]",
        "[\"\u{1}\"]",
        "[\"\\x\"]",
        "[\"\\u12g4\"]",
        "[\"a]",
        "[1] [2]",
        "[1}",
        "{\"a\":1]",
        "[,1]",
        "[NaN]",
    ] {
        assert_eq!(check(text.as_bytes()), None, "{text}");
    }
    let deep = "[".repeat(20_000) + &"]".repeat(20_000);
    assert_eq!(check(deep.as_bytes()), None);
}

#[test]
fn escapes_are_resolved() {
    let text =
        |token: &str| unescape(token.as_bytes()).map(|text| String::from_utf8(text).unwrap());
    assert_eq!(
        text(r#""a\"\\\/\b\f\n\r\t\u00e9\u4E16z""#).unwrap(),
        "a\"\\/\u{8}\u{c}\n\r\té世z"
    );
    assert_eq!(text(r#""\ud83d\ude00""#).unwrap(), "😀");
    for half in [
        r#""\ud83d""#,
        r#""\ud83dx""#,
        r#""\ude00""#,
        r#""\ud83d\u0041""#,
    ] {
        assert_eq!(text(half), None, "{half}");
    }
}

/// Checks a text that comes in pieces which end at these places.
fn check_in_pieces(text: &[u8], mut cuts: Vec<usize>) -> Option<usize> {
    cuts.sort_unstable();
    let mut checker = Checker::new();
    let mut taken = 0;
    for cut in cuts {
        taken += checker.take(&text[taken..cut.min(text.len()).max(taken)], false)?;
    }
    checker.take(&text[taken..], true)?;
    Some(checker.finish().gap_bytes)
}

proptest! {
    #[test]
    fn it_does_not_matter_where_pieces_end(
        text in r#"[\[{]("[a-c\\nu0é]{0,6}"|-?[0-9.e]{1,4}|[\[\]{}:, ]|null|true|"[a-c]":){0,12}[\]}]"#,
        indented in any::<bool>(),
        cuts in proptest::collection::vec(0_usize..40, 0..8),
    ) {
        let text = if indented { text.replace(',', ", \n  ") } else { text };
        let expected = check(text.as_bytes()).map(|checked| checked.gap_bytes);
        prop_assert_eq!(check_in_pieces(text.as_bytes(), cuts.clone()), expected, "{} {:?}", text, cuts);
        if expected.is_some() {
            let mut pieces = Vec::new();
            let (mut compactor, mut start) = (Compactor::default(), 0);
            let mut cuts = cuts;
            cuts.push(usize::MAX);
            cuts.sort_unstable();
            for cut in cuts {
                let cut = cut.min(text.len());
                let mut piece = text.as_bytes()[start..cut].to_vec();
                let length = compactor.compact(&mut piece);
                pieces.extend_from_slice(&piece[..length]);
                start = cut;
            }
            prop_assert_eq!(String::from_utf8(pieces).ok(), compacted(&text));
        }
    }

    #[test]
    fn the_check_agrees_with_serde(text in r#"[\[\]{}:,"\\ 0-9eE+.a-f-]{0,24}|[\[{]("[a-c\\n]{0,3}"|[0-9.-]{1,3}|[\[\]{}:, ]|null|true){0,12}[\]}]"#) {
        let accepted = serde_json::from_str::<&RawValue>(&text).is_ok();
        prop_assert_eq!(check(text.as_bytes()).is_some(), accepted, "{}", text);
    }

    #[test]
    fn unescaping_undoes_escaping(text in any::<String>()) {
        let token = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(unescape(token.as_bytes()), Some(text.into_bytes()));
    }

    #[test]
    fn long_strings_are_read_as_serde_reads_them(
        parts in proptest::collection::vec(prop_oneof![
            8 => proptest::sample::select(vec!["a", "\\\"", "\\\\", "\\n", "é", "abcdefgh", "n", "twenty bytes of text"]),
            1 => proptest::sample::select(vec!["\\t", "\\/", "\\u0041", "\\ud83d\\ude00"]),
        ], 0..40),
        broken in proptest::option::weighted(0.3, (0usize..40, proptest::sample::select(vec!["\\x", "\u{1}", "\"", "\\", "\\u12"]))),
    ) {
        let mut parts = parts;
        if let Some((place, broken)) = broken {
            parts.insert(place.min(parts.len()), broken);
        }
        let token = format!("\"{}\"", parts.concat());
        let is_json = serde_json::from_str::<&RawValue>(&token).is_ok();
        prop_assert_eq!(check(token.as_bytes()).is_some(), is_json, "{}", token);
        if is_json {
            // Half a surrogate pair is JSON, but no text.
            let expected = serde_json::from_str::<String>(&token).ok();
            prop_assert_eq!(unescape(token.as_bytes()), expected.map(String::into_bytes));
            let followed = format!("{token},\"");
            prop_assert_eq!(string_length(followed.as_bytes()), token.len());
        }
    }

    #[test]
    fn any_code_units_are_read_as_serde_reads_them(units in proptest::collection::vec(prop_oneof![0xd7f0u16..0xe010, any::<u16>()], 0..6)) {
        let token = format!("\"{}\"", units.iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>());
        let expected = serde_json::from_str::<String>(&token).ok().map(String::into_bytes);
        prop_assert_eq!(unescape(token.as_bytes()), expected);
    }
}
