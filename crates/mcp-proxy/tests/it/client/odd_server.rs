//! A server with what the demo server does not have: odd names, several blobs, and calls that do not end.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::control::test_home::TestHome;

/// Answers in the old way. Every line that it gets is appended to the file `heard`.
const SCRIPT: &str = r#"
cd "$(dirname "$0")"
while read -r line; do
  printf '%s\n' "$line" >>heard
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\),"method".*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case $line in
    *'"method":"initialize"'*) answer "$(cat initialize)" ;;
    *'"method":"tools/list"'*) answer "$(cat tools)" ;;
    *'"method":"tools/call"'*'"name":"slow"'*) ;;
    *'"method":"tools/call"'*) answer "$(cat call)" ;;
    *'"method":"notifications/'*) ;;
    *) answer '"error":{"code":-32601,"message":"no such method"}' ;;
  esac
done
"#;

/// The server's files are in `home`. Returns the words that start it.
pub(super) fn install(home: &TestHome) -> Vec<String> {
    let tool = |name: &str| {
        let number = json!({"type": "integer"});
        json!({"name": name, "inputSchema": {"type": "object", "properties": {"n": number}}})
    };
    let initialize = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
        "serverInfo": {"name": "odd", "version": "0"}});
    let tools = ["--help", "-x", "plain", "slow"].map(tool);
    let image = |bytes: &[u8]| json!({"type": "image", "mimeType": "image/png", "data": STANDARD.encode(bytes)});
    let text = |text: &str| json!({"type": "text", "text": text});
    let content = json!([
        text("before"),
        image(b"first"),
        text("between"),
        image(b"second")
    ]);
    for (name, result) in [
        ("initialize", initialize),
        ("tools", json!({"tools": tools})),
        ("call", json!({"content": content})),
    ] {
        std::fs::write(home.path(name), format!("\"result\":{result}")).unwrap();
    }
    std::fs::write(home.path("server"), SCRIPT).unwrap();
    let path = home.path("server");
    vec![
        "--".to_owned(),
        "sh".to_owned(),
        path.to_str().unwrap().to_owned(),
    ]
}

/// The lines that the server got so far.
pub(super) fn heard(home: &TestHome) -> String {
    std::fs::read_to_string(home.path("heard")).unwrap_or_default()
}

/// The calls among them.
pub(super) fn calls(home: &TestHome) -> Vec<Value> {
    let heard = heard(home);
    let messages = heard
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    messages
        .filter(|message: &Value| message["method"] == "tools/call")
        .map(|message| message["params"].clone())
        .collect()
}

/// A file of the home.
pub(super) fn file(home: &TestHome, name: &str) -> (PathBuf, String) {
    let path = home.path(name);
    let text = path.to_str().unwrap().to_owned();
    (path, text)
}
