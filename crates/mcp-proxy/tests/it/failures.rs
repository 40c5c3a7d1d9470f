//! A server that is not there, ends, or is no MCP server: the client learns it, in words.

use std::time::{Duration, Instant};

use crate::programs::{INITIALIZE, ListeningProgram, StdioProgram, pipe};

fn refused(command: &[&str]) -> (String, Option<i32>, Duration) {
    let mut args = vec!["proxy", "--listen", "stdio", "--no-record", "--"];
    args.extend(command);
    let start = Instant::now();
    let mut talk = StdioProgram::start(&args);
    talk.say(INITIALIZE);
    let answer = talk.hear();
    let took = start.elapsed();
    (answer, talk.end(), took)
}

#[test]
fn a_command_that_does_not_exist_is_named() {
    let (answer, code, _) = refused(&["no-such-command-at-all"]);
    assert!(
        answer.contains(r#""id":1"#) && answer.contains("no-such-command-at-all"),
        "{answer}"
    );
    assert!(answer.contains("-31001"), "{answer}");
    assert_eq!(code, Some(1));
}

#[test]
fn a_command_that_exits_at_once_is_named_with_status_and_stderr() {
    let (answer, code, _) = refused(&["sh", "-c", "echo no database >&2; exit 3"]);
    assert!(
        answer.contains("status 3") && answer.contains("no database"),
        "{answer}"
    );
    assert!(answer.contains("sh -c"), "{answer}");
    assert_eq!(code, Some(1));
}

#[test]
fn garbage_is_shown() {
    let (answer, ..) = refused(&["echo", "Usage: server [options]"]);
    assert!(answer.contains("Usage: server [options]"), "{answer}");
    let (answer, ..) = refused(&["yes"]);
    assert!(
        answer.contains("no JSON-RPC") && answer.contains("the first: y"),
        "{answer}"
    );
}

#[test]
fn a_server_that_is_killed_is_told_to_whoever_waits() {
    let (answer, ..) = refused(&["sh", "-c", "read x; kill -9 $$"]);
    assert!(answer.contains("SIGKILL"), "{answer}");
}

#[test]
fn a_client_that_closed_its_end_still_learns_why() {
    for command in ["no-such-command-at-all", "false"] {
        let args = ["proxy", "--listen", "stdio", "--no-record", "--", command];
        let output = pipe(&args, format!("{INITIALIZE}\n").as_bytes());
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            answer.contains(r#""id":1"#) && answer.contains(command),
            "{answer}"
        );
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
    assert!(
        answer.contains(r#""id":1"#) && answer.contains("127.0.0.1:9"),
        "{answer}"
    );
    assert!(answer.contains("refused"), "{answer}");
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
    assert!(answer.text().contains(r#""id":1"#), "{}", answer.text());
}

#[test]
fn an_empty_session_is_no_failure() {
    let output = pipe(
        &["proxy", "--listen", "stdio", "--no-record", "--", "cat"],
        b"",
    );
    assert!(output.status.success());
}
