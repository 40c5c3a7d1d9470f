//! Ctrl-C, whatever a command is doing: exit code 130, and nothing of the server is left.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use super::odd_server::{heard, install};
use super::{DEMO, complaint};
use crate::control::test_home::{TestHome, until};
use crate::serve::test_hub::processes_with;

/// A variable that tells the processes of one test.
fn mark(name: &str) -> String {
    format!("MCP_PROXY_TEST_{name}={}", std::process::id())
}

fn interrupt(child: &Child) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(sent.success());
}

/// Interrupts a command once `is_time`, and checks how it ends. Returns what it said.
#[track_caller]
fn interrupted(
    home: &TestHome,
    words: &[&str],
    mark: &str,
    mut is_time: impl FnMut() -> bool,
) -> String {
    let child = home.command(words).spawn().unwrap();
    until("it is time", &mut is_time);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    // On a busy machine the command stops waiting first, and the guard ends the server.
    until("nothing of the server is left", || {
        processes_with(mark) == 0
    });
    complaint(&output)
}

#[test]
fn at_the_start_it_ends_the_command_and_the_server() {
    let home = TestHome::new();
    let mark = mark("START");
    // A server that never answers, with a process of its own, in each way to name one.
    let started = home.path("started");
    let silent = format!("touch {}; sleep 600; sleep 600", started.display());
    let (command, env) = (["--", "sh", "-c", &silent], ["--env", &mark]);
    let server = format!("a=env {mark} sh -c '{silent}'");
    for words in [
        [&["tools"], &env[..], &command].concat(),
        [&["call", "x"], &env[..], &command].concat(),
        [&["shell"], &env[..], &command].concat(),
        vec!["tools", "--server", &server],
        vec!["shell", "--server", &server],
    ] {
        let _ = std::fs::remove_file(&started);
        interrupted(&home, &words, &mark, || started.exists());
    }
}

#[test]
fn in_a_call_the_server_is_told() {
    let home = TestHome::new();
    let mark = mark("CALL");
    let server = install(&home);
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let words = [&["call", "slow", "--env", &mark], &server[..]].concat();
    let said = interrupted(&home, &words, &mark, || heard(&home).contains("tools/call"));
    assert!(said.contains("cancelled"), "{said}");
    assert!(heard(&home).contains("notifications/cancelled"));
}

#[test]
fn a_call_that_takes_too_long_is_cancelled_at_the_server() {
    let home = TestHome::new();
    let server = install(&home);
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let behind_a_hub = format!(
        "odd={}",
        shlex::try_join(server[1..].iter().copied()).unwrap()
    );
    for target in [server.clone(), vec!["--server", &behind_a_hub]] {
        let _ = std::fs::remove_file(home.path("heard"));
        let words = [&["call", "slow", "--timeout", "1s"], &target[..]].concat();
        let output = home.run(&words);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(
            heard(&home).contains("notifications/cancelled"),
            "{target:?}"
        );
    }
}

#[test]
fn while_arguments_are_read_from_stdin_it_is_not_ignored() {
    let home = TestHome::new();
    let mark = mark("STDIN");
    let server = install(&home);
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let words = [&["call", "plain", "-", "--env", &mark], &server[..]].concat();
    let mut child = home.command(&words).stdin(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    // The lists come after the arguments, so that nothing is said between this and the end of stdin.
    until("the conversation is open", || {
        heard(&home).contains("notifications/initialized")
    });
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(processes_with(&mark), 0);
    drop(stdin);
}

#[test]
fn while_a_script_waits_for_its_next_line_it_is_not_ignored() {
    let home = TestHome::new();
    let mark = mark("SCRIPT");
    let words = [&["shell", "--env", &mark], &DEMO[..]].concat();
    let mut child = home.command(&words).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"call echo message=first\n").unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "first\n");
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(processes_with(&mark), 0);
}
