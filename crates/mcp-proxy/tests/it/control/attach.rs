//! `attach --plain`: rows as they come, and decisions from the keyboard.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use super::test_home::{PING, TestHome};
use crate::programs::{INITIALIZE, INITIALIZED};

/// What sends an edit that is no JSON; it is offered only then.
const INSIST: &str = "m! ";
/// What is said about a question that needs no answer any more.
const ELSEWHERE: &str = "elsewhere";

/// What is asked before it leaves a proxy that still holds messages.
const QUIT: &str = "quit";

/// A viewer with somebody at its keyboard.
struct AttachProcess {
    child: Child,
    keyboard: Option<ChildStdin>,
    rows: BufReader<ChildStdout>,
    said: BufReader<std::process::ChildStderr>,
}

impl AttachProcess {
    fn start(house: &TestHome, words: &[&str]) -> AttachProcess {
        let mut command = house.command(&[&["attach", "--plain"], words].concat());
        command
            .stdin(Stdio::piped())
            .env_remove("EDITOR")
            .env_remove("VISUAL");
        let mut child = command.spawn().unwrap();
        AttachProcess {
            keyboard: child.stdin.take(),
            rows: BufReader::new(child.stdout.take().unwrap()),
            said: BufReader::new(child.stderr.take().unwrap()),
            child,
        }
    }

    fn types(&mut self, line: &str) {
        writeln!(self.keyboard.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Reads rows until one has the word.
    fn row(&mut self, word: &str) -> String {
        until(&mut self.rows, word)
    }

    /// Reads what it says until a line has the word.
    fn says(&mut self, word: &str) -> String {
        until(&mut self.said, word)
    }

    /// It ends by itself, with the keyboard still there; returns the rest of its rows.
    fn end(mut self) -> String {
        let mut rest = String::new();
        self.rows.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success());
        rest
    }
}

impl Drop for AttachProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn until(lines: &mut impl BufRead, word: &str) -> String {
    loop {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).unwrap() > 0, "no {word}");
        if line.contains(word) {
            return line;
        }
    }
}

#[test]
fn follows_a_record_to_its_end() {
    let house = TestHome::new();
    let mut run = house.demo(&[]);
    run.round(INITIALIZE);
    let mut viewer = AttachProcess::start(&house, &[]);
    viewer.row("► initialize");
    viewer.row("↩ initialize");
    run.round(PING);
    viewer.row("► ping");
    viewer.row("↩ ping");
    run.end();
    let rest = viewer.end();
    assert!(rest.lines().any(|line| line.starts_with("4 ")), "{rest}");
}

#[test]
fn follows_a_run_without_a_record() {
    let house = TestHome::new();
    let mut run = house.demo_without_record(&[]);
    run.round(INITIALIZE);
    for _ in 0..30 {
        run.round(PING);
    }
    let mut viewer = AttachProcess::start(&house, &["--last", "3"]);
    let first = viewer.row("ping");
    assert!(first.trim_start().starts_with("60 "), "{first}");
    run.round(r#"{"jsonrpc":"2.0","id":8,"method":"tools/list"}"#);
    viewer.row("↩ tools/list");
    run.end();
    let rest = viewer.end();
    assert_eq!(rest.trim().lines().count(), 1, "{rest}");
}

#[test]
fn decides_from_the_keyboard() {
    let house = TestHome::new();
    let mut run = house.demo(&["--intercept"]);
    let mut viewer = AttachProcess::start(&house, &[]);
    run.say(INITIALIZE);
    viewer.says("hold 1: #1 ►");
    viewer.says("\"method\":\"initialize\"");
    viewer.types("f");
    viewer.says("hold 2: #2 ◄");
    viewer.types("what");
    viewer.types("forward");
    assert!(run.hear().contains("protocolVersion"));
    run.say(INITIALIZED);
    viewer.says("hold 3");
    viewer.types("s");

    // Answered by hand.
    run.say(PING);
    viewer.says("hold 4");
    viewer.types("e -5 not now");
    let answer = run.hear();
    assert!(
        answer.contains("\"code\":-5") && answer.contains("not now"),
        "{answer}"
    );

    // Changed, in two lines; what is no JSON is refused first.
    run.say(PING);
    viewer.says("hold 5");
    viewer.types("m");
    viewer.types("no json");
    viewer.says(INSIST);
    viewer.types("m {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\"}");
    viewer.says("hold 6");
    viewer.types("c");
    assert!(run.hear().contains("echo"));
    viewer.row("modify #");

    // From now on messages pass.
    run.round(PING);
    viewer.types("i");
    super::test_home::until("the mode is set", || {
        house.ctl(&["intercept.get"])["mode"] == "intercept"
    });
    // Dropped, and decided elsewhere.
    run.say(INITIALIZED);
    viewer.says("hold 7");
    viewer.types("d");
    run.say(PING);
    viewer.says("hold 8");
    house.ctl(&["hold.resolve", "hold=8", "action=forward"]);
    viewer.says(ELSEWHERE);
    viewer.says("hold 9");
    viewer.types("f");
    assert!(run.hear().contains("\"result\""));
    let record = house.record();
    assert!(record.contains("\"kind\":\"drop\""), "{record}");
    viewer.types("q");
    viewer.says(QUIT);
    viewer.types("l");
    viewer.end();
    run.end();
}

#[test]
fn what_is_no_json_is_kept_and_sent_if_it_is_meant() {
    let house = TestHome::new();
    let mut run = house.demo(&["--intercept"]);
    let mut viewer = AttachProcess::start(&house, &[]);
    run.say(INITIALIZE);
    viewer.says("hold 1");
    viewer.types("f");
    viewer.says("hold 2");
    viewer.types("m <html>");
    let said = viewer.says(INSIST);
    assert!(!said.contains("as_is"), "{said}");
    viewer.types("m!");
    assert_eq!(run.hear().trim_end(), "<html>");
    // It was for that message only.
    run.say(PING);
    viewer.says("hold 3");
    viewer.types("m!");
    viewer.types("no ping");
    super::test_home::until("it was sent", || house.record().contains("no ping"));
    viewer.types("c");
    viewer.types("q");
    viewer.end();
    run.end();
}

#[test]
fn while_a_message_is_edited_its_time_does_not_run() {
    let house = TestHome::new();
    // Words would hold the answer too.
    let mut run = house.demo(&["--break", r#".kind == "request" and .method == "ping""#]);
    run.round(INITIALIZE);
    let mut viewer = AttachProcess::start(&house, &[]);
    run.say(PING);
    viewer.says("hold 1");
    let clock = || house.ctl(&["hold.list"])["holds"][0]["clock"].clone();
    assert_eq!(clock(), "running");
    viewer.types("m");
    super::test_home::until("the editor is open", || clock() == "stopped");
    viewer.types(PING);
    assert!(run.hear().contains("\"result\""));
    run.say(PING);
    viewer.says("hold 2");
    viewer.types("t");
    viewer.says("s left");
    let left = || house.ctl(&["hold.list"])["holds"][0]["left_ms"].as_u64();
    assert!(left().unwrap() > 60_000);
    viewer.types("m");
    super::test_home::until("the editor is open", || clock() == "stopped");
    // A viewer that is gone edits nothing.
    drop(viewer);
    super::test_home::until("the editor is closed", || clock() == "running");
    let more = house.ctl(&["hold.extend", "hold=2", "seconds=1000"]);
    assert!(more["left_ms"].as_u64().unwrap() > 1_000_000, "{more}");
    house.ctl(&["continue"]);
    assert!(run.hear().contains("\"result\""));
    run.end();
}

#[test]
fn it_asks_before_it_leaves_breakpoints_that_hold_messages() {
    let house = TestHome::new();
    let mut run = house.demo(&["--break", "ping"]);
    run.round(INITIALIZE);
    let mut viewer = AttachProcess::start(&house, &[]);
    viewer.row("↩ initialize");
    viewer.types("q");
    viewer.says(QUIT);
    viewer.types("n");
    run.say(PING);
    viewer.says("hold 1");
    viewer.types("q");
    viewer.says(QUIT);
    viewer.types("c");
    viewer.end();
    assert!(run.hear().contains("\"result\""));
    assert_eq!(house.ctl(&["stats"])["breakpoints"], 0);
    run.round(PING);
    run.end();
}

#[test]
fn without_a_keyboard_it_says_how_to_decide() {
    let house = TestHome::new();
    let mut run = house.demo(&["--break", r#".kind == "request" and .method == "ping""#]);
    run.round(INITIALIZE);
    let mut command = house.command(&["attach", &run.id]);
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    run.say(PING);
    let line = until(&mut said, "hold.resolve");
    assert!(
        line.contains(&format!("mcp-proxy ctl {} hold.resolve hold=1", run.id)),
        "{line}"
    );
    // Killed, it changes nothing: the message is still held and can be let go.
    child.kill().unwrap();
    child.wait().unwrap();
    house.ctl(&["continue"]);
    assert!(run.hear().contains("\"result\""));
    run.round(PING_AGAIN);
}

const PING_AGAIN: &str = r#"{"jsonrpc":"2.0","id":8,"method":"tools/list"}"#;
