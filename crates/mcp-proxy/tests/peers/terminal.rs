//! A viewer on a real terminal, that of tmux: the editor has the keyboard while it runs, and nobody else reads it.

use std::process::Command;

use crate::fixtures::PROXY;
use crate::talking::Talking;
use crate::tmux::Terminal;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"before"}}}"#;

/// An editor that insists on a terminal, and changes what it is told to.
const EDITOR: &str = r#"#!/bin/sh
[ -t 0 ] && [ -t 1 ] || exit 9
printf 'instead of before: '
read -r word
sed -i "s/before/$word/" "$1"
"#;

#[test]
fn a_held_message_is_changed_in_the_users_editor() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| home.path().join(name).display().to_string();
    std::fs::write(path("editor"), EDITOR).expect("a file");
    let mut proxy = Command::new(PROXY);
    proxy
        .args(["proxy", "--listen", "stdio", "--break", "tools/call"])
        .args(["--session-file", &path("session.jsonl"), "--"])
        .args([PROXY, "demo-server", "stdio"])
        .env("XDG_RUNTIME_DIR", home.path());
    let mut client = Talking::start(&mut proxy);
    let id = client.stderr.wait_for("attach with: mcp-proxy attach ");
    client.say(INITIALIZE);
    client.stdout.wait_for("protocolVersion");
    client.say(INITIALIZED);
    client.say(CALL);

    let (folder, editor) = (home.path().display(), path("editor"));
    let terminal = Terminal::start(
        home.path(),
        &format!(
            "env -u VISUAL XDG_RUNTIME_DIR='{folder}' EDITOR='sh {editor}' '{PROXY}' attach {id} --plain"
        ),
    );
    terminal.shows("[f]orward");
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
