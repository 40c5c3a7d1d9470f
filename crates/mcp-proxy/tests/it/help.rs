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
    insta::assert_snapshot!("help-relay-init", help(&["relay", "init"]));
    insta::assert_snapshot!("help-relay-pair", help(&["relay", "pair"]));
    for name in ["init", "issue", "show", "revoke"] {
        insta::assert_snapshot!(format!("help-token-{name}"), help(&["token", name]));
    }
}

fn topic(name: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_mcp-proxy"))
        .args(["help", name])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{name}"
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn of_filters() {
    insta::assert_snapshot!("help-topic-filters", topic("filters"));
}

#[test]
fn of_every_key_and_of_rules() {
    // Both are made of what is tested elsewhere: the table of commands, and the document.
    let keys = topic("keys");
    for entry in mcp_proxy_tui::COMMANDS {
        assert!(keys.contains(entry.about), "{}", entry.about);
    }
    let rules = topic("rules");
    for word in ["[[rule]]", "set-header", "redirect"] {
        assert!(rules.contains(word), "{word}");
    }
}
