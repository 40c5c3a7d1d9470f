//! Folds, search and comparison.

use super::*;
use std::time::Instant;

fn sample() -> BodyLayout {
    BodyLayout::of(br#"{"id":1,"params":{"name":"echo","list":[1,[2],3]},"e":{},"one":{"a":0}}"#)
}

#[test]
fn folded_lines_hide_what_they_open() {
    let body = sample();
    let mut folds = Folds::default();
    assert_eq!(body.shown(&folds).len(), body.lines().len());
    folds.fold_below(&body, 1);
    let shown: Vec<String> = body
        .shown(&folds)
        .into_iter()
        .map(|line| match folds.is_folded(line) {
            true => format!("{} {}", body.lines()[line].text(), body.summary(line)),
            false => body.lines()[line].text(),
        })
        .collect();
    let expected = [
        "{",
        "\"id\": 1,",
        "\"params\": { … 2 members },",
        "\"e\": {},",
        "\"one\": { … 1 member }",
        "}",
    ];
    assert_eq!(shown, expected);
    folds.unfold_all();
    folds.toggle(4);
    assert_eq!(body.summary(4), "… 3 items ]");
    assert_eq!(body.shown(&folds), [0, 1, 2, 3, 4, 11, 12, 13, 14, 15, 16]);
    folds.toggle(4);
    assert_eq!(folds, Folds::default());
    folds.fold_below(&body, 0);
    assert_eq!(body.shown(&folds), [0]);
}

#[test]
fn a_line_knows_what_encloses_it_and_can_be_revealed() {
    let body = sample();
    assert_eq!(body.opener(0), Some(0));
    assert_eq!(body.opener(1), Some(0));
    assert_eq!(body.opener(5), Some(4), "an item");
    assert_eq!(body.opener(10), Some(4), "the closing bracket");
    assert_eq!(body.opener(99), None);
    assert_eq!(body.summary(1), "");
    let mut folds = Folds::default();
    folds.fold_below(&body, 0);
    folds.reveal(&body, 7);
    assert!(body.shown(&folds).contains(&7));
    assert!(folds.is_folded(13), "what does not hide it stays folded");
}

#[test]
fn search_wraps_around_and_minds_case_if_asked() {
    let body = BodyLayout::of(b"Alpha\nbeta\n\xc3\x84lpha\nBeta");
    assert_eq!(body.find("alpha", 0), Some(0));
    assert_eq!(body.find("alpha", 1), Some(0));
    assert_eq!(body.find("beta", 2), Some(3));
    assert_eq!(body.find("Beta", 0), Some(3));
    assert_eq!(body.find("\u{e4}lpha", 3), Some(2));
    assert_eq!(body.find("gamma", 0), None);
    assert_eq!(body.find("", 0), None);
    assert_eq!(body.find("beta", 99), Some(1));
    assert_eq!(body.find_back("beta", 2), Some(1));
    assert_eq!(body.find_back("beta", 0), Some(3));
    assert_eq!(body.find_back("beta", usize::MAX), Some(3));
}

fn compared(left: &str, right: &str) -> Vec<String> {
    let (left, right) = (
        BodyLayout::of(left.as_bytes()),
        BodyLayout::of(right.as_bytes()),
    );
    let text = |body: &BodyLayout, line: Option<usize>| line.map(|line| body.lines()[line].text());
    compare(&left, &right, IdComparison::Compared)
        .into_iter()
        .map(|row| {
            let mark = match row.kind {
                LineDifference::Same => '=',
                LineDifference::Changed => '~',
                LineDifference::Added => '+',
                LineDifference::Removed => '-',
            };
            let (left, right) = (text(&left, row.left), text(&right, row.right));
            format!(
                "{mark}{}|{}",
                left.unwrap_or_default(),
                right.unwrap_or_default()
            )
        })
        .collect()
}

#[test]
fn bodies_side_by_side() {
    assert_eq!(
        compared(r#"{"a":1,"b":2,"c":[]}"#, r#"{"a":1,"b":3,"c":[],"d":4}"#),
        [
            "={|{",
            "=\"a\": 1,|\"a\": 1,",
            "~\"b\": 2,|\"b\": 3,",
            "=\"c\": []|\"c\": [],",
            "+|\"d\": 4",
            "=}|}"
        ]
    );
    // `b` is paired with `b`, though `a` is what was removed before it.
    assert_eq!(
        compared(r#"{"a":1,"b":2}"#, r#"{"b":3}"#),
        ["={|{", "-\"a\": 1,|", "~\"b\": 2|\"b\": 3", "=}|}"]
    );
    assert_eq!(compared("", "x"), ["+|x"]);
    assert_eq!(compared("x", "y"), ["~x|y"]);
    assert!(compared("", "").is_empty());
}

#[test]
fn large_bodies_take_no_time_that_anybody_notices() {
    let left = BodyLayout::of(many(50_000).as_bytes());
    let reversed: Vec<String> = (0..50_000)
        .rev()
        .map(|n| format!("{{\"n\":{n}}}"))
        .collect();
    let right = BodyLayout::of(format!("[{}]", reversed.join(",")).as_bytes());
    let mut folds = Folds::default();
    folds.fold_below(&left, 1);

    // Far above what it takes, far below anything quadratic.
    let start = Instant::now();
    assert_eq!(left.shown(&folds).len(), 50_002);
    assert_eq!(left.summary(0), "… 50000 items ]");
    assert_eq!(left.find("not there", 7), None);
    folds.reveal(&left, 100_000);
    let rows = compare(&left, &right, IdComparison::Compared);
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    let lines =
        |side: fn(&DiffRow) -> Option<usize>| rows.iter().filter_map(side).collect::<Vec<_>>();
    assert_eq!(
        lines(|row| row.left),
        (0..left.lines().len()).collect::<Vec<_>>()
    );
    assert_eq!(
        lines(|row| row.right),
        (0..right.lines().len()).collect::<Vec<_>>()
    );
}

#[test]
fn text_that_is_broken_json_is_compared_with_json_by_what_it_says() {
    let rows = compared("{\"a\":1,\"b\":2}", "{\n  \"a\": 1,\n  \"b\": 2x\n}");
    let marks: String = rows.iter().filter_map(|row| row.chars().next()).collect();
    assert_eq!(marks, "==~=", "{rows:?}");
}
