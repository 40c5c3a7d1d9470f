//! Help texts are part of the product: a change of one is seen in review.

use std::process::{Command, Stdio};

/// The help of a command, at a fixed width.
fn help(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_mcp-proxy"))
        .args(words)
        .arg("--help")
        .env("COLUMNS", "100")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}");
    assert!(output.stderr.is_empty(), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn of_the_program() {
    insta::assert_snapshot!("help", help(&[]));
}

#[test]
fn of_every_command() {
    let overview = help(&[]);
    let commands = overview
        .split_once("Commands:\n")
        .unwrap()
        .1
        .split_once("\n\n")
        .unwrap()
        .0;
    // A command's name stands two columns in; the lines of a wrapped text stand further in.
    let names = commands
        .lines()
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next());
    let names: Vec<_> = names.collect();
    assert!(
        names.contains(&"proxy") && names.contains(&"prune"),
        "{names:?}"
    );
    for name in names {
        let text = help(&[name]);
        assert!(text.contains("Examples:"), "{name} teaches nothing");
        insta::assert_snapshot!(format!("help-{name}"), text);
    }
}

#[test]
fn of_a_command_in_a_command() {
    insta::assert_snapshot!("help-rules-check", help(&["rules", "check"]));
}

#[test]
fn of_every_topic() {
    for topic in ["filters", "rules", "keys"] {
        let output = Command::new(env!("CARGO_BIN_EXE_mcp-proxy"))
            .args(["help", topic])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{topic}"
        );
        let text = String::from_utf8(output.stdout).unwrap();
        insta::assert_snapshot!(format!("help-topic-{topic}"), text);
    }
}
