//! Signals and sizes: the terminal is left as it was found, and the user is told.

use serde_json::Value;

use crate::fixtures::{self, PROXY};
use crate::screen::looking::recorded;
use crate::texts;
use crate::tmux::TmuxTerminal;

#[test]
fn a_signal_ends_a_viewer_in_order() {
    let home = recorded();
    for (signal, code) in [("TERM", 143), ("HUP", 129), ("INT", 130)] {
        let words = [PROXY, "open", "session.jsonl"];
        let screen = TmuxTerminal::run(home.path(), &[], &words);
        screen.shows_row(&["►", "#001 → initialize"]);
        screen.signal(signal);
        let text = screen.ended(code);
        for named in [&format!("SIG{signal}"), "session.jsonl"] {
            assert!(text.contains(named), "{text}");
        }
    }
}

#[test]
fn a_signal_ends_a_proxy_and_its_screen_in_order() {
    let home = tempfile::tempdir().expect("a temporary directory");
    for (signal, code) in [("TERM", 143), ("HUP", 129)] {
        let mut words = vec![PROXY, "proxy", "--listen", "http", "--listen-port", "0"];
        words.extend(["--", PROXY, "demo-server", "stdio"]);
        let screen = TmuxTerminal::run(home.path(), &[], &words);
        screen.shows(texts::EMPTY_LIST);
        screen.signal(signal);
        let text = screen.ended(code);
        let listening = format!("{}http://", texts::LISTENING_ON);
        for named in [&listening, &format!("SIG{signal}"), ".jsonl"] {
            assert!(text.contains(named), "{text}");
        }
        // The record's line comes last.
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let last = lines.iter().rposition(|line| line.ends_with(".jsonl"));
        let said = lines
            .iter()
            .rposition(|line| line.starts_with("mcp-proxy: "));
        assert_eq!(last, said, "{text}");
    }
}

enum StopBy {
    Signal,
    Key,
}

#[test]
fn a_program_that_is_stopped_lends_the_terminal_and_draws_again() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let screen = TmuxTerminal::run(home.path(), &[], &[PROXY, "demo", "--pace", "0"]);
    for stop in [StopBy::Signal, StopBy::Key] {
        screen.shows(texts::LIST);
        screen.until("mouse", |_| screen.flag("mouse_any_flag") == "1");
        match stop {
            StopBy::Signal => screen.signal("TSTP"),
            StopBy::Key => screen.press(&["C-z"]),
        }
        screen.until("own screen", |_| screen.flag("alternate_on") == "0");
        screen.until("end of the mouse", |_| screen.flag("mouse_any_flag") == "0");
        screen.until("stopped program", |_| screen.is_stopped());
        // What is typed meanwhile is echoed: the terminal is as it was found.
        screen.writes("meanwhile");
        screen.shows("meanwhile");
        screen.press(&["C-u"]);
        // Otherwise the program gets it as keys.
        screen.hides("meanwhile");
        screen.signal("CONT");
        screen.until("other screen", |_| screen.flag("alternate_on") == "1");
    }
    screen.shows(texts::LIST);
    // The mouse comes last: from then on no key is lost.
    screen.until("mouse", |_| screen.flag("mouse_any_flag") == "1");
    screen.press(&["F1"]);
    screen.shows(texts::HELP);
    screen.press(&["Escape"]);
    screen.hides(texts::HELP);
    screen.press(&["q"]);
    screen.ended(0);
}

#[test]
fn nothing_follows_the_end_of_a_demo_that_is_left_while_a_message_is_held() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let words = [
        PROXY,
        "demo",
        "--pace",
        "300",
        "--session-file",
        "demo.jsonl",
    ];
    let screen = TmuxTerminal::run(home.path(), &[], &words);
    screen.shows(texts::LIST);
    screen.press(&["i"]);
    screen.shows(&format!("1{}", texts::HELD));
    screen.press(&["q"]);
    screen.ended(0);
    let record = std::fs::read_to_string(home.path().join("demo.jsonl")).expect("a record");
    let lines = record.lines().map(serde_json::from_str);
    let lines: Vec<Value> = lines.collect::<Result<_, _>>().expect("a record is JSON");
    let kinds: Vec<_> = lines.iter().map(|line| line["t"].as_str()).collect();
    assert_eq!(kinds.last(), Some(&Some("end")), "{record}");
    assert!(kinds.contains(&Some("act")), "{record}");
}

#[test]
fn a_ui_that_fails_gives_the_terminal_back_and_says_why() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let program = fixtures::example("panics");
    let screen = TmuxTerminal::run(home.path(), &[], &[&program, "draws"]);
    screen.shows("[RECORD]");
    assert_eq!(screen.flag("alternate_on"), "1");
    assert_eq!(screen.flag("mouse_any_flag"), "1");
    screen.press(&["x"]);
    let text = screen.ended(101);
    assert!(text.contains("the drawing has failed"), "{text}");
    // Another thread takes nothing from the screen, and is told of at the end.
    let screen = TmuxTerminal::run(home.path(), &[], &[&program, "beside"]);
    screen.shows("the thread failed: true");
    assert_eq!(screen.flag("alternate_on"), "1");
    assert!(!screen.screen().contains("a thread has failed"));
    screen.press(&["x"]);
    let text = screen.ended(0);
    assert!(text.contains("a thread has failed"), "{text}");
}

#[test]
fn nothing_is_left_running_when_the_terminal_is_closed() {
    let home = recorded();
    let viewer = TmuxTerminal::run(home.path(), &[], &[PROXY, "open", "session.jsonl"]);
    viewer.shows_row(&["►", "#001 → initialize"]);
    viewer.close();
    let mut words = vec![PROXY, "proxy", "--listen", "http", "--listen-port", "0"];
    words.extend(["--session-file", "live.jsonl"]);
    words.extend(["--", PROXY, "demo-server", "stdio"]);
    let proxy = TmuxTerminal::run(home.path(), &[], &words);
    proxy.shows(texts::EMPTY_LIST);
    proxy.close();
    let record = std::fs::read_to_string(home.path().join("live.jsonl")).expect("a record");
    let last = record.lines().last().unwrap_or_default();
    let last: Value = serde_json::from_str(last).expect("a record is JSON");
    assert_eq!(last["t"], "end", "{last}");
    assert!(last["why"].as_str().unwrap().contains("SIGHUP"), "{last}");
}

#[test]
fn every_size_is_drawn() {
    let home = recorded();
    let screen = TmuxTerminal::run(home.path(), &[], &[PROXY, "open", "session.jsonl"]);
    screen.shows_row(&["►", "#001 → initialize"]);
    for (columns, rows) in [(20, 5), (8, 2), (2, 1), (80, 24), (300, 90), (160, 50)] {
        screen.resize(columns, rows);
        screen.press(&["g"]);
        if columns > 8 {
            screen.shows("#001 → ini");
        }
        // Over what is there, and back.
        screen.press(&["F1", "q", "l", "q", "b", "q", "u", "q"]);
    }
    screen.shows_row(&["►", "#001 → initialize"]);
    screen.shows(r#""method": "initialize""#);
    screen.press(&["q"]);
    screen.ended(0);
}
