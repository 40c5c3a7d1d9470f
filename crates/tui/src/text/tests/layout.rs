//! Layout: lines, pieces and limits of bodies of every sort.

use super::*;
use TextPieceKind::*;

/// The text that is laid out, and how many bytes are left according to the note after it.
fn cut(body: &BodyLayout) -> (String, usize) {
    let text = plain(body);
    let (shown, note) = text.rsplit_once('\n').unwrap();
    let digits: String = note.chars().filter(char::is_ascii_digit).collect();
    (shown.to_owned(), digits.parse().unwrap())
}

#[test]
fn tokens_stay_as_they_are() {
    let json = r#" {"a" :[1.0,12345678901234567890123456789, {}],"a":"x\"},\\", "e":[ ],"n":null}"#;
    let expected = r#"{
  "a": [
    1.0,
    12345678901234567890123456789,
    {}
  ],
  "a": "x\"},\\",
  "e": [],
  "n": null
}"#;
    let body = BodyLayout::of(json.as_bytes());
    assert_eq!(plain(&body), expected);
    assert_eq!(body.form(), BodyFormat::Json);
    let lines = body.lines();
    assert_eq!((lines[0].opens, lines[1].opens), (Some(9), Some(5)));
    assert_eq!((lines[1].indent, lines[2].indent), (2, 4));
    assert_eq!(kinds(&lines[1]), [("\"a\"", Key), (": [", Punctuation)]);
    assert_eq!(kinds(&lines[2]), [("1.0", Number), (",", Punctuation)]);
    let string = [
        ("\"a\"", Key),
        (": ", Punctuation),
        (r#""x\"},\\""#, Text),
        (",", Punctuation),
    ];
    assert_eq!(kinds(&lines[6]), string);
    assert_eq!(kinds(&lines[7]), [("\"e\"", Key), (": [],", Punctuation)]);
    let word = [("\"n\"", Key), (": ", Punctuation), ("null", Word)];
    assert_eq!(kinds(&lines[8]), word);
    assert_eq!(plain(&BodyLayout::of(b"7")), "7");
}

#[test]
fn hidden_characters_are_pieces_of_their_own() {
    let json = "{\"k\u{200b}\":\"a\u{202e}\u{9b}b \\u001b\\udb40\\udc41 \\n\\u0041\\ud800 é\"}";
    let body = BodyLayout::of(json.as_bytes());
    let expected = [
        ("\"k", Key),
        ("\\u200b", Hidden),
        ("\"", Key),
        (": ", Punctuation),
        ("\"a", Text),
        ("\\u202e\\u009b", Hidden),
        ("b ", Text),
        ("\\u001b\\udb40\\udc41", Hidden),
        (" \\n\\u0041", Text),
        ("\\ud800", Hidden),
        (" é\"", Text),
    ];
    assert_eq!(kinds(&body.lines()[1]), expected);
}

#[test]
fn what_is_no_json_keeps_its_lines() {
    let body = BodyLayout::of(b"one\r\n\n\x1b[2J\xff\xfetwo\n");
    assert_eq!(body.form(), BodyFormat::Text);
    assert_eq!(plain(&body), "one\\r\n\n\\u{1b}[2J\\xff\\xfetwo");
    let third = [
        ("\\u{1b}", Hidden),
        ("[2J", Plain),
        ("\\xff\\xfe", Hidden),
        ("two", Plain),
    ];
    assert_eq!(kinds(&body.lines()[2]), third);
    assert_eq!(plain(&BodyLayout::of(b"{\"a\":")), "{\"a\":");
    assert!(BodyLayout::of(b"").lines().is_empty());
}

#[test]
fn of_a_long_body_the_beginning_is_laid_out() {
    let json = format!("{{\"a\":[1],\"long\":\"{}\"}}", "é".repeat(LAID_OUT));
    let body = BodyLayout::of(json.as_bytes());
    assert_eq!(body.form(), BodyFormat::Json);
    assert_eq!(body.lines()[0].opens, None, "its end is not there");
    assert_eq!(body.lines()[1].opens, Some(3));
    let last = body.lines().last().unwrap();
    let shown: usize = json[..=LAID_OUT].floor_char_boundary(LAID_OUT);
    let (_, left) = cut(&body);
    assert_eq!(left, json.len() - shown);
    assert!(matches!(kinds(last)[..], [(_, Note)]));

    let text = vec![b'x'; LAID_OUT + 1];
    let body = BodyLayout::of(&text);
    assert_eq!((body.lines().len(), cut(&body).1), (2, 1));
    let lines = BodyLayout::of(&b"\n".repeat(LAID_OUT));
    assert_eq!(lines.lines().len(), MOST_LINES + 1);
    let commas = BodyLayout::of(format!("[{}1]", "1,".repeat(LAID_OUT / 4)).as_bytes());
    assert_eq!(commas.lines().len(), MOST_LINES + 1);
}

#[test]
fn a_start_alone_is_laid_out_by_what_it_looks_like() {
    let body = BodyLayout::of_start("{\"a\": [1, \"caf\u{e9}".as_bytes(), 1000);
    let shown = "{\n  \"a\": [\n    1,\n    \"café".to_owned();
    assert_eq!(cut(&body), (shown, 984));
    let body = BodyLayout::of_start(b"{\"a\": \"caf\xc3", 1000);
    assert_eq!(cut(&body), ("{\n  \"a\": \"caf".to_owned(), 990));
    let log = BodyLayout::of_start(b"[INFO] started", 1000);
    assert_eq!(cut(&log), ("[INFO] started".to_owned(), 986));
    assert_eq!(plain(&BodyLayout::of_start(b"{}", 2)), "{}");
}

#[test]
fn deep_messages_stay_small() {
    let deep = "[".repeat(900) + &"]".repeat(900);
    assert!(plain(&BodyLayout::of(deep.as_bytes())).len() < 200_000);
}
