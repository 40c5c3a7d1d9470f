//! A viewer on a real terminal, that of tmux: the editor has the keyboard while it runs, and nobody else reads it.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use crate::fixtures::PROXY;
use crate::piped_program::PipedProgram;
use crate::texts;
use crate::tmux::TmuxTerminal;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"before"}}}"#;

/// Words would hold the answers too.
const BREAK: &str = r#".method == "tools/call" and .kind == "request""#;

/// An editor that insists on a terminal, and changes what it is told to.
const EDITOR: &str = r#"#!/bin/sh
[ -t 0 ] && [ -t 1 ] || exit 9
printf 'instead of before: '
read -r word
sed -i "s/before/$word/" "$1"
"#;

/// One that writes at once, and then waits.
const WRITES: &str = r#"#!/bin/sh
sed -i "s/before/Bergen/" "$1"
printf 'and now: '
read -r answer
"#;

/// A proxy with a call that is held, and the id of that proxy.
fn holding(home: &Path, editor: &str) -> (PipedProgram, String) {
    let path = |name: &str| home.join(name).display().to_string();
    std::fs::write(path("editor"), editor).expect("a file");
    let mut proxy = Command::new(PROXY);
    proxy
        .args(["proxy", "--listen", "stdio", "--break", BREAK])
        .args(["--session-file", &path("session.jsonl"), "--"])
        .args([PROXY, "demo-server", "stdio"])
        .env("XDG_RUNTIME_DIR", home);
    let mut client = PipedProgram::start(&mut proxy);
    let id = client.stderr.wait_for(texts::ATTACH_WITH);
    client.say(INITIALIZE);
    client.stdout.wait_for("protocolVersion");
    client.say(INITIALIZED);
    client.say(CALL);
    (client, id)
}

/// The text that was kept, by the name that was said: a file beside the sockets.
pub fn draft(home: &Path, said: &str) -> String {
    let folder = home.join("mcp-proxy");
    let mut names = said.split_whitespace().map(Path::new);
    let draft = names.find(|name| name.starts_with(&folder));
    let draft = draft.unwrap_or_else(|| panic!("no draft is named:\n{said}"));
    std::fs::read_to_string(draft).expect("the draft is there")
}

#[test]
fn a_signal_while_the_editor_runs_leaves_the_terminal_and_the_draft() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (mut client, id) = holding(home.path(), WRITES);
    let editor = format!("EDITOR=sh {}", home.path().join("editor").display());
    let words = [PROXY, "attach", &id, "--plain"];
    for (signal, code) in [("TERM", 143), ("HUP", 129)] {
        let terminal = TmuxTerminal::run(home.path(), &[&editor], &words);
        terminal.shows(texts::CHOICES);
        terminal.types("m");
        terminal.shows("and now:");
        // Ctrl-C is the editor's.
        terminal.signal("INT");
        terminal.signal(signal);
        let text = terminal.ended(code);
        assert!(text.contains(&format!("SIG{signal}")), "{text}");
        assert!(draft(home.path(), &text).contains("Bergen"), "{text}");
    }
    // Without an editor a signal ends it at once.
    let terminal = TmuxTerminal::run(home.path(), &[&editor], &words);
    terminal.shows(texts::CHOICES);
    terminal.signal("TERM");
    terminal.ended(143);
    // The proxy ends while the text is written.
    let terminal = TmuxTerminal::run(home.path(), &[&editor], &words);
    terminal.shows(texts::CHOICES);
    terminal.types("m");
    terminal.shows("and now:");
    client.kill();
    terminal.types("that is all");
    let text = terminal.ended(0);
    assert!(draft(home.path(), &text).contains("Bergen"), "{text}");
}

#[test]
fn a_viewer_too_many_is_told_so_before_there_is_a_screen() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (_client, id) = holding(home.path(), EDITOR);
    let socket = home.path().join(format!("mcp-proxy/{id}.sock"));
    let connect = |_| UnixStream::connect(&socket).expect("the proxy listens");
    let viewers: Vec<_> = (0..32).map(connect).collect();
    let words = [PROXY, "attach", &id];
    let text = TmuxTerminal::run(home.path(), &[], &words).ended(1);
    assert!(text.contains("32 "), "{text}");
    drop(viewers);
}

#[test]
fn a_held_message_is_changed_in_the_users_editor() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| home.path().join(name).display().to_string();
    let (mut client, id) = holding(home.path(), EDITOR);
    let (folder, editor) = (home.path().display(), path("editor"));
    let terminal = TmuxTerminal::start(
        home.path(),
        &format!(
            "env -u VISUAL XDG_RUNTIME_DIR='{folder}' EDITOR='sh {editor}' '{PROXY}' attach {id} --plain"
        ),
    );
    terminal.shows(texts::CHOICES);
    terminal.types("m");
    terminal.shows("instead of before:");
    // These letters are the editor's; one of ours would drop the message.
    terminal.types("d");
    client.stdout.wait_for(r#""text":"d""#);
    // The keyboard is back.
    client.say(&CALL.replace(r#""id":2"#, r#""id":3"#));
    terminal.shows("hold 2");
    terminal.types("e -5 not now");
    client.stdout.wait_for("not now");
    let record = std::fs::read_to_string(path("session.jsonl")).expect("a record");
    assert!(record.contains(r#""kind":"modify""#), "{record}");
    // The draft is gone: only the socket and its descriptor are there.
    let left = std::fs::read_dir(home.path().join("mcp-proxy")).expect("the sockets' folder");
    assert_eq!(left.count(), 2);
    assert_eq!(client.end(), Vec::<String>::new());
}
