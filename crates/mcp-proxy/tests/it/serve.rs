//! `serve`: many servers behind one endpoint.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::test_hub::{TestHub, demo, time};
use crate::control::test_home::TestHome;
use crate::programs::{INITIALIZE, INITIALIZED, ListeningProgram, PROXY, StdioProgram, request};

mod config_files;
mod dispatch;
mod forgetting;
mod killed;
mod limits;
mod memory;
mod noisy;
mod options;
pub mod protected_server;
mod record;
mod reloading;
mod restarted;
mod rules;
mod secrets;
mod sign_in;
mod stopping;
mod ten;
pub mod test_hub;

#[test]
fn without_a_config_the_built_in_servers_are_there() {
    let home = TestHome::new();
    // Nobody's own configuration is read by a test.
    let mut env = home.env();
    env.push(("XDG_CONFIG_HOME", home.path("config")));
    let words = [
        "serve",
        "--listen",
        "http",
        "--listen-port",
        "0",
        "--no-record",
    ];
    let hub = ListeningProgram::start_with(&words, &env);
    let session = hub.session();
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"proxy","arguments":{"action":"list","type":"tool"}}}"#;
    let answer = hub.post(&[("mcp-session-id", &session)], list);
    let listed: Value = serde_json::from_str(&answer.text()).unwrap();
    let text = listed["result"]["content"][0]["resource"]["text"]
        .as_str()
        .unwrap();
    let tools: Vec<Value> = serde_json::from_str(text).unwrap();
    let has = |name: &str| tools.iter().any(|tool| tool["name"] == name);
    assert!(
        has("time_get_current_time") && has("files_read_file"),
        "{text}"
    );
    assert!(!has("files_write_file"), "{text}");
}

#[test]
fn a_client_that_reads_no_stderr_gets_its_answers() {
    let home = TestHome::new();
    let mut hub = Command::new(PROXY)
        .args([
            "serve",
            "--listen",
            "stdio",
            "--no-record",
            "--expose",
            "all",
        ])
        .args(["--server", &format!("demo={PROXY} demo-server stdio")])
        .envs(home.env())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = hub.stdin.take().unwrap();
    let mut answers = BufReader::new(hub.stdout.take().unwrap()).lines();
    writeln!(stdin, "{INITIALIZE}\n{INITIALIZED}").unwrap();
    // One audit line each: many times what a pipe holds.
    for id in 0..3_000 {
        writeln!(stdin, r#"{{"jsonrpc":"2.0","id":"call {id}","method":"tools/call","params":{{"name":"demo_add","arguments":{{"a":1,"b":2}}}}}}"#).unwrap();
        let answer = answers.find(|line| line.as_ref().unwrap().contains(&format!("call {id}\"")));
        assert!(answer.unwrap().unwrap().contains("result"));
    }
    drop(stdin);
    assert!(hub.wait().unwrap().success());
}

#[test]
fn a_client_on_stdio_gets_all_its_answers_before_the_end() {
    let flags = ["serve", "--listen", "stdio", "--no-record", "--quiet"];
    let server = format!("demo={PROXY} demo-server stdio");
    let mut talk = StdioProgram::start(&[&flags[..], &["--server", &server]].concat());
    talk.say(INITIALIZE);
    let answer: Value = serde_json::from_str(&talk.hear()).unwrap();
    assert_eq!(answer["result"]["serverInfo"]["name"], "mcp-proxy");
    talk.say(INITIALIZED);
    talk.say(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"proxy","arguments":{"action":"call","type":"tool","path":"demo_add","args":{"a":1,"b":2}}}}"#);
    talk.close_stdin();
    let called: Value = std::iter::repeat_with(|| talk.hear())
        .map(|line| serde_json::from_str::<Value>(&line).unwrap())
        .find(|message| message["id"] == 2)
        .unwrap();
    assert_eq!(called["result"]["structuredContent"]["sum"], 3.0);
    assert_eq!(talk.end(), Some(0));
}

#[test]
fn a_model_sees_one_tool_and_reaches_all_of_them() {
    let hub = TestHub::start(
        &json!({"mcpServers": {"demo": demo(), "time": time()}}),
        &[],
    );
    assert_eq!(hub.tool_names(), ["proxy"]);
    let called = hub.proxy(
        &json!({"action": "call", "type": "tool", "path": "demo_add", "args": {"a": 2, "b": 3}}),
    );
    assert_eq!(called["structuredContent"]["sum"], 5.0);
    assert_eq!(called["content"][0]["annotations"]["proxyPath"], "demo_add");
    let listed = hub.proxy(&json!({"action": "list", "type": "tool", "filter_server": "time"}));
    assert_eq!(listed["content"][0]["annotations"]["totalCount"], 2);
    // The record links the call to the server's request.
    let record = hub.home.record();
    let lines: Vec<Value> = record
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let is_call = |line: &&Value| line["method"] == "tools/call" && line["parent"].is_u64();
    let inner = lines.iter().find(is_call).expect("a request with a parent");
    let outer = lines
        .iter()
        .find(|line| line["sequence"] == inner["parent"])
        .unwrap();
    assert_eq!(outer["method"], "tools/call");
}

#[test]
fn all_tools_can_be_listed_under_their_own_names() {
    let hub = TestHub::start(
        &json!({"mcpServers": {"time": time()}}),
        &["--expose", "all,proxy"],
    );
    assert_eq!(
        hub.tool_names(),
        ["proxy", "time_get_current_time", "time_convert_time"]
    );
    let called = hub.ask(
        "tools/call",
        &json!({"name": "time_get_current_time", "arguments": {"timezone": "UTC"}}),
    );
    assert_eq!(called["structuredContent"]["timezone"], "UTC");
}

#[test]
fn a_profile_has_its_own_address() {
    let config = json!({
        "mcpServers": {"demo": demo(), "time": time()},
        "mcp-proxy": {"profiles": {"clock": {"servers": ["time"], "expose": "all"}}},
    });
    let hub = TestHub::start(&config, &[]);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ];
    let answer = request(
        &hub.program.address,
        "POST",
        "/mcp/p/clock",
        &headers,
        body.as_bytes(),
    );
    let listed: Value = serde_json::from_str(&answer.text()).unwrap();
    assert_eq!(
        listed["result"]["tools"].as_array().unwrap().len(),
        2,
        "{listed}"
    );
    assert_eq!(listed["result"]["resultType"], "complete");
    let unknown = request(
        &hub.program.address,
        "POST",
        "/mcp/p/nope",
        &headers,
        body.as_bytes(),
    );
    assert_eq!(unknown.status, 404);
}

#[test]
fn broken_servers_do_not_disturb_the_others() {
    let config = json!({"mcpServers": {
        "missing": {"command": "/nonexistent/place/server"},
        "crash": {"command": "sh", "args": ["-c", "echo boom >&2; exit 3"]},
        "hung": {"command": "sleep", "args": ["1000"]},
        "noise": {"command": "sh", "args": ["-c", "while :; do echo garbage; sleep 0.01; done"]},
        "unset": {"command": "x", "args": ["${THIS_IS_NOT_SET_ANYWHERE}"]},
        "time": time(),
    }});
    let before = Instant::now();
    let hub = TestHub::start(&config, &["--expose", "all"]);
    assert_eq!(hub.tool_names().len(), 2);
    assert!(before.elapsed() < Duration::from_secs(60));
    // Each is tried again and again, so they need not be down at the same moment.
    for name in ["crash", "missing"] {
        hub.until("the failure is noticed", |hub| {
            hub.states()
                .contains(&(name.to_owned(), "failed".to_owned()))
        });
    }
    let states = hub.states();
    assert!(
        states.contains(&("unset".to_owned(), "disabled".to_owned())),
        "{states:?}"
    );
    // A call to a server that is down says what is wrong with it, and tells no path.
    let answer = hub.answer(
        "tools/call",
        &json!({"name": "missing_anything", "arguments": {}}),
    );
    assert_eq!(answer["error"]["code"], -31001, "{answer}");
    assert!(!answer.to_string().contains("/nonexistent"), "{answer}");
    let (code, _) = hub.program.end("-TERM");
    assert_eq!(code, Some(143));
}

#[test]
fn a_killed_server_costs_no_later_call() {
    let hub = TestHub::start(
        &json!({"mcpServers": {"demo": demo()}}),
        &["--expose", "all"],
    );
    hub.until("the server is up", |hub| hub.is_ready("demo"));
    let add = json!({"name": "demo_add", "arguments": {"a": 1, "b": 1}});
    hub.ask("tools/call", &add);
    let connection = &hub.home.ctl(&["connections.list", "server=demo"])["connections"][0];
    assert_eq!(connection["open"], true);
    let pid = hub.server_process();
    std::process::Command::new("kill")
        .args(["-KILL", &pid])
        .status()
        .unwrap();
    hub.until("the end is noticed", |hub| {
        let row = &hub.home.ctl(&["servers.list"])["servers"][0];
        row["health"]["error"].is_string()
    });
    assert_eq!(hub.ask("tools/call", &add)["structuredContent"]["sum"], 2.0);
}

#[test]
fn a_new_configuration_is_taken_on_and_a_wrong_one_is_not() {
    let hub = TestHub::start(
        &json!({"mcpServers": {"time": time()}}),
        &["--expose", "all"],
    );
    hub.until("the server is up", |hub| hub.is_ready("time"));
    let write = |config: &Value| std::fs::write(&hub.config, config.to_string()).unwrap();
    write(&json!({"mcpServers": {"time": time(), "demo": demo()}}));
    hub.home.ctl(&["servers.reload"]);
    // A server is ready before its lists have been read.
    hub.until("the new server is up", |hub| {
        hub.is_ready("demo") && hub.tool_names().contains(&"demo_add".to_owned())
    });
    let listed = hub.home.ctl(&["connections.list", "server=demo"]);
    assert_eq!(listed["connections"][0]["server"]["name"], "demo");
    std::fs::write(&hub.config, "{ nonsense").unwrap();
    let fault = hub.home.refused(&["servers.reload"]);
    assert_eq!(fault["code"], -31104, "{fault}");
    assert!(hub.is_ready("demo"));
    hub.home.ctl(&["servers.disable", "server=demo"]);
    assert!(!hub.tool_names().contains(&"demo_add".to_owned()));
    hub.home.ctl(&["servers.enable", "server=demo"]);
    hub.until("it is back", |hub| {
        hub.tool_names().contains(&"demo_add".to_owned())
    });
}

#[test]
fn wrong_flags_and_files_are_refused() {
    let home = TestHome::new();
    let bad = home.path("bad.json");
    std::fs::write(
        &bad,
        r#"{"mcpServers": {}, "mcp-proxy": {"expsoe": "all"}}"#,
    )
    .unwrap();
    let bad = bad.to_str().unwrap();
    for words in [
        &["serve", "--config", "/nonexistent.json"][..],
        &["serve", "--config", bad],
        &["serve", "--server", "noequals"],
        &["serve", "--server", "a=x", "http://localhost/mcp"],
        &["serve", "--server", "a=x", "--profile", "none"],
        &["serve", "--expose", "nothing"],
        &["serve", "--server", "a=x", "--header", "X: y"],
    ] {
        let output = home.run(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{words:?}");
    }
}
