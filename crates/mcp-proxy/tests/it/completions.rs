//! Completion scripts, run by a real bash.

use std::process::{Command, Stdio};

use crate::programs::pipe;

/// What bash offers after these words, the last of which is being typed.
fn offered(words: &[&str]) -> Vec<String> {
    let script = String::from_utf8(pipe(&["completions", "bash"], b"").stdout).unwrap();
    let previous = words[words.len() - 2];
    let current = words[words.len() - 1];
    let typed: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let ask = format!(
        "{script}\nCOMP_WORDS=({})\nCOMP_CWORD={}\n_mcp__proxy mcp-proxy '{current}' '{previous}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
        typed.join(" "),
        words.len() - 1
    );
    let output = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", &ask])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn bash_offers_commands_flags_and_values() {
    for (words, wanted) in [
        (&["mcp-proxy", "insp"][..], &["inspect"][..]),
        (&["mcp-proxy", "proxy", "--int"], &["--intercept"]),
        // The word `proxy` may be left out.
        (&["mcp-proxy", "--int"], &["--intercept"]),
        (
            &["mcp-proxy", "--intercept", "--hold-pro"],
            &["--hold-progress"],
        ),
        (
            &["mcp-proxy", "--transport", "st"],
            &["stdio", "streamable-http"],
        ),
        (
            &["mcp-proxy", "export", "LAST", "--output-f"],
            &["--output-format"],
        ),
        (
            &["mcp-proxy", "export", "LAST", "--output-format", "ma"],
            &["markdown"],
        ),
        (&["mcp-proxy", "rules", "ch"], &["check"]),
        (&["mcp-proxy", "demo-server", "--po"], &["--port"]),
        (&["mcp-proxy", "help", "ke"], &["keys"]),
    ] {
        let mut offered = offered(words);
        offered.sort();
        let wanted: Vec<String> = wanted.iter().map(|word| (*word).to_owned()).collect();
        // `stdio` and `streamable-http` begin alike.
        let found = wanted.iter().all(|word| offered.contains(word));
        assert!(
            found && offered.len() == wanted.len(),
            "{words:?}: {offered:?}"
        );
    }
}

#[test]
fn no_shell_offers_what_is_hidden() {
    for shell in ["bash", "zsh", "fish"] {
        let script = String::from_utf8(pipe(&["completions", shell], b"").stdout).unwrap();
        assert!(script.contains("inspect"), "{shell}");
        let mut words = script.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let hidden = words.find(|word| matches!(*word, "__man" | "__guard" | "__sweeper"));
        assert_eq!(hidden, None, "{shell}");
    }
}
