//! A server that is not there, ends, or is no MCP server: the client learns it, in words.

use serde_json::{Value, json};

use crate::control::test_home::{TestHome, TestProxy};
use crate::programs::{
    INITIALIZE, ListeningProgram, StdioProgram, error_answer, pipe, record_lines,
};

/// How a conversation with a server that is none went.
struct Refusal {
    answer: String,
    exit_code: Option<i32>,
    /// The line of the record about the end of the server's process; null if none was started.
    exit: Value,
}

fn refused(command: &[&str]) -> Refusal {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("r.jsonl");
    let mut args = vec!["proxy", "--listen", "stdio", "--session-file"];
    args.extend([record.to_str().unwrap(), "--"]);
    args.extend(command);
    let mut talk = StdioProgram::start(&args);
    talk.say(INITIALIZE);
    let answer = talk.hear();
    let exit_code = talk.end();
    let lines = record_lines(&std::fs::read_to_string(&record).unwrap());
    let exit = lines.into_iter().find(|line| line["kind"] == "exit");
    Refusal {
        answer,
        exit_code,
        exit: exit.unwrap_or_default(),
    }
}

#[test]
fn a_command_that_does_not_exist_is_named() {
    let refusal = refused(&["no-such-command-at-all"]);
    let answer = &refusal.answer;
    assert_eq!(error_answer(answer), (json!(1), -31001), "{answer}");
    assert!(answer.contains("no-such-command-at-all"), "{answer}");
    assert_eq!(refusal.exit_code, Some(1));
}

#[test]
fn a_command_that_exits_at_once_is_named_with_status_and_stderr() {
    let refusal = refused(&["sh", "-c", "echo no database >&2; exit 33"]);
    let answer = &refusal.answer;
    assert_eq!(error_answer(answer), (json!(1), -31002), "{answer}");
    for told in ["33", "no database", "sh -c"] {
        assert!(answer.contains(told), "{answer}");
    }
    assert_eq!(refusal.exit["code"], 33);
    assert_eq!(refusal.exit_code, Some(1));
}

#[test]
fn garbage_is_shown() {
    // The command is named too, so what it prints is not in it.
    for (script, shown, code) in [
        (
            "echo 'Usage: ser''ver [options]'",
            "Usage: server [options]",
            -31002,
        ),
        ("yes end''less", "endless", -31001),
    ] {
        let answer = refused(&["sh", "-c", script]).answer;
        assert_eq!(error_answer(&answer), (json!(1), code), "{answer}");
        assert!(answer.contains(shown), "{answer}");
    }
}

#[test]
fn a_server_that_is_killed_is_told_to_whoever_waits() {
    let refusal = refused(&["sh", "-c", "read x; kill -9 $$"]);
    let answer = &refusal.answer;
    assert_eq!(error_answer(answer), (json!(1), -31002), "{answer}");
    assert!(answer.contains("SIGKILL"), "{answer}");
    assert_eq!(refusal.exit["signal"], 9);
}

#[test]
fn a_client_that_closed_its_end_still_learns_why() {
    for (command, code) in [("no-such-command-at-all", -31001), ("false", -31002)] {
        let args = ["proxy", "--listen", "stdio", "--no-record", "--", command];
        let output = pipe(&args, format!("{INITIALIZE}\n").as_bytes());
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(error_answer(&answer), (json!(1), code), "{answer}");
        assert!(answer.contains(command), "{answer}");
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn a_url_that_nobody_listens_on_is_named() {
    let args = [
        "proxy",
        "--listen",
        "stdio",
        "--no-record",
        "http://127.0.0.1:9/mcp",
    ];
    let output = pipe(&args, format!("{INITIALIZE}\n").as_bytes());
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(error_answer(&answer), (json!(1), -31001), "{answer}");
    assert!(answer.contains("127.0.0.1:9"), "{answer}");
    let proxy = ListeningProgram::proxy(
        "http",
        &[
            "--transport",
            "streamable-http",
            "--target-url",
            "http://127.0.0.1:9/mcp",
        ],
    );
    let answer = proxy.post(&[], INITIALIZE);
    assert_eq!(answer.status, 502);
    assert_eq!(error_answer(&answer.text()), (json!(1), -31001));
}

#[test]
fn an_empty_session_is_no_failure() {
    let output = pipe(
        &["proxy", "--listen", "stdio", "--no-record", "--", "cat"],
        b"",
    );
    assert!(output.status.success());
}

#[test]
fn a_command_that_does_not_exist_is_reported_before_a_client_speaks() {
    let command = "no-such-command-at-all";
    let house = TestHome::new();
    let mut run = house.start_before(&[], &["--", command], TestProxy::wait_for_nothing);
    // Nothing is said, and stdin is still open.
    while !run.error_line().contains(command) {}
    assert_eq!(run.end(), Some(1));
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("r.jsonl");
    let args = ["proxy", "--listen", "http", "--listen-port", "0"];
    let flags = ["--session-file", record.to_str().unwrap(), "--", command];
    let output = pipe(&[&args[..], &flags].concat(), b"");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(command), "{said}");
    assert_eq!(output.status.code(), Some(1));
    assert!(!record.exists());
}
