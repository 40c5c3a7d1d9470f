//! A viewer on a real terminal, that of tmux: the editor has the keyboard while it runs, and nobody else reads it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::fixtures::PROXY;
use crate::talking::Talking;

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

/// A terminal with one program in it; gone when dropped.
struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    /// Starts `command`, a shell's line, in a terminal.
    fn start(home: &Path, command: &str) -> Terminal {
        let terminal = Terminal {
            socket: home.join("tmux"),
        };
        terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "200",
            "-y",
            "50",
            command,
        ]);
        terminal
    }

    fn tmux(&self, words: &[&str]) -> String {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .args(words)
            .output()
            .expect("tmux is installed");
        assert!(output.status.success(), "tmux {words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until the screen shows `text`.
    fn shows(&self, text: &str) {
        let start = Instant::now();
        while !self.screen().contains(text) {
            let screen = self.screen();
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "no `{text}` on\n{screen}"
            );
            // A screen can only be looked at: it tells nobody that it has changed.
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Types a line.
    fn types(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.tmux(&["send-keys", "Enter"]);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let mut kill = Command::new("tmux");
        // It has ended by itself if its program has.
        let _ = kill.arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}

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
