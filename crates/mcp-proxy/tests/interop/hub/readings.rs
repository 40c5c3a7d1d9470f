//! Servers whose parsers read a doubtful message in their own way: none of them finds another message than the hub has judged.

use std::process::Command;

use serde_json::{Value, json};

use crate::fixtures::{self, PROXY};
use crate::piped_program::PipedProgram;

/// A client of a hub that denies the tool `secret`, fixes one argument of `echo` and hides another.
struct RuledHub {
    hub: PipedProgram,
    _folder: tempfile::TempDir,
}

impl RuledHub {
    fn start(command: &[&str]) -> RuledHub {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let config = json!({"mcpServers": {"a": {"command": command[0], "args": command[1..], "mcp-proxy": {
            "deny": ["secret"],
            "resources": {"deny": ["x://priv/*"]},
            "fix-arguments": {"echo": {"path": "/safe"}},
            "hide-arguments": {"echo": ["hid"]},
        }}}});
        let path = folder.path().join("config.json");
        std::fs::write(&path, config.to_string()).expect("the config file can be written");
        let words = "serve --headless --no-record --listen stdio --expose all,proxy,dispatch";
        let mut program = fixtures::command(PROXY, &[]);
        program.args(words.split(' ')).arg("--config").arg(&path);
        program.env("XDG_STATE_HOME", folder.path());
        let mut hub = RuledHub {
            hub: PipedProgram::start(&mut program),
            _folder: folder,
        };
        hub.asks(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#);
        hub.hub
            .say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        hub.asks(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        hub
    }

    /// Sends a request with the id 1 and returns its answer.
    fn asks(&mut self, request: &str) -> Value {
        self.hub.say(request);
        loop {
            let line = self.hub.stdout.next().expect("the hub answers");
            let message: Value = serde_json::from_str(&line).expect("it is JSON");
            if message["id"] == 1 {
                return message;
            }
        }
    }
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"#;

fn check(command: &[&str]) {
    let mut hub = RuledHub::start(command);
    let read = hub.asks(&format!(
        r#"{CALL}{{"name":"a_echo","arguments":{{"path":"/x"}}}}}}"#
    ));
    assert_eq!(read["result"]["content"][0]["text"], "echo path=/safe hid=");
    for rest in [
        r#"{"name":"a_secret"}}"#,
        r#"{"name":"a_echo","Name":"secret","arguments":{}}}"#,
        r#"{"name":"a_echo","NAME":"secret","arguments":{}}}"#,
        r#"{"name":"secret","name":"a_echo","arguments":{}}}"#,
        r#"{"name":"a_echo","name":"secret","arguments":{}}}"#,
        r#"{"name":"a_echo"},"Params":{"name":"secret"}}"#,
        r#"{"name":"a_echo"},"PARAMS":{"name":"secret"}}"#,
        r#"{"name":"a_echo"},"paramſ":{"name":"secret"}}"#,
        r#"{"name":"a_echo"},"param\u017f":{"name":"secret"}}"#,
        r#"{"name":"a_echo"},"params":{"name":"secret"}}"#,
        r#"{"name":"a_echo"},"Method":"tools/list"}"#,
        r#"{"name":"a_echo"},"method":"tools/list"}"#,
        r#"{"name":"a_echo","arguments":{},"Arguments":{"path":"/evil","hid":"EVIL"}}}"#,
        r#"{"name":"a_echo","arguments":"{\"path\":\"/evil\"}"}}"#,
        r#"{"name":"a_echo","arguments":[{"path":"/evil"}]}}"#,
    ] {
        let answer = hub.asks(&format!("{CALL}{rest}"));
        assert_eq!(answer["error"]["code"], -32602, "{rest}: {answer}");
    }
    for rest in [
        r#"{"name":"a_echo","arguments":{"Hid":"EVIL","PATH":"/evil"}}}"#,
        r#"{"name":"proxy","arguments":{"action":"call","type":"tool","path":"a_echo","args":{"Hid":"EVIL"}}}}"#,
        r#"{"name":"proxy-dispatch","arguments":{"action":"call","tool":"echo","arguments":{"HID":"EVIL","Path":"/evil"}}}}"#,
    ] {
        let answer = hub.asks(&format!("{CALL}{rest}"));
        let text = answer["result"]["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{rest}: {answer}"));
        assert!(text.contains("path=/safe hid="), "{rest}: {answer}");
        assert!(!text.contains("EVIL"), "{rest}: {answer}");
    }
    check_resources(&mut hub);
}

fn check_resources(hub: &mut RuledHub) {
    let mut reads = |params: &str| {
        hub.asks(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{params}}}"#
        ))
    };
    let open = reads(r#"{"uri":"x://a/pub/2"}"#);
    assert_eq!(open["result"]["contents"][0]["text"], "x://pub/2");
    for uri in [
        "x://a/priv/1",
        "X://a/priv/1",
        "x://A/priv/1",
        "x://a//priv/1",
        "x://a/pub/../priv/1",
        "x://a/pub/%2e%2e/priv/1",
        "x://a/%70riv/1",
        "x://a/PRIV/1",
        "x://a/priv:1/1",
        "x://a/pub/..",
    ] {
        let answer = reads(&json!({ "uri": uri }).to_string());
        assert_eq!(answer["error"]["code"], -32602, "{uri}: {answer}");
    }
    for params in [
        r#"{"uri":"x://a/pub/2","URI":"x://priv/1"}"#,
        r#"{"uri":"x://priv/1","uri":"x://a/pub/2"}"#,
    ] {
        let answer = reads(params);
        assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
    }
}

#[test]
fn a1_a8_a10_a_go_server_reads_what_was_judged() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let program = folder.path().join("go_server");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&program);
    build.arg(fixtures::peer("go_server.go"));
    build.env("GOCACHE", folder.path().join("cache"));
    build.env("GOFLAGS", "-mod=mod").env("GO111MODULE", "off");
    let status = build.status().expect("Go is installed");
    assert!(status.success());
    check(&[program.to_str().expect("a temporary name is UTF-8")]);
}

#[test]
fn a1_a8_a10_a_server_that_takes_the_first_member_reads_what_was_judged() {
    check(&["python3", &fixtures::peer("reading_server.py"), "first"]);
}

#[test]
fn a1_a8_a10_a_server_that_takes_the_last_member_reads_what_was_judged() {
    check(&["python3", &fixtures::peer("reading_server.py"), "last"]);
}
