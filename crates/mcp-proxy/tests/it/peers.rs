//! The record names both ends of each connection by what they are: a program in our own process is not one on stdio.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::bridging::odd;
use crate::control::test_home::TestHome;
use crate::evidence::lines;
use crate::mock::record;
use crate::programs::{INITIALIZE, ListeningProgram, PROXY, pipe};
use crate::undelivered::ENDPOINT;

fn in_process(name: &str) -> Value {
    json!({"name": name, "transport": "in_process"})
}

/// What the `open` lines of a record say of this side.
fn opened(record: &Path, side: &str) -> Vec<Value> {
    let lines = lines(record, "io");
    let opened = lines.iter().filter(|line| line["kind"] == "open");
    opened.map(|line| line[side].clone()).collect()
}

/// Runs the program on some input, with a record.
fn recorded(folder: &tempfile::TempDir, words: &[&str], input: &str) -> PathBuf {
    let path = folder.path().join("new.jsonl");
    let record = ["--session-file", path.to_str().unwrap()];
    let (command, rest) = words.split_first().unwrap();
    let ended = pipe(&[&[*command], &record[..], rest].concat(), input.as_bytes());
    assert!(ended.status.success(), "{ended:?}");
    path
}

#[test]
fn a_mock_has_its_name_on_every_transport() {
    let folder = tempfile::tempdir().unwrap();
    let played = record(&folder);
    let played = played.to_str().unwrap();
    let path = recorded(&folder, &["mock", played], &format!("{INITIALIZE}\n"));
    assert_eq!(opened(&path, "server"), [in_process("mock")]);
    for (listen, endpoint) in [("http", "/mcp"), ("sse", "/sse")] {
        let path = folder.path().join(format!("{listen}.jsonl"));
        let words = ["--listen", listen, "--listen-port", "0", "--session-file"];
        let command = [&["mock", played], &words[..], &[path.to_str().unwrap()]].concat();
        let proxy = ListeningProgram::start(&command);
        match listen {
            "http" => drop(proxy.session()),
            _ => drop(crate::programs::open(&proxy.address, "GET", endpoint, &[], b"").head()),
        }
        proxy.end("-TERM");
        assert_eq!(opened(&path, "server"), [in_process("mock")], "{listen}");
    }
}

#[test]
fn viewers_are_told_the_name_of_a_mock() {
    let folder = tempfile::tempdir().unwrap();
    let played = record(&folder);
    let house = TestHome::new();
    let words = ["mock", played.to_str().unwrap(), "--listen", "http"];
    let words = [&words[..], &["--listen-port", "0"]].concat();
    let proxy = ListeningProgram::start_with(&words, &house.env());
    let servers = house.ctl(&["servers.list"]);
    assert_eq!(servers["servers"][0]["name"], "mock", "{servers}");
    proxy.end("-TERM");
}

#[test]
fn a_replay_has_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let played = record(&folder);
    let words = ["replay", played.to_str().unwrap(), "--quiet", "--"];
    let server = [PROXY, "demo-server", "stdio"];
    let path = recorded(&folder, &[&words[..], &server[..]].concat(), "");
    assert_eq!(opened(&path, "client"), [in_process("replay")]);
}

#[test]
fn the_script_of_the_demo_is_a_client_in_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = recorded(&folder, &["demo", "--pace", "0"], "");
    assert_eq!(opened(&path, "client"), [in_process("demo")]);
    let text = std::fs::read_to_string(&path).unwrap();
    let header: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(header["client"], in_process("demo"));
    let messages = lines(&path, "msg");
    let from_client = |line: &&Value| line["direction"] == "client_to_server";
    let mut sent = messages.iter().filter(from_client);
    assert!(sent.all(|line| line["transport"] == "in_process"));
}

#[test]
fn who_looks_what_a_server_speaks_is_the_proxy() {
    fn refuse(_: &str) -> String {
        crate::bridging::http("405 Method Not Allowed", "text/plain", "no")
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let url = format!("http://{}/sse", odd(refuse, ENDPOINT));
    let proxy = ListeningProgram::start(&[
        "proxy",
        "--listen",
        "http",
        "--listen-port",
        "0",
        "--session-file",
        path.to_str().unwrap(),
        "--target-url",
        &url,
    ]);
    proxy.post(&[], INITIALIZE);
    proxy.end("-TERM");
    let clients = opened(&path, "client");
    assert!(clients.contains(&in_process("proxy")), "{clients:?}");
}
