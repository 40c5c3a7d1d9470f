//! `inspect` on a pipe: following a record that grows, and a reader that goes away.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::process::{Child, ChildStdout};

use super::sample::*;

/// The next line that has `word` in it. The test command's own deadline ends a wait that is in vain.
fn until(lines: &mut Lines<BufReader<ChildStdout>>, word: &str) -> String {
    lines
        .by_ref()
        .map(Result::unwrap)
        .find(|line| line.contains(word))
        .expect(word)
}

fn follow(place: &TestStore, words: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = place
        .command(&[&["inspect", "session.jsonl", "--follow"], words].concat())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

fn finish(mut child: Child) -> String {
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert!(child.wait().unwrap().success(), "{stderr}");
    stderr
}

#[test]
fn shows_what_is_added_until_the_session_ends() {
    let place = TestStore::new();
    let mut sample = place.sample();
    let one = sample.client(r#"{"jsonrpc":"2.0","id":1,"method":"first"}"#);
    sample.flush();
    let (child, mut lines) = follow(&place, &[]);
    until(&mut lines, "first");
    sample.answer(one, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    sample.verdict("drop", one).write();
    sample.flush();
    assert!(until(&mut lines, "↩ first").contains("1.0 ms"));
    // What became of a message that is on the screen already.
    let verdict = until(&mut lines, "drop #1 ");
    assert!(verdict.contains("as asked"), "{verdict}");
    sample.on(2).client(r#"{"method":"elsewhere"}"#);
    sample.flush();
    until(&mut lines, "conn");
    until(&mut lines, "c2   elsewhere");
    sample.end();
    let end = until(&mut lines, "18:01:00.000");
    assert!(
        end.starts_with("3 ") && end.contains("the client closed"),
        "{end}"
    );
    assert_eq!(finish(child), "");
}

#[test]
fn waits_for_the_rest_of_a_line_that_is_being_written() {
    let place = TestStore::new();
    let mut sample = place.sample();
    sample.client(r#"{"method":"first"}"#);
    sample.flush();
    let text = std::fs::read_to_string(sample.path()).unwrap();
    let line = text
        .lines()
        .last()
        .unwrap()
        .replace("first", "second")
        .replace("\"sequence\":1", "\"sequence\":2");
    let (half, rest) = line.split_at(60);
    let mut file = OpenOptions::new().append(true).open(sample.path()).unwrap();
    file.write_all(half.as_bytes()).unwrap();
    let (child, mut lines) = follow(&place, &["--json"]);
    until(&mut lines, "first");
    assert!(
        std::fs::read(sample.path())
            .unwrap()
            .ends_with(half.as_bytes()),
        "a record that is being written is not repaired"
    );
    file.write_all(format!("{rest}\n").as_bytes()).unwrap();
    until(&mut lines, "second");
    sample.end();
    assert!(lines.next().is_none());
    assert_eq!(finish(child), "");
}

#[test]
fn a_record_that_nobody_writes_is_not_waited_for() {
    let place = TestStore::new();
    let mut sample = place.sample();
    sample.client(r#"{"method":"first"}"#);
    sample.flush();
    drop(sample);
    let text = place.print(&["inspect", "session.jsonl", "--follow"]);
    assert!(text.lines().last().unwrap().starts_with("1 "), "{text}");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let place = TestStore::new();
    let mut sample = place.sample();
    for _ in 0..20_000 {
        sample.client(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#);
    }
    sample.end();
    for words in [
        &["inspect", "LONG"][..],
        &["inspect", "LONG", "--raw"],
        &["inspect", "LONG", "--json"],
        &["export", "LONG"],
    ] {
        let words: Vec<_> = words
            .iter()
            .map(|word| {
                if *word == "LONG" {
                    "session.jsonl"
                } else {
                    word
                }
            })
            .collect();
        let mut child = place.command(&words).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut String::new()).unwrap();
        drop(stdout);
        assert_eq!(finish(child), "", "{words:?}");
    }
}
