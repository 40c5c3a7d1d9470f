//! The search finds what a plain one finds, in lines of any length.

use std::io::Write;

use proptest::prelude::*;
use regex::bytes::{Regex, RegexBuilder};

use super::*;
use crate::PatternReading;

fn file_of(text: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text).unwrap();
    file
}

fn grep_text(text: &[u8], pattern: &str, context: u64) -> (String, u64) {
    let part = grep(
        &file_of(text),
        text.len() as u64,
        pattern,
        context,
        ReadLimit::MOST,
    )
    .unwrap();
    let ReadFacts::Matches { match_count, .. } = part.facts else {
        panic!("facts of a search");
    };
    (
        String::from_utf8_lossy(&part.text).into_owned(),
        match_count,
    )
}

/// The same search, line by line.
fn expected(text: &str, pattern: &str, context: u64) -> (String, u64) {
    let compile = |pattern: &str| -> Result<Regex, regex::Error> {
        let mut builder = RegexBuilder::new(pattern);
        builder.case_insensitive(true).multi_line(true).build()
    };
    let regex = compile(pattern).unwrap_or_else(|_| compile(&regex::escape(pattern)).unwrap());
    let lines: Vec<_> = text.split_terminator('\n').collect();
    let is_match: Vec<_> = lines
        .iter()
        .map(|line| regex.is_match(line.as_bytes()))
        .collect();
    let count = is_match.iter().filter(|is_match| **is_match).count() as u64;
    let context = context as usize;
    let mut shown = Vec::new();
    let mut last = None;
    for (at, line) in lines.iter().enumerate() {
        let near = at.saturating_sub(context)..(at + context + 1).min(lines.len());
        if !is_match[near].contains(&true) {
            continue;
        }
        if last.is_some_and(|last| last + 1 < at) {
            shown.push("---".to_owned());
        }
        last = Some(at);
        let mark = if is_match[at] { ':' } else { '-' };
        shown.push(format!("{}{mark} {line}", at + 1));
    }
    match count {
        0 => ("(no matches)".to_owned(), 0),
        _ => (shown.join("\n"), count),
    }
}

#[test]
fn matches_are_numbered_and_grouped() {
    let text = b"one\ntwo\nthree\nfour\nfive\nsix\nseven\nONE\n";
    insta::assert_snapshot!(grep_text(text, "one|four", 1).0, @r"
    1: one
    2- two
    3- three
    4: four
    5- five
    ---
    7- seven
    8: ONE
    ");
    assert_eq!(grep_text(text, "nine", 1), ("(no matches)".to_owned(), 0));
}

#[test]
fn a_broken_pattern_is_looked_for_as_it_is_written() {
    assert_eq!(grep_text(b"a(((b\nab", "(((", 0).0, "1: a(((b");
}

#[test]
fn a_long_line_is_shown_around_its_match() {
    let text = format!("{}needle{}", "é".repeat(100_000), "x".repeat(1_000_000));
    let (shown, count) = grep_text(text.as_bytes(), "needle", 0);
    assert_eq!(count, 1);
    assert!(shown.contains("éneedlex") && shown.len() < 5000);
    assert!(shown.starts_with("1: [199744 bytes] é"), "{}", &shown[..40]);
    assert!(
        shown.contains("x [999238 bytes]\n[Long lines are cut."),
        "{shown}"
    );
    assert!(
        shown.contains("fromLine=1 toLine=1 fromColumn=200769]"),
        "{shown}"
    );
}

#[test]
fn context_reaches_into_the_piece_before() {
    let line = |number: u64| format!("line {number:>10}");
    let lines: String = (1..=40_000).map(|number| line(number) + "\n").collect();
    let boundary = (PIECE / (line(1).len() + 1)) as u64;
    for number in boundary - 4..boundary + 6 {
        let found = grep_text(lines.as_bytes(), &line(number), 2);
        let shown = (number - 2..=number + 2).map(|shown| {
            let mark = if shown == number { ':' } else { '-' };
            format!("{shown}{mark} {}", line(shown))
        });
        assert_eq!(found, (shown.collect::<Vec<_>>().join("\n"), 1));
    }
}

#[test]
fn all_matches_are_counted_and_as_many_shown_as_fit() {
    let lines: String = (1..=100_000).map(|line| format!("line {line}\n")).collect();
    let part = grep(
        &file_of(lines.as_bytes()),
        lines.len() as u64,
        "line",
        0,
        ReadLimit::MOST,
    )
    .unwrap();
    let ReadFacts::Matches {
        match_count,
        returned_matches,
        ..
    } = part.facts
    else {
        panic!("facts of a search");
    };
    assert_eq!(match_count, 100_000);
    assert!(part.truncated && returned_matches > 10_000 && returned_matches < match_count);
    assert!(part.text.len() <= crate::MAX_ANSWER);
}

#[test]
fn a_pattern_that_may_match_line_breaks_stays_on_its_line() {
    let text = "a b\nb a\n\n a\r\nx\u{b}é\ta\nA.B\nab\n\nb";
    for pattern in [
        "[^a]",
        "[^a]+",
        r"a\sb",
        r"a\s*b",
        r"\s",
        r"\s+$",
        r"\Aa",
        r"a\z",
        r"\A\z",
        "(?s)a.b",
        "(?s).*",
        "(?s)a.*b",
        "(?-m)^a",
        "(?-m)a$",
        "a\nb",
        "a\nb|x",
        "(a\n)?b",
        "[[:space:]]b",
        r"\W",
        r"\W\W",
        r"\x0a",
        r"[\n]|é",
        r"[\t-x]",
        "(?-u)[^a]b",
        r"(?-u)\xc3[^a]",
        r"\Bb",
        r"a\b",
        "(?m)^$",
        "",
    ] {
        assert_eq!(
            grep_text(text.as_bytes(), pattern, 0),
            expected(text, pattern, 0),
            "{pattern}"
        );
    }
}

#[test]
fn a_text_that_is_in_too_many_lines_is_given_up() {
    let lines: String = (1..=3000).map(|line| format!("[{line}] 777\n")).collect();
    for pattern in [r"[^1]\] 777", r"\d00\] 777", "x?y 777", r"[12]+\] 777$"] {
        let found = grep_text(lines.as_bytes(), pattern, 0);
        assert_eq!(found, expected(&lines, pattern, 0), "{pattern}");
    }
}

#[test]
fn a3_a_search_of_one_long_line_ends_in_time() {
    let text: String = (0..4 << 20).map(|at| ['a', 'b'][at % 7 % 2]).collect();
    let deadline = Instant::now() + Duration::from_millis(50);
    for (pattern, count) in [("[ab]*a[ab]{900}[^ab\"]", 0), ("a|b.*c", 1)] {
        let file = file_of(text.as_bytes());
        let size = text.len() as u64;
        let part = grep_until(deadline, &file, size, pattern, 0, ReadLimit::MOST).unwrap();
        assert!(part.truncated, "{pattern}");
        let ReadFacts::Matches { match_count, .. } = part.facts else {
            panic!("facts of a search");
        };
        assert!(match_count <= count, "{pattern}");
        let says_part = part.text.starts_with(b"(no matches in the part");
        assert_eq!(says_part, match_count == 0, "{pattern}");
    }
}

#[test]
fn a_long_line_among_others_is_searched_like_them() {
    let long = format!("{}ab {}", "é x ".repeat(200_000), "a b".repeat(1000));
    let text = format!("first ab\n{long}\n\nab\nlast");
    for pattern in [
        "ab",
        "x ab",
        "^é",
        "b$",
        "^x",
        "nothing",
        r"\bab\b",
        "ab|ast",
        "[^a]ab a*",
    ] {
        let part = grep(
            &file_of(text.as_bytes()),
            text.len() as u64,
            pattern,
            0,
            ReadLimit::MOST,
        );
        let regex = RegexBuilder::new(pattern).multi_line(true).build().unwrap();
        let lines = text.split('\n');
        let matching = lines.filter(|line| regex.is_match(line.as_bytes()));
        let facts = ReadFacts::Matches {
            match_count: matching.clone().count() as u64,
            occurrence_count: matching
                .clone()
                .map(|line| regex.find_iter(line.as_bytes()).count() as u64)
                .sum(),
            returned_matches: matching.count() as u64,
            reading: PatternReading::Regex,
        };
        assert_eq!(part.unwrap().facts, facts, "{pattern}");
    }
}

proptest! {
    #[test]
    fn the_search_agrees_with_a_plain_one(
        lines in proptest::collection::vec("[ab ]{0,6}", 0..30),
        ends_with_break in any::<bool>(),
        pattern in prop_oneof!["[ab]{1,2}", "[ab.*$^|\\[\\]()]{0,5}", Just("[^a]".to_owned()), Just("\\s".to_owned()),
            Just("[^a]abb".to_owned()), Just("b* baa?".to_owned()), Just(".(ab|ba) a".to_owned()),
            Just("b$".to_owned()), Just("^$".to_owned()), Just("$".to_owned()), Just("a[^b]*a".to_owned()), Just("\\Ab\\z".to_owned())],
        context in 0u64..4,
    ) {
        let mut text = lines.join("\n");
        if ends_with_break {
            text.push('\n');
        }
        prop_assert_eq!(grep_text(text.as_bytes(), &pattern, context), expected(&text, &pattern, context), "{:?} {:?}", text, pattern);
    }
}
