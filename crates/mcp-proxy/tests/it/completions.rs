//! Completion scripts, run by a real bash.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mcp_proxy_session::testing::{SampleRecord, header, options};
use mcp_proxy_session::{RecordLocation, Recorder};

use crate::programs::pipe;

/// What bash offers after these words, the last of which is being typed.
fn offered(words: &[&str]) -> Vec<String> {
    offered_with(words, None)
}

/// The same where the records are those of `state`, and the program is in the path.
fn offered_with(words: &[&str], state: Option<&Path>) -> Vec<String> {
    let variables = state.map(|state| ("XDG_STATE_HOME", state.to_owned()));
    let folder = state.unwrap_or(Path::new("."));
    run_bash(words, &variables.into_iter().collect::<Vec<_>>(), folder)
}

/// With these variables, in a folder that has nothing to offer.
pub(crate) fn offered_in(words: &[&str], variables: &[(&str, PathBuf)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    run_bash(words, variables, folder.path())
}

fn run_bash(words: &[&str], variables: &[(&str, PathBuf)], folder: &Path) -> Vec<String> {
    let script = String::from_utf8(pipe(&["completions", "bash"], b"").stdout).unwrap();
    let previous = words[words.len() - 2];
    let current = words[words.len() - 1];
    let typed: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let ask = format!(
        "{script}\nCOMP_WORDS=({})\nCOMP_CWORD={}\n_mcp__proxy_with_records mcp-proxy '{current}' '{previous}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
        typed.join(" "),
        words.len() - 1
    );
    let program = Path::new(env!("CARGO_BIN_EXE_mcp-proxy")).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", program.display());
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-c", &ask])
        .env("PATH", path)
        .envs(variables.iter().cloned())
        .current_dir(folder)
        .stdin(Stdio::null());
    let output = bash.output().unwrap();
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
        let hidden = words.find(|word| matches!(*word, "__man" | "__guard" | "__sweeper" | "__jq"));
        assert_eq!(hidden, None, "{shell}");
    }
}

#[test]
fn bash_offers_records_where_one_is_expected() {
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().join("mcp-proxy/sessions");
    let place = RecordLocation::Folder(folder);
    let recorder = Recorder::create(place, options(), &header()).unwrap();
    let mut sample = SampleRecord::writing(recorder);
    sample.call(1, "tool", "{}");
    sample.end();
    // As `sessions` and `ls` show it: the end of the session's id.
    let id = &header().id[28..];
    let begun = &id[..2];
    let file = format!("{begun}-other.jsonl");
    std::fs::write(state.path().join(&file), "").unwrap();
    for command in ["inspect", "export", "open", "mock", "replay"] {
        let mut offered = offered_with(&["mcp-proxy", command, begun], Some(state.path()));
        offered.sort();
        assert_eq!(offered, [file.as_str(), id], "{command}");
    }
    let after_flag = ["mcp-proxy", "export", "--force", begun];
    assert!(offered_with(&after_flag, Some(state.path())).contains(&id.to_owned()));
    let rules = ["mcp-proxy", "rules", "check", "rules.toml", begun];
    assert!(offered_with(&rules, Some(state.path())).contains(&id.to_owned()));
    let last = ["mcp-proxy", "inspect", "LA"];
    assert_eq!(offered_with(&last, Some(state.path())), ["LAST"]);
    // A value of a flag is not a record.
    let format = ["mcp-proxy", "export", "--output-format", "js"];
    assert_eq!(offered_with(&format, Some(state.path())), ["json", "jsonl"]);
    let ls = ["mcp-proxy", "ls", begun];
    assert!(!offered_with(&ls, Some(state.path())).contains(&id.to_owned()));
}

#[test]
fn zsh_and_fish_ask_for_records() {
    let script = |shell| String::from_utf8(pipe(&["completions", shell], b"").stdout).unwrap();
    let zsh = script("zsh");
    assert!(zsh.contains("\n_mcp-proxy_records() {"), "{zsh}");
    // inspect, export, open, mock, replay, rules check.
    assert_eq!(zsh.matches(":_mcp-proxy_records'").count(), 6, "{zsh}");
    let fish = script("fish");
    assert_eq!(
        fish.matches("mcp-proxy sessions --ids").count(),
        6,
        "{fish}"
    );
}
