//! Ten servers of which one hangs, one crashes again and again and one prints garbage: clients of the other seven do not notice.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::test_hub::{TestHub, processes_with};
use crate::control::test_home::{TestHome, ok, until, until_within};
use crate::programs::{INITIALIZE, INITIALIZED, PROXY, StdioProgram, open};

const WORKING: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];
const CLIENTS: usize = 4;
/// Calls of each client to each server that works.
const CALLS: usize = 50;
/// The tools of a server that works.
const TOOLS: usize = 5;
const START_TIMEOUT: Duration = Duration::from_secs(8);
/// Far more than any answer takes, however loaded the machine is: what takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that does not work.
struct BrokenServer {
    name: &'static str,
    script: &'static str,
    /// What `status` quotes of its output: stderr of a server that has ended, stdout of one that does not speak MCP.
    quoted: &'static str,
}

const BROKEN: [BrokenServer; 3] = [
    BrokenServer {
        name: "hung",
        script: "echo waiting for a lock >&2; exec sleep 1000",
        quoted: "",
    },
    BrokenServer {
        name: "crashing",
        script: "echo no such table >&2; exit 3",
        quoted: "no such table",
    },
    BrokenServer {
        name: "noisy",
        script: "echo debug build >&2; exec yes garbage",
        quoted: "garbage",
    },
];

/// The ten servers. `mark` is in the environment of all their processes.
fn config(mark: &str) -> Value {
    let env = json!({ "TEN_SERVERS": mark });
    let mut servers = json!({});
    for name in WORKING {
        servers[name] = json!({"command": PROXY, "args": ["demo-server", "stdio"], "env": env});
    }
    for broken in &BROKEN {
        servers[broken.name] = json!({
            "command": "sh",
            "args": ["-c", broken.script],
            "env": env,
            "mcp-proxy": {"start-timeout": START_TIMEOUT.as_secs()},
        });
    }
    json!({ "mcpServers": servers })
}

/// How many processes have the mark.
fn marked(mark: &str) -> usize {
    processes_with(&format!("TEN_SERVERS={mark}"))
}

/// How many tools of servers that work are in the result of `tools/list`; those of others cannot be.
fn working_tools(listed: &Value) -> usize {
    let tools = listed["tools"].as_array().unwrap();
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        let server = name.split_once('_').unwrap().0;
        assert!(WORKING.contains(&server), "{name}");
    }
    tools.len()
}

fn add(server: &str, number: usize) -> Value {
    json!({"name": format!("{server}_add"), "arguments": {"a": number, "b": 1}})
}

#[track_caller]
fn assert_sum(answer: &Value, number: usize) {
    let sum = answer["result"]["structuredContent"]["sum"].as_f64();
    assert_eq!(sum, Some(number as f64 + 1.0), "{answer}");
}

/// A call to a server that does not work has an error that says which server it is.
#[track_caller]
fn assert_names_server(answer: &Value, server: &str) {
    assert_eq!(answer["error"]["code"], -31001, "{answer}");
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(text.contains(server), "{text}");
}

/// Waits until `status` shows each server that does not work as failed, and why.
fn wait_for_status(home: &TestHome) {
    for broken in &BROKEN {
        let health = RefCell::new(Value::Null);
        let is_told = || {
            let status = ok(home.run(&["status", "--json"]));
            let status: Value = serde_json::from_str(&status).unwrap();
            let mut servers = status["servers"].as_array().unwrap().iter();
            let row = servers.find(|row| row["name"] == broken.name).unwrap();
            let seen = &row["health"];
            health.replace(seen.clone());
            // It is tried again and again; what went wrong last stays.
            let is_down = ["failed", "starting"].map(Value::from);
            let error = seen["error"].as_str();
            is_down.contains(&seen["state"])
                && error.is_some_and(|text| text.contains(broken.quoted))
        };
        until_within(PATIENCE, is_told, || {
            format!("{} is shown as failed: {}", broken.name, health.borrow())
        });
    }
}

#[test]
fn over_http() {
    let mark = format!("http-{}", std::process::id());
    let start = Instant::now();
    let hub = TestHub::start(&config(&mark), &["--expose", "all", "--quiet"]);
    let mut listed = hub.ask("tools/list", &json!({}));
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    let headers = [
        ("mcp-session-id", hub.session.as_str()),
        ("accept", "text/event-stream"),
    ];
    let mut events = open(&hub.program.address, "GET", "/mcp", &headers, b"");
    assert_eq!(events.head().0, 200);
    while working_tools(&listed) < WORKING.len() * TOOLS {
        let event: Value = serde_json::from_str(&events.until("data:")).unwrap();
        if event["method"] == "notifications/tools/list_changed" {
            listed = hub.ask("tools/list", &json!({}));
        }
    }
    std::thread::scope(|scope| {
        for broken in &BROKEN {
            let hub = &hub;
            scope.spawn(move || {
                let session = hub.program.session();
                let params = json!({"name": format!("{}_anything", broken.name), "arguments": {}});
                let start = Instant::now();
                let answer = hub.answer_in(&session, "tools/call", &params);
                assert_names_server(&answer, broken.name);
                assert!(start.elapsed() < PATIENCE, "{}", broken.name);
            });
        }
        for client in 0..CLIENTS {
            let hub = &hub;
            scope.spawn(move || {
                let session = hub.program.session();
                for call in 0..CALLS {
                    let number = client * CALLS + call;
                    for server in WORKING {
                        let params = add(server, number);
                        let answer = hub.answer_in(&session, "tools/call", &params);
                        assert_sum(&answer, number);
                    }
                }
            });
        }
    });
    wait_for_status(&hub.home);
    assert!(marked(&mark) >= WORKING.len());
    assert_eq!(hub.program.end("-TERM").0, Some(143));
    until("no process is left", || marked(&mark) == 0);
}

/// The hub on stdio, with a client that skips what it does not wait for.
struct StdioHub {
    program: StdioProgram,
    has_changed: bool,
}

impl StdioHub {
    /// The next message.
    fn hear(&mut self) -> Value {
        let line = self.program.hear();
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("`{line}`"));
        self.has_changed |= message["method"] == "notifications/tools/list_changed";
        message
    }

    fn ask(&mut self, id: usize, method: &str, params: &Value) {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.program.say(&request.to_string());
    }

    fn answer(&mut self, id: usize) -> Value {
        loop {
            let message = self.hear();
            if message["id"] == id {
                return message;
            }
        }
    }

    fn list(&mut self) -> Value {
        self.has_changed = false;
        self.ask(2, "tools/list", &json!({}));
        self.answer(2)["result"].take()
    }
}

#[test]
fn over_stdio() {
    let mark = format!("stdio-{}", std::process::id());
    let home = TestHome::new();
    let file = home.path("config.json");
    std::fs::write(&file, config(&mark).to_string()).unwrap();
    let flags = ["serve", "--listen", "stdio", "--expose", "all", "--config"];
    let words = [&flags[..], &[file.to_str().unwrap()]].concat();
    let start = Instant::now();
    let mut hub = StdioHub {
        program: StdioProgram::start_with(&words, &home.env()),
        has_changed: false,
    };
    hub.program.say(INITIALIZE);
    assert!(hub.answer(1)["result"].is_object());
    hub.program.say(INITIALIZED);
    let mut listed = hub.list();
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    while working_tools(&listed) < WORKING.len() * TOOLS {
        while !hub.has_changed {
            hub.hear();
        }
        listed = hub.list();
    }
    // The calls to broken servers are open while the others are answered.
    let first_broken = 10;
    let start = Instant::now();
    for (place, broken) in BROKEN.iter().enumerate() {
        let params = json!({"name": format!("{}_anything", broken.name), "arguments": {}});
        hub.ask(first_broken + place, "tools/call", &params);
    }
    let mut refused = Vec::new();
    let first_call = 100;
    let calls = CALLS * WORKING.len();
    for number in 0..calls {
        let params = add(WORKING[number % WORKING.len()], number);
        hub.ask(first_call + number, "tools/call", &params);
    }
    let mut answered = 0;
    while answered < calls || refused.len() < BROKEN.len() {
        let message = hub.hear();
        match message["id"].as_u64().map(|id| id as usize) {
            Some(id) if id >= first_call => {
                assert_sum(&message, id - first_call);
                answered += 1;
            }
            Some(id) => {
                let server = BROKEN[id - first_broken].name;
                assert_names_server(&message, server);
                refused.push(server);
            }
            None => {}
        }
    }
    assert!(start.elapsed() < PATIENCE, "{refused:?}");
    assert_ne!(refused.first(), Some(&"hung"), "it took its time");
    wait_for_status(&home);
    assert!(marked(&mark) >= WORKING.len());
    assert_eq!(hub.program.end(), Some(0));
    until("no process is left", || marked(&mark) == 0);
}
