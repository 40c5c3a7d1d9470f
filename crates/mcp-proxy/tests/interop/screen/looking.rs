//! Records on the screen, and the demo.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::fixtures::{self, PROXY};
use crate::process::{finish, said};
use crate::texts;
use crate::tmux::TmuxTerminal;

/// A folder with a record of the demo in it, `session.jsonl`. Made without a terminal, where the demo prints.
pub fn recorded() -> TempDir {
    let home = tempfile::tempdir().expect("a temporary directory");
    let words = ["demo", "--pace", "0", "--session-file", "session.jsonl"];
    let mut command = fixtures::command(PROXY, &words);
    command.current_dir(home.path());
    let output = finish(&mut command, Duration::from_secs(60));
    assert!(output.status.success(), "{}", said(&output));
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        out.contains("initialize") && !out.contains('\u{1b}'),
        "{out}"
    );
    says_what_to_type(&err, &home, "session.jsonl");
    home
}

/// The demo leaves with a command for its record.
fn says_what_to_type(text: &str, home: &TempDir, record: &str) {
    let record = home.path().join(record).display().to_string();
    assert!(
        text.contains("mcp-proxy inspect ") && text.contains(&record),
        "{text}"
    );
}

fn open(home: &Path, environment: &[&str], words: &[&str]) -> TmuxTerminal {
    TmuxTerminal::run(home, environment, &[&[PROXY, "open"], words].concat())
}

#[test]
fn a_record_is_filtered_searched_folded_and_followed() {
    let home = recorded();
    let screen = open(home.path(), &[], &["session.jsonl"]);
    screen.shows("[RECORD]");
    screen.shows(" session.jsonl");
    screen.shows_row(&["►", "#001 → initialize"]);

    screen.press(&["F2"]);
    screen.shows(texts::FILTER);
    screen.types("tools/call");
    screen.hides("#001 → initialize");
    screen.shows("[Filter: tools/call]");
    screen.press(&["f"]);
    screen.shows_row(&[texts::FILTER, "tools/call"]);
    screen.press(&["C-u"]);
    screen.types(".method ==");
    screen.shows(texts::WRONG_FILTER);
    screen.press(&["Escape"]);
    screen.shows("[Filter: tools/call]");
    screen.press(&["C-l"]);
    screen.shows_row(&["►", "#001 → initialize"]);

    // From a request to its answer and back.
    screen.press(&["g"]);
    screen.shows(" #1 ");
    screen.press(&["p"]);
    screen.shows(" #2 ");
    screen.press(&["p"]);
    screen.shows(" #1 ");

    screen.types("/clientInfo");
    screen.shows(r#""clientInfo": {"#);
    screen.press(&["Space"]);
    screen.shows_row(&["▸", r#""clientInfo": {"#]);
    screen.press(&["Space"]);
    screen.shows_row(&["▾", r#""clientInfo": {"#]);
    screen.press(&["z"]);
    screen.hides(r#""clientInfo""#);
    // What is found is unfolded.
    screen.press(&["n"]);
    screen.shows(r#""clientInfo""#);
    screen.types("/nowhere");
    screen.shows("! `nowhere`");

    screen.types(":theme mono");
    screen.hides(":theme");
    no_colours(&screen);
    screen.press(&["q"]);
    screen.ended(0);
}

/// Bold, dim, underlined and reversed say nothing about colours, and 39 and 49 are those of the terminal.
fn no_colours(screen: &TmuxTerminal) {
    let is_plain = |text: &str| {
        let escapes = text.split("\u{1b}[").skip(1);
        let mut codes = escapes.flat_map(|rest| rest.split('m').next().unwrap_or(rest).split(';'));
        codes.all(|code| matches!(code, "" | "0" | "1" | "2" | "4" | "7" | "39" | "49"))
    };
    // The next frame may not be drawn yet.
    screen.until("screen without colours", |_| is_plain(&screen.coloured()));
}

#[test]
fn colours_are_left_out_where_they_are_not_wanted() {
    let home = recorded();
    let screen = open(home.path(), &["NO_COLOR=1"], &["session.jsonl"]);
    screen.shows_row(&["►", "#001 → initialize"]);
    no_colours(&screen);
    screen.press(&["F1"]);
    screen.shows(texts::HELP);
    no_colours(&screen);
    screen.press(&["Escape"]);
    screen.hides(texts::HELP);
    screen.press(&["q"]);
    screen.ended(0);
    // A terminal that has none.
    let screen = open(home.path(), &["TERM=vt100"], &["session.jsonl"]);
    screen.shows_row(&["►", "#001 → initialize"]);
    no_colours(&screen);
    screen.press(&["q"]);
    screen.ended(0);
}

#[test]
fn what_is_copied_is_in_the_clipboard_of_the_terminal() {
    let home = recorded();
    let screen = open(home.path(), &[], &["session.jsonl"]);
    screen.shows_row(&["►", "#001 → initialize"]);
    screen.takes_copies();
    screen.press(&["g"]);
    screen.shows(" #1 ");
    screen.press(&["y"]);
    screen.shows(texts::COPIED);
    let copied = screen.clipboard();
    assert!(
        copied.starts_with('{') && copied.contains("initialize"),
        "{copied}"
    );
    screen.press(&["q"]);
    screen.ended(0);
}

#[test]
fn the_mouse_is_taken_and_left() {
    let home = recorded();
    let screen = open(home.path(), &[], &["session.jsonl"]);
    screen.shows_row(&["►", "#001 → initialize"]);
    assert_eq!(screen.flag("mouse_any_flag"), "1");
    let (place, _) = screen.shows_row(&["#003"]);
    let row = place + 1;
    screen.writes(&format!("\u{1b}[<0;5;{row}M\u{1b}[<0;5;{row}m"));
    screen.shows(" #3 ");
    screen.press(&["q"]);
    screen.ended(0);
    let screen = open(home.path(), &[], &["session.jsonl", "--no-mouse"]);
    screen.shows_row(&["►", "#001 → initialize"]);
    assert_eq!(screen.flag("mouse_any_flag"), "0");
    screen.press(&["q"]);
    screen.ended(0);
}

#[test]
fn what_is_pasted_is_shown_and_not_obeyed() {
    let home = recorded();
    let screen = open(home.path(), &[], &["session.jsonl"]);
    screen.shows_row(&["►", "#001 → initialize"]);
    screen.press(&["F2"]);
    screen.shows(texts::FILTER);
    // Clears the screen, rings, sets a title, ends the line, quits: if it were obeyed.
    screen.pastes("tools\u{1b}[2J\u{7}\u{1b}]2;pwned\u{7}\rq\u{3}/call");
    screen.shows_row(&[texts::FILTER, "tools", "[2J", "pwned", "/call"]);
    screen.shows(texts::EMPTY_FILTERED_LIST);
    assert_ne!(screen.flag("pane_title"), "pwned");
    screen.press(&["Escape"]);
    screen.shows("[Filter: (F2)]");
    screen.shows_row(&["►", "#001 → initialize"]);
    // Pasted where nothing is typed: no keys.
    screen.pastes("qqq");
    screen.press(&["F1"]);
    screen.shows(texts::HELP);
    screen.press(&["Escape"]);
    screen.hides(texts::HELP);
    screen.press(&["q"]);
    screen.ended(0);
}

#[test]
fn a_record_that_is_not_there_is_told_without_drawing() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let screen = open(home.path(), &[], &["./missing.jsonl"]);
    let text = screen.ended(1);
    assert!(text.contains("./missing.jsonl"), "{text}");
}

#[test]
fn without_a_terminal_a_record_is_not_opened() {
    let home = recorded();
    let mut command = fixtures::command(PROXY, &["open", "session.jsonl"]);
    let output = finish(command.current_dir(home.path()), Duration::from_secs(30));
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(output.stdout.is_empty(), "{text}");
    assert!(text.contains("mcp-proxy inspect"), "{text}");
    let screen = open(home.path(), &["TERM=dumb"], &["session.jsonl"]);
    let text = screen.ended(1);
    assert!(text.contains("TERM=dumb"), "{text}");
    let words = [PROXY, "demo", "--pace", "0"];
    let screen = TmuxTerminal::run(home.path(), &["TERM=dumb"], &words);
    screen.shows("--plain");
    screen.ended(0);
}

#[test]
fn what_is_no_record_is_told_without_drawing() {
    let home = recorded();
    std::fs::write(home.path().join("notes.txt"), "hello\n").expect("a file");
    let said = "notes.txt ";
    let screen = open(home.path(), &[], &["notes.txt"]);
    let text = screen.ended(1);
    assert!(text.contains(said), "{text}");
    let screen = open(home.path(), &[], &["session.jsonl"]);
    screen.shows_row(&["►", "#001 → initialize"]);
    screen.types(":load notes.txt");
    screen.shows_row(&["!", said]);
    assert!(!screen.screen().contains(" 2/2: "));
    screen.press(&["q"]);
    screen.ended(0);
}

#[test]
fn the_demo_is_shown_and_left_with_a_word() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let words = [PROXY, "demo", "--pace", "0", "--session-file", "demo.jsonl"];
    let screen = TmuxTerminal::run(home.path(), &[], &words);
    screen.shows(texts::DEMO_OVER);
    screen.shows_row(&["►", "#001 → initialize"]);
    screen.press(&["q"]);
    let text = screen.ended(0);
    says_what_to_type(&text, &home, "demo.jsonl");
}

#[test]
fn the_demo_is_left_while_a_message_is_held() {
    let home = tempfile::tempdir().expect("a temporary directory");
    // Slow enough for the first key.
    let words = ["demo", "--pace", "2000", "--session-file", "demo.jsonl"];
    let screen = TmuxTerminal::run(home.path(), &[], &[&[PROXY], words.as_slice()].concat());
    screen.shows_row(&["►", "#001 → initialize"]);
    screen.press(&["i"]);
    screen.shows(&format!("1{}", texts::HELD));
    screen.press(&["q"]);
    let text = screen.ended(0);
    says_what_to_type(&text, &home, "demo.jsonl");
    let record = std::fs::read_to_string(home.path().join("demo.jsonl")).expect("a record");
    let lines = record
        .lines()
        .map(|line| serde_json::from_str(line).expect("a record is JSON"));
    let ends = lines.filter(|line: &Value| line["t"] == "end");
    assert_eq!(ends.count(), 1, "{record}");
}
