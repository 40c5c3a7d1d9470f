//! Names that look like flags, numbers that are too long, misspelt commands, and several blobs in one result.

use std::process::Output;

use super::odd_server::{calls, file, install};
use super::{complaint, printed, refused};
use crate::control::test_home::TestHome;

fn run(home: &TestHome, words: &[&str]) -> Output {
    let server = install(home);
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    home.run(&[words, &server].concat())
}

#[test]
fn a_tool_whose_name_looks_like_a_flag_is_called() {
    let home = TestHome::new();
    for words in [
        &["call", "--name", "--help", "n=1"][..],
        &["call", "n=1", "--name=-x"],
    ] {
        let output = run(&home, words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
    }
    let called = calls(&home);
    assert_eq!(called[0]["name"], "--help");
    assert_eq!(called[1]["name"], "-x");
    assert_eq!(called[1]["arguments"]["n"], 1);
    let shown = run(&home, &["tools", "info", "--name=-x"]);
    assert!(printed(&shown).contains("call --name=-x"), "{shown:?}");
    let both = run(&home, &["call", "--name=-x", "n=1", "--args", "{}"]);
    assert_eq!(both.status.code(), Some(2), "{both:?}");
    // The advice is one that works here: after `--` comes the server's command.
    let taken_for_flag = run(&home, &["call", "-x", "n=1"]);
    assert_eq!(taken_for_flag.status.code(), Some(2));
    let text = complaint(&taken_for_flag);
    assert!(
        text.contains("--name=-x") && !text.contains("-- -x"),
        "{text}"
    );
}

#[test]
fn a_number_is_sent_as_it_was_typed_or_not_at_all() {
    let home = TestHome::new();
    let long = "12345678901234567890123";
    for words in [
        &["call", "plain", &format!("n={long}")][..],
        &["call", "plain", &format!("n:={long}")],
        &["call", "plain", "--args", &format!("{{\"n\": {long}}}")],
    ] {
        let output = run(&home, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        assert!(complaint(&output).contains(long), "{output:?}");
    }
    assert!(calls(&home).is_empty());
    let exact = run(&home, &["call", "plain", "n=18446744073709551615"]);
    assert_eq!(exact.status.code(), Some(0), "{exact:?}");
    assert_eq!(calls(&home)[0]["arguments"]["n"], u64::MAX);
}

#[test]
fn texts_between_blobs_are_printed_when_the_blobs_are_written() {
    let home = TestHome::new();
    let (path, name) = file(&home, "picture.png");
    let output = run(&home, &["call", "plain", "--output", &name]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(printed(&output), "before\nbetween\n");
    assert_eq!(std::fs::read(path).unwrap(), b"first");
    let (second, second_name) = file(&home, "picture-2.png");
    assert_eq!(std::fs::read(second).unwrap(), b"second");
    let said = complaint(&output);
    assert!(
        said.contains(&name) && said.contains(&second_name),
        "{said}"
    );
    // On stdout are only the bytes.
    let output = run(&home, &["call", "plain", "--output", "-"]);
    assert_eq!(output.stdout, b"firstsecond");
    assert!(complaint(&output).contains("between"), "{output:?}");
}

#[test]
fn a_misspelt_command_of_tools_is_suggested() {
    for kind in ["tools", "resources", "prompts"] {
        for (given, meant) in [("lst", "`list`"), ("serch", "`search`"), ("inf", "`info`")] {
            let text = refused(&[kind, given], 2);
            assert!(text.contains(meant), "{kind} {given}: {text}");
        }
    }
    let home = TestHome::new();
    for (words, meant) in [
        (&["tools", "weather"][..], "mcp-proxy tools list weather"),
        (
            &["tools", "http://x/mcp"],
            "mcp-proxy tools --url http://x/mcp",
        ),
        (&["tools", "sh", "server"], "mcp-proxy tools -- sh server"),
        (&["shell", "sh", "server"], "mcp-proxy shell -- sh server"),
        (
            &["shell", "http://x/mcp"],
            "mcp-proxy shell --url http://x/mcp",
        ),
        (&["tools", "--urll", "http://x"], "'--url'"),
    ] {
        let output = home.run(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        let text = complaint(&output);
        // After `--` comes the server's command, so that clap's advice would be wrong.
        assert!(text.contains(meant) && !text.contains("'-- "), "{text}");
    }
    for (word, meant) in [("{\"message\":\"a\"}", "--args"), ("http://x/mcp", "--url")] {
        let text = refused(&["call", "echo", word], 2);
        assert!(text.contains(meant), "{word}: {text}");
    }
}
