//! The end of a hub: open calls may finish, new ones are refused, and servers are stopped without a long wait.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::killed::ServerFolder;
use super::test_hub::{TestHub, demo};
use crate::control::test_home::{TestHome, until};
use crate::programs::{
    INITIALIZE, INITIALIZED, OpenResponse, StdioProgram, open, record_lines, request,
};

const HELD: &str = r#"{"jsonrpc":"2.0","id":70,"method":"tools/call","params":{"name":"one_write","arguments":{"hold":true}}}"#;

/// A hub with a call that its server holds.
struct Holding {
    server: ServerFolder,
    hub: TestHub,
    call: OpenResponse,
}

impl Holding {
    fn start(flags: &[&str]) -> Holding {
        let server = ServerFolder::new();
        let config = json!({"mcpServers": {"one": server.entry()}});
        let hub = TestHub::start(&config, &[&["--expose", "all"], flags].concat());
        hub.until("the server is up", |hub| hub.tool_names().len() == 2);
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-session-id", hub.session.as_str()),
        ];
        let (address, path) = (&hub.program.address, &hub.program.path);
        let call = open(address, "POST", path, &headers, HELD.as_bytes());
        server.told();
        Holding { server, hub, call }
    }

    fn signal(&self) {
        terminate(self.hub.program.pid());
    }

    /// Waits until a new call is refused.
    fn until_refusing(&self) {
        until("a new call is refused", || {
            let params = json!({"name": "one_write", "arguments": {}});
            let answer = self.hub.answer("tools/call", &params);
            answer["error"]["code"] == -31001
        });
    }

    /// The answer to the held call, and the exit code.
    fn end(mut self) -> (Value, Option<i32>) {
        let answer = loop {
            let line = self.call.line();
            let line = line.strip_prefix("data: ").unwrap_or(&line);
            if line.starts_with('{') {
                break serde_json::from_str(line).unwrap();
            }
        };
        (answer, self.hub.program.end("-CONT").0)
    }
}

fn terminate(process: u32) {
    let killed = Command::new("kill")
        .args(["-TERM", &process.to_string()])
        .status();
    assert!(killed.unwrap().success());
}

#[test]
fn d39_an_open_call_may_finish_and_a_new_one_is_refused() {
    let holding = Holding::start(&["--drain-timeout", "1h"]);
    holding.signal();
    holding.until_refusing();
    holding.server.go();
    let (answer, code) = holding.end();
    assert!(
        answer["result"]["content"][0]["text"].is_string(),
        "{answer}"
    );
    assert_eq!((&answer["id"], code), (&json!(70), Some(143)));
}

#[test]
fn d39_a_call_that_takes_too_long_is_told_that_the_hub_stops() {
    let holding = Holding::start(&["--drain-timeout", "10ms"]);
    holding.signal();
    let (answer, code) = holding.end();
    assert_eq!(answer["error"]["code"], -31002, "{answer}");
    assert_eq!((&answer["id"], code), (&json!(70), Some(143)));
}

#[test]
fn d39_a_second_signal_ends_at_once() {
    let holding = Holding::start(&["--drain-timeout", "1h"]);
    holding.signal();
    holding.until_refusing();
    holding.signal();
    let (answer, code) = holding.end();
    assert_eq!(answer["error"]["code"], -31002, "{answer}");
    assert_eq!(code, Some(143));
}

#[test]
fn d39_a_client_on_stdio_gets_its_answer_too() {
    for goes in [true, false] {
        let (home, server) = (TestHome::new(), ServerFolder::new());
        let config = home.path("config.json");
        let text = json!({"mcpServers": {"one": server.entry()}}).to_string();
        std::fs::write(&config, text).unwrap();
        let time = match goes {
            true => "1h",
            false => "10ms",
        };
        let words = ["serve", "--no-record", "--no-control", "--expose", "all"];
        let more = [
            "--drain-timeout",
            time,
            "--config",
            config.to_str().unwrap(),
        ];
        let mut hub = StdioProgram::start_with(&[&words[..], &more].concat(), &home.env());
        hub.say(INITIALIZE);
        hub.hear();
        hub.say(INITIALIZED);
        hub.say(HELD);
        server.told();
        terminate(hub.pid());
        if goes {
            server.go();
        }
        let answer = loop {
            let line: Value = serde_json::from_str(&hub.hear()).unwrap();
            if line["id"] == 70 {
                break line;
            }
        };
        assert_eq!(
            answer["error"]["code"].as_i64(),
            (!goes).then_some(-31002),
            "{answer}"
        );
        assert_eq!(hub.end(), Some(143));
    }
}

/// Otherwise it is killed when the hub has waited for as long as it does.
#[test]
fn a17_a_server_that_does_not_notice_the_end_of_its_input_is_told_by_a_signal() {
    let config = json!({"mcpServers": {
        "deaf": {"command": "sleep", "args": ["100000"]},
        "demo": demo(),
    }});
    let hub = TestHub::start(&config, &[]);
    hub.until("the other server is up", |hub| hub.is_ready("demo"));
    let TestHub { home, program, .. } = hub;
    assert_eq!(program.end("-TERM").0, Some(143));
    let exits = record_lines(&home.record());
    let exits = exits.iter().filter(|line| line["kind"] == "exit");
    let signals: Vec<&Value> = exits.map(|line| &line["signal"]).collect();
    assert_eq!(signals.len(), 2, "both ended before the hub: {signals:?}");
    assert!(signals.contains(&&json!(15)), "{signals:?}");
}

#[test]
fn m6_health_needs_no_token() {
    let home = TestHome::new();
    let token: PathBuf = home.path("token");
    std::fs::write(&token, "secret").unwrap();
    let flags = ["--auth-token-file", token.to_str().unwrap()];
    let config = json!({"mcpServers": {"demo": demo()}});
    let hub = TestHub::start_in_without_session(home, &config, &flags);
    let ask =
        |method, path, headers: &[_]| request(&hub.program.address, method, path, headers, b"");
    let answer = ask("GET", "/healthz", &[]);
    assert_eq!(answer.status, 200);
    let health: Value = serde_json::from_str(&answer.text()).unwrap();
    for (name, value) in health.as_object().unwrap() {
        assert!(name == "status" || value.is_u64(), "only counts: {name}");
    }
    for path in ["/mcp", "/sse", "/healthz/x", "/"] {
        assert_eq!(ask("GET", path, &[]).status, 401, "{path}");
    }
    // A page of somebody else has no business here either.
    let page = [("origin", "https://evil.example")];
    assert_eq!(ask("GET", "/healthz", &page).status, 403);
}
