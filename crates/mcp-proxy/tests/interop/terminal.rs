//! A viewer that the proxy does not let in, on a real terminal, that of tmux.

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

/// A proxy with a call that is held, and the id of that proxy.
fn holding(home: &Path) -> (PipedProgram, String) {
    let path = |name: &str| home.join(name).display().to_string();
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
fn a_viewer_too_many_is_told_so_before_there_is_a_screen() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (_client, id) = holding(home.path());
    let socket = home.path().join(format!("mcp-proxy/{id}.sock"));
    let connect = |_| UnixStream::connect(&socket).expect("the proxy listens");
    let viewers: Vec<_> = (0..32).map(connect).collect();
    let words = [PROXY, "attach", &id];
    let text = TmuxTerminal::run(home.path(), &[], &words).ended(1);
    assert!(text.contains("32 "), "{text}");
    drop(viewers);
}
