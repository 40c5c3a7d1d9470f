//! `mcp-proxy shell` on a real terminal: completion, questions, progress, Ctrl-C, history.

use std::os::unix::fs::PermissionsExt as _;

use crate::fixtures::PROXY;
use crate::tmux::TmuxTerminal;

const DEMO: [&str; 4] = ["--", PROXY, "demo-server", "stdio"];

fn start(home: &std::path::Path, flags: &[&str]) -> TmuxTerminal {
    TmuxTerminal::run(home, &[], &[&[PROXY, "shell"], flags, &DEMO].concat())
}

#[test]
fn names_and_arguments_are_completed_with_their_documentation() {
    let home = tempfile::tempdir().unwrap();
    let terminal = start(home.path(), &[]);
    terminal.shows("server>");
    terminal.writes("cal");
    terminal.press(&["Tab"]);
    terminal.shows("server> call");
    terminal.writes("ad");
    terminal.press(&["Tab"]);
    // What is missing is hinted behind the cursor.
    terminal.shows("server> call add a=<number> b=<number>");
    terminal.press(&["Tab", "Tab"]);
    terminal.shows_row(&["unit=", "What is being counted"]);
    terminal.types("a=1 b=2");
    terminal.shows("\"sum\":3.0");
    terminal.types("cal add");
    terminal.shows("did you mean `call`?");
    terminal.press(&["C-d"]);
    terminal.ended(0);
    let history = home.path().join("state/mcp-proxy/shell-history");
    let kept = std::fs::read_to_string(&history).unwrap();
    assert!(kept.contains("call add a=1 b=2"), "{kept}");
    let mode = history.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0);
}

#[test]
fn a_running_call_shows_progress_and_is_cancelled() {
    let home = tempfile::tempdir().unwrap();
    // A proxy in between records what the server is told.
    let between = [PROXY, "proxy", "--quiet", "--session-file", "session.jsonl"];
    let words = [&[PROXY, "shell", "-v", "--"], &between[..], &DEMO].concat();
    let terminal = TmuxTerminal::run(home.path(), &[], &words);
    terminal.shows("server>");
    terminal.types("call count_down from=60 pause_ms=200");
    terminal.shows("% 5");
    terminal.press(&["C-c"]);
    terminal.shows("cancelled");
    // The conversation is still there, and the server has stopped counting.
    terminal.types("call echo message=still-here");
    terminal.until("an answer", |screen| {
        screen.lines().any(|line| line == "still-here")
    });
    terminal.types("quit");
    terminal.ended(0);
    let record = std::fs::read_to_string(home.path().join("session.jsonl")).unwrap();
    assert!(record.contains("notifications/cancelled"), "{record}");
}

#[test]
fn a_question_of_the_server_is_asked_and_can_be_declined() {
    let home = tempfile::tempdir().unwrap();
    let terminal = start(home.path(), &[]);
    terminal.shows("server>");
    terminal.types("call ask_name");
    terminal.shows(" asks:");
    terminal.shows("name (string)");
    terminal.types("Ada");
    terminal.shows("Ada!");
    terminal.types("call ask_name");
    terminal.until("the second question", |screen| {
        screen.matches("name (string)").count() == 2
    });
    terminal.types("!decline");
    terminal.until("the prompt", |screen| {
        screen.trim_end().ends_with("server>")
    });
    terminal.types("call ask_name");
    terminal.until("the third question", |screen| {
        screen.matches("name (string)").count() == 3
    });
    terminal.press(&["C-c"]);
    terminal.shows("cancelled");
    // What is typed now is the shell's, not an answer to the question that nobody waits for.
    terminal.types("call echo message=again");
    terminal.until("an answer", |screen| {
        screen.lines().any(|line| line == "again")
    });
    terminal.types("quit");
    terminal.ended(0);
}

/// Waits for these answers of `echo`, each on a line of its own, in this order.
fn answers_in_order(terminal: &TmuxTerminal, words: &[&str]) {
    terminal.until(&format!("the answers {words:?}"), |screen| {
        let answers: Vec<&str> = screen.lines().filter(|line| words.contains(line)).collect();
        answers == words
    });
}

const FIVE_LINES: &str = "call echo message=one\ncall echo message=two\n# it's a note\n\
                          call echo --args '{\"message\":\n  \"three\"}'\ncall echo message=four\n";
const FOUR_ANSWERS: [&str; 4] = ["one", "two", "three", "four"];

#[test]
fn lines_that_are_pasted_run_in_order() {
    let home = tempfile::tempdir().unwrap();
    let terminal = start(home.path(), &[]);
    terminal.shows("server>");
    // A terminal that brackets what is pasted: Enter runs it.
    terminal.pastes(FIVE_LINES);
    terminal.shows("message=four");
    terminal.press(&["Enter"]);
    answers_in_order(&terminal, &FOUR_ANSWERS);
    terminal.types("quit");
    terminal.ended(0);
    let history = home.path().join("state/mcp-proxy/shell-history");
    let kept = std::fs::read_to_string(&history).unwrap();
    let lines = kept.lines().filter(|line| line.starts_with("call echo"));
    assert_eq!(lines.count(), 4, "{kept}");
}

#[test]
fn lines_that_are_typed_at_once_run_in_order() {
    let home = tempfile::tempdir().unwrap();
    let terminal = start(home.path(), &[]);
    terminal.shows("server>");
    // One that does not bracket it: all lines come as if they were typed.
    terminal.writes(&FIVE_LINES.replace('\n', "\r"));
    answers_in_order(&terminal, &FOUR_ANSWERS);
    terminal.types("quit");
    terminal.ended(0);
}

#[test]
fn lines_that_are_typed_while_a_call_runs_run_after_it() {
    let home = tempfile::tempdir().unwrap();
    let terminal = start(home.path(), &[]);
    terminal.shows("server>");
    terminal.types("call count_down from=8 pause_ms=200");
    terminal.shows("% ");
    terminal.writes(&FIVE_LINES.replace('\n', "\r"));
    answers_in_order(&terminal, &FOUR_ANSWERS);
    terminal.types("quit");
    terminal.ended(0);
}

#[test]
fn ctrl_c_drops_the_pasted_lines_that_have_not_run() {
    let home = tempfile::tempdir().unwrap();
    let terminal = start(home.path(), &[]);
    terminal.shows("server>");
    terminal.pastes("call count_down from=60 pause_ms=200\ncall echo message=never\n");
    terminal.shows("message=never");
    terminal.press(&["Enter"]);
    terminal.shows("% ");
    terminal.press(&["C-c"]);
    terminal.shows("was not run");
    terminal.types("call echo message=again");
    answers_in_order(&terminal, &["again"]);
    assert!(!terminal.screen().lines().any(|line| line == "never"));
    terminal.types("quit");
    terminal.ended(0);
}

/// Asks for consent in each call, once something is written to the pipe `go`, and answers with what was decided.
const ASKING_SERVER: &str = r#"
mkfifo go
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\),"method".*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case $line in
    *'"initialize"'*) answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"asks","version":"0"}}' ;;
    *'"tools/list"'*) answer '"result":{"tools":[{"name":"ask","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*)
      read -r now <go
      echo '{"jsonrpc":"2.0","id":99,"method":"elicitation/create","params":{"message":"Delete it?","requestedSchema":{"type":"object","properties":{}}}}'
      read -r decision
      word=$(printf '%s' "$decision" | sed -n 's/.*"action":"\([a-z]*\)".*/\1/p')
      answer "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"decided: $word\"}]}" ;;
    *'"notifications/'*) ;;
    *) answer '"error":{"code":-32601,"message":"no such method"}' ;;
  esac
done
"#;

#[test]
fn what_was_typed_before_a_question_does_not_answer_it() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("server"), ASKING_SERVER).unwrap();
    let words = [PROXY, "shell", "--", "sh", "server"];
    let terminal = TmuxTerminal::run(home.path(), &[], &words);
    terminal.shows("server>");
    terminal.types("call ask");
    terminal.types("typed too early");
    terminal.shows("too early");
    std::fs::write(home.path().join("go"), "now\n").unwrap();
    terminal.shows("Delete it?");
    terminal.types("!decline");
    terminal.shows("decided: decline");
    terminal.types("quit");
    terminal.ended(0);
}
