//! A record plays its client, to the server it was made with and to others.

use std::process::Output;

use crate::mock::record;
use crate::run::{Listening, PROXY, pipe};

fn replay(folder: &tempfile::TempDir, more: &[&str]) -> Output {
    let file = record(folder);
    let new = folder.path().join("new.jsonl");
    let flags = [
        "replay",
        file.to_str().unwrap(),
        "--session-file",
        new.to_str().unwrap(),
        "--quiet",
    ];
    pipe(&[&flags[..], more].concat(), b"")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_same_server_answers_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let played = replay(&folder, &["--", PROXY, "demo-server", "stdio"]);
    assert_eq!(played.status.code(), Some(0), "{played:?}");
    let text = text(&played);
    assert!(
        text.contains("3 requests: 3 same, 0 different, 0 unanswered"),
        "{text}"
    );
    let new = folder.path().join("new.jsonl");
    let shown = pipe(&["inspect", new.to_str().unwrap()], b"");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains("initialize") && shown.contains("echo"),
        "{shown}"
    );
}

#[test]
fn over_http_too_and_side_by_side() {
    let server = Listening::demo();
    let folder = tempfile::tempdir().unwrap();
    let url = server.url();
    let played = replay(&folder, &["--concurrency", "4", &url]);
    // The fixtures' server offers more, so its instructions and capabilities may differ; the tools do not.
    let text = text(&played);
    assert!(
        text.contains("3 requests:") && text.contains("0 unanswered"),
        "{played:?}"
    );
    assert!(!text.contains("tools/call"), "{text}");
}

#[test]
fn what_differs_is_named_and_can_be_ignored() {
    let server = r#"while read line; do case "$line" in
        *initialize\"*) echo '{"jsonrpc":"2.0","id":1,"result":{}}';;
        *echo*) echo '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"HO"}],"isError":false}}';;
        esac; done"#;
    let target = [
        "--answer-timeout",
        "300ms",
        "--filter",
        "echo",
        "--",
        "sh",
        "-c",
        server,
    ];
    let folder = tempfile::tempdir().unwrap();
    let played = replay(&folder, &target);
    let said = text(&played);
    assert_eq!(played.status.code(), Some(1), "{played:?}");
    assert!(
        said.contains(r#"$.result.content[0].text: "hi" != "HO""#),
        "{said}"
    );
    let folder = tempfile::tempdir().unwrap();
    let ignoring = [
        "--ignore",
        "$.result.content[*].text",
        "--ignore",
        "$.result.*",
    ];
    let played = replay(&folder, &[&ignoring[..], &target].concat());
    assert_eq!(played.status.code(), Some(0), "{played:?}");
    let folder = tempfile::tempdir().unwrap();
    let played = replay(&folder, &[&["--json"][..], &target].concat());
    let said = text(&played);
    let line = said.lines().find(|line| line.contains("echo")).unwrap();
    assert!(line.contains(r#""verdict":"different""#), "{said}");
}

#[test]
fn a_server_that_cannot_be_played_to_is_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let played = replay(&folder, &["--", "sh", "-c", "echo no >&2; exit 3"]);
    assert_eq!(played.status.code(), Some(2), "{played:?}");
    let folder = tempfile::tempdir().unwrap();
    let played = replay(&folder, &["--connection", "9", "--", "cat"]);
    let said = String::from_utf8_lossy(&played.stderr).into_owned();
    assert!(
        said.contains("connection 9") && said.contains("there are: 1"),
        "{said}"
    );
}
