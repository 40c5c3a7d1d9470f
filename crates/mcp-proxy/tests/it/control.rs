//! The control socket with real processes: `ls` and `ctl` against running proxies, and viewers that misbehave.

mod document;
pub mod live;
mod replay;
mod scopes;
mod sockets;
pub mod test_home;

use serde_json::{Value, json};

use crate::programs::{INITIALIZE, INITIALIZED, ListeningProgram, record_lines};
use test_home::{PING, TestHome, TestProxy, ok};

#[test]
fn a_stdio_run_is_listed_asked_and_gone_at_its_end() {
    let house = TestHome::new();
    let mut run = house.demo(&[]);
    run.round(INITIALIZE);
    let table = ok(house.run(&["ls"]));
    assert!(
        table.contains(&run.id) && table.contains("stdio ► stdio"),
        "{table}"
    );
    let line: Value = serde_json::from_str(&ok(house.run(&["ls", "--json"]))).unwrap();
    assert_eq!(line["id"], run.id);
    assert_eq!(line["pid"], run.child.id());
    let hello = house.ctl(&["hello"]);
    for name in [
        "session", "target", "client", "server", "record", "started", "pid",
    ] {
        assert_eq!(hello[name], line[name], "{name}");
    }
    let rows = house.ctl(&["get", "raw=true"]);
    assert_eq!(rows["rows"][0]["raw"]["method"], "initialize");
    assert_eq!(rows["rows"][1]["asked"]["method"], "initialize");
    assert_eq!(rows["upto"], 2);
    house.ctl(&["note", "text=look here"]);
    let noted = record_lines(&house.record());
    let noted: Vec<_> = noted.iter().filter(|line| line["t"] == "note").collect();
    let by = noted[0]["by"].as_str().unwrap();
    assert!(by.starts_with("user (ctl, pid ") && noted[0]["text"] == "look here");
    assert_eq!(run.end(), Some(0));
    assert_eq!(house.files(), Vec::<String>::new());
    assert_eq!(ok(house.run(&["ls", "--json"])), "");
    insta::assert_snapshot!("ls-none", ok(house.run(&["ls"])));
    let output = house.run(&["ctl", "stats"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn messages_of_all_parts_of_a_record_can_be_had_and_replayed() {
    let house = TestHome::new();
    let mut run = house.demo(&["--max-record-size", "2K"]);
    run.round(INITIALIZE);
    run.say(INITIALIZED);
    run.round(PING);
    // A viewer that stays has the record open.
    let rows = |words: &[&str]| house.ctl(&[&["get", "raw=true"], words].concat());
    assert_eq!(rows(&[])["upto"], 5);
    for _ in 0..20 {
        run.round(PING);
    }
    let got = rows(&["limit=1000"]);
    let numbers = got["rows"].as_array().unwrap().iter();
    let numbers: Vec<u64> = numbers
        .map(|row| row["sequence"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=45).collect::<Vec<u64>>());
    assert_eq!((&got["first"], &got["upto"]), (&json!(1), &json!(45)));
    assert_eq!(rows(&["from=2", "limit=1"])["rows"][0]["sequence"], 2);
    let last = rows(&["last=1"]);
    assert_eq!(last["rows"][0]["raw"]["id"], 7);
    // The handshake is in the first part.
    let replayed = house.ctl(&["replay", "sequence=44"]);
    assert_eq!(replayed["raw"]["result"], json!({}));
    assert_eq!(run.end(), Some(0));
}

#[test]
fn the_id_of_a_run_names_its_record() {
    let house = TestHome::new();
    let mut run = house.demo(&[]);
    run.round(INITIALIZE);
    let id = run.id.clone();
    assert!(ok(house.run(&["inspect", &id])).contains("initialize"));
    assert_eq!(run.end(), Some(0));
    assert!(ok(house.run(&["inspect", &id])).contains("initialize"));
    // One that is written elsewhere, as long as its proxy runs.
    let file = house.path("elsewhere.jsonl");
    let flags = ["--session-file", file.to_str().unwrap()];
    let mut run = house.demo(&flags);
    run.round(INITIALIZE);
    assert!(ok(house.run(&["inspect", &run.id[..6]])).contains("initialize"));
    let id = run.id.clone();
    assert_eq!(run.end(), Some(0));
    assert_eq!(house.run(&["inspect", &id]).status.code(), Some(1));
    let mut run = house.demo_without_record(&[]);
    let output = house.run(&["inspect", &run.id]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(&run.id), "{text}");
    assert_eq!(run.end(), Some(0));
}

#[test]
fn an_http_run_says_its_address_first_and_how_to_attach() {
    let house = TestHome::new();
    let proxy = ListeningProgram::start_with(
        &[
            "proxy",
            "--listen",
            "http",
            "--listen-port",
            "0",
            "--",
            test_home::PROXY,
            "demo-server",
            "stdio",
        ],
        &house.env(),
    );
    let session = proxy.session();
    let descriptor: Value = serde_json::from_str(&ok(house.run(&["ls", "--json"]))).unwrap();
    assert_eq!(descriptor["client"], "streamable_http");
    let rows = house.ctl(&["get"]);
    assert!(rows["upto"].as_u64().unwrap() >= 3, "{rows}");
    assert_eq!(rows["rows"][0]["method"], "initialize");
    assert_eq!(rows["rows"][0].get("raw"), None);
    // Held and let go, over HTTP.
    let refused = house.refused(&["breakpoints.add", "filter="]);
    assert_eq!(refused["code"], -32602, "{refused}");
    house.ctl(&["breakpoints.add", "filter=ping", "hits=1"]);
    let ping = std::thread::scope(|scope| {
        let asked = scope.spawn(|| proxy.post(&[("mcp-session-id", &session)], PING));
        let hold = house.held();
        house.ctl(&["hold.resolve", &format!("hold={hold}"), "action=forward"]);
        asked.join().unwrap()
    });
    assert_eq!(ping.status, 200, "{ping:?}");
    let (code, said) = proxy.end("-TERM");
    assert_eq!(code, Some(143));
    let id = descriptor["id"].as_str().unwrap();
    assert!(said.contains(&format!("mcp-proxy attach {id}")), "{said}");
    assert_eq!(house.files(), Vec::<String>::new());
}

#[test]
fn two_proxies_are_told_apart() {
    let house = TestHome::new();
    let mut first = house.demo(&[]);
    let second = house.demo(&[]);
    first.round(INITIALIZE);
    assert_eq!(ok(house.run(&["ls"])).lines().count(), 3);
    // Without a name it is the newest.
    assert_eq!(house.ctl(&["hello"])["pid"], second.child.id());
    let hello = house.ctl(&[&first.id, "hello"]);
    assert_eq!(hello["pid"], first.child.id());
    let session = hello["session"].as_str().unwrap();
    assert_eq!(house.ctl(&[session, "stats"])["messages"], 2);
    assert_eq!(house.ctl(&[&second.id[..7], "stats"])["messages"], 0);
    // Two runs of one minute share the beginning of their session ids.
    let output = house.run(&["ctl", &session[..4], "stats"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    for id in [&first.id, &second.id] {
        assert!(said.contains(id), "{said}");
    }
    let output = house.run(&["ctl", "zzzz", "stats"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("zzzz"));
}

#[test]
fn the_first_decision_counts_and_the_second_is_told() {
    let house = TestHome::new();
    let mut run = house.demo(&["--break", "ping"]);
    run.round(INITIALIZE);
    run.say(INITIALIZED);
    run.say(PING);
    let hold = house.held();
    let which = format!("hold={hold}");
    let listed = house.ctl(&["hold.list", &which, "raw=true"]);
    assert_eq!(listed["holds"][0]["raw"]["method"], "ping");
    assert!(listed["holds"][0]["left_ms"].as_u64().unwrap() > 40_000);
    // A change that is no JSON is refused, and the message is still held.
    let refused = house.refused(&["hold.resolve", &which, "action=modify", "raw_text=no json"]);
    assert_eq!(refused["code"], -32602);
    let raw = r#"raw={"jsonrpc":"2.0",  "id":7,"method":"tools/list"}"#;
    house.ctl(&["hold.resolve", &which, "action=modify", raw]);
    assert!(run.hear().contains("echo"), "the server lists its tools");
    let refused = house.refused(&["hold.resolve", &which, "action=drop"]);
    assert_eq!(refused["code"], -31102);
    assert_eq!(refused["data"]["action"], "modify");
    let by = refused["data"]["by"].as_str().unwrap();
    assert!(by.starts_with("user (ctl, pid "), "{refused}");
    let refused = house.refused(&["hold.resolve", "hold=99", "action=drop"]);
    assert_eq!(refused["code"], -31101);
}

#[test]
fn exports_notes_and_the_end_from_outside() {
    let house = TestHome::new();
    let mut run = house.demo(&[]);
    run.round(INITIALIZE);
    let path = house.path("s.har");
    let output = format!("output={}", path.display());
    let written = house.ctl(&["export", "format=har", &output]);
    let size = std::fs::metadata(&path).unwrap().len();
    assert_eq!(written["bytes"], size);
    // Nothing is overwritten, unless that is asked for.
    let refused = house.refused(&["export", "format=har", &output]);
    let text = refused["message"].as_str().unwrap();
    assert_eq!(refused["code"], -31104);
    assert!(
        text.contains("force=true") && !text.contains("--force"),
        "{text}"
    );
    let written = house.ctl(&["export", "format=json", &output, "force=true"]);
    assert_eq!(written["bytes"], std::fs::metadata(&path).unwrap().len());
    let exported = std::fs::read(&path).unwrap();
    let refused = house.refused(&["save", &output]);
    assert_eq!(refused["code"], -31104, "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), exported);
    assert_eq!(
        house.refused(&["export", "format=har", "output=s.har"])["code"],
        -32602
    );
    assert_eq!(house.ctl(&["shutdown"]), json!({}));
    assert_eq!(run.child.wait().unwrap().code(), Some(0));
    let last = record_lines(&house.record()).pop().unwrap();
    assert_eq!(last["t"], "end", "{last}");
    assert!(last["why"].as_str().unwrap().contains("user (ctl, pid "));
    assert_eq!(house.files(), Vec::<String>::new());
}

#[test]
fn without_a_record_the_newest_messages_are_in_a_temporary_one() {
    let house = TestHome::new();
    let mut run = house.demo_without_record(&["--env", "SECRET=hunter2000"]);
    run.round(INITIALIZE);
    for _ in 0..300 {
        run.round(PING);
    }
    let rows = house.ctl(&["get", "last=3", "raw=true"]);
    assert_eq!(rows["rows"][0]["sequence"], 600);
    assert_eq!(rows["rows"][2]["asked"]["method"], "ping");
    assert_eq!(rows["rows"].as_array().unwrap().len(), 3);
    let rows = house.ctl(&["get", "limit=1000"]);
    assert_eq!(rows["rows"].as_array().unwrap().len(), 602);
    assert_eq!(
        house.refused(&["export", "format=json", "output=/x"])["code"],
        -31103
    );
    let hello = house.ctl(&["hello"]);
    assert_eq!(hello["record"], Value::Null);
}

#[test]
fn a_run_without_control_is_not_listed() {
    let house = TestHome::new();
    let mut run = house.start(
        &["--no-control", "--no-record"],
        TestProxy::wait_for_nothing,
    );
    run.round(INITIALIZE);
    assert_eq!(house.files(), Vec::<String>::new());
    assert_eq!(ok(house.run(&["ls", "--json"])), "");
}

#[test]
fn ctl_says_what_was_typed_wrong() {
    let house = TestHome::new();
    for words in [
        &["ctl"][..],
        &["ctl", "explode"],
        &["ctl", "get", "form=1"],
        &["ctl", "get", "{"],
    ] {
        let output = house.run(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty());
    }
}

/// Calls, and not their answers.
const CALLS: &str = r#".kind == "request" and .method == "tools/call""#;

#[test]
fn a_held_message_is_shown_without_what_is_redacted_and_forwarded_with_it() {
    let house = TestHome::new();
    let flags = ["--break", CALLS, "--redact-key", "message"];
    let mut run = house.demo(&flags);
    run.round(INITIALIZE);
    run.say(INITIALIZED);
    run.say(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hunter2"}}}"#);
    let hold = format!("hold={}", house.held());
    let shown = house.ctl(&["hold.list", "raw=true"])["holds"][0]["raw"].to_string();
    assert!(
        shown.contains("[redacted:") && !shown.contains("hunter2"),
        "{shown}"
    );
    // A mark of a value that the message does not have.
    let edit = format!("raw={}", shown.replace(":1]", ":2]"));
    let fault = house.refused(&["hold.resolve", &hold, "action=modify", &edit]);
    assert_eq!(fault["code"], -32602, "{fault}");
    assert_eq!(fault["data"]["reason"], "redacted", "{fault}");
    house.ctl(&["hold.resolve", &hold, "action=forward"]);
    assert!(run.hear().contains("hunter2"));
}

#[test]
fn redacted_values_are_put_back_into_an_edited_message() {
    let house = TestHome::new();
    let flags = ["--break", CALLS, "--redact-key", "secret"];
    let mut run = house.demo(&flags);
    run.round(INITIALIZE);
    run.say(INITIALIZED);
    run.say(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi","secret":"hunter2"}}}"#);
    let hold = format!("hold={}", house.held());
    let mut shown = house.ctl(&["hold.list", "raw=true"])["holds"][0]["raw"].clone();
    // Moved to where the rules would not hide it.
    shown["params"]["arguments"]["message"] = shown["params"]["arguments"]["secret"].clone();
    let edit = format!("raw={shown}");
    house.ctl(&["hold.resolve", &hold, "action=modify", &edit]);
    assert!(run.hear().contains("hunter2"));
    let record = house.record();
    let act = record
        .lines()
        .find(|line| line.contains("\"kind\":\"modify\""));
    let act = act.unwrap();
    assert!(
        act.contains("[redacted:") && !act.contains("hunter2"),
        "{act}"
    );
}

#[test]
fn a_viewer_cannot_have_the_proxy_write_to_a_pipe() {
    let house = TestHome::new();
    let mut run = house.demo(&[]);
    run.round(INITIALIZE);
    let pipe = house.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let output = format!("output={}", pipe.display());
    for words in [
        &["export", "format=har", &output][..],
        &["export", "format=har", "force=true", &output],
        &["save", &output],
    ] {
        assert_eq!(house.refused(words)["code"], -31104, "{words:?}");
    }
    assert_eq!(run.end(), Some(0));
}

#[test]
fn attach_without_a_terminal_says_what_scripts_use() {
    let house = TestHome::new();
    let output = house.run(&["attach"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(output.stdout.is_empty(), "{text}");
    assert!(text.contains("inspect ID --follow"), "{text}");
    assert!(text.contains("mcp-proxy ctl"), "{text}");
}
