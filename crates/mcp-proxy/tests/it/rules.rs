//! Rules in a running proxy: what client and server get, what the record says, and a file that changes.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::control::live::SseClient;
use crate::control::test_home::{PROXY, TestHome, until};
use crate::programs::{INITIALIZE, INITIALIZED, ListeningProgram, pipe, record_lines};

const RULES: &str = r#"
[[rule]]
name = "louder"
direction = "client_to_server"
tool = "echo"
change = '.arguments.message |= ascii_upcase'

[[rule]]
name = "slow"
tool = "echo"
direction = "server_to_client"
delay = "20ms"

[[rule]]
name = "canned"
method = "prompts/list"
answer = { prompts = [] }

[[rule]]
name = "no-resources"
method = "resources/list"
error = { code = -32000, message = "not here" }

[[rule]]
name = "gone"
method = "ping"
drop = true
"#;

fn request(id: u32, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

fn call(id: u32, text: &str) -> String {
    let params = format!(r#"{{"name":"echo","arguments":{{"message":"{text}"}}}}"#);
    request(id, "tools/call", &params)
}

fn file(house: &TestHome, rules: &str) -> PathBuf {
    let path = house.path("rules.toml");
    std::fs::write(&path, rules).unwrap();
    path
}

#[test]
fn every_action_over_stdio_and_what_the_record_says() {
    let house = TestHome::new();
    let rules = file(&house, RULES);
    let mut run = house.demo(&["--rules", rules.to_str().unwrap()]);
    run.round(INITIALIZE);
    run.say(INITIALIZED);
    let heard = run.round(&call(2, "quiet"));
    assert!(heard.contains("QUIET"), "{heard}");
    let heard = run.round(&request(3, "prompts/list", "{}"));
    assert_eq!(
        heard,
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"prompts\":[]}}\n"
    );
    run.say(&request(4, "resources/list", "{}"));
    let heard = run.hear();
    assert!(
        heard.contains(r#""id":4"#) && heard.contains("not here"),
        "{heard}"
    );
    // A dropped request has no answer: the next one that comes is another's.
    run.say(&request(5, "ping", "{}"));
    let heard = run.round(&call(6, "next"));
    assert!(heard.contains(r#""id":6"#), "{heard}");
    assert_eq!(run.end(), Some(0));

    let acts: Vec<Value> = house
        .record()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["t"] == "act" && line["by"] != "proxy")
        .collect();
    let said: Vec<String> = acts
        .iter()
        .map(|act| {
            format!(
                "{} {}",
                act["kind"].as_str().unwrap(),
                act["by"].as_str().unwrap()
            )
        })
        .collect();
    let expected = [
        "modify rule:louder",
        "delay rule:slow",
        "answer rule:canned",
        "answer rule:no-resources",
        "drop rule:gone",
        "modify rule:louder",
        "delay rule:slow",
    ];
    assert_eq!(said, expected);
    assert_eq!(
        acts[0]["original_raw"]["params"]["arguments"]["message"],
        "quiet"
    );
    assert_eq!(acts[0]["raw"]["params"]["arguments"]["message"], "QUIET");
}

fn over_http(target: &[&str]) {
    let house = TestHome::new();
    let rules = file(&house, RULES);
    let flags = [&["--rules", rules.to_str().unwrap()], target].concat();
    let proxy = ListeningProgram::proxy("http", &flags);
    let session = proxy.session();
    let post = |body: &str| {
        let answer = proxy.post(&[("mcp-session-id", &session)], body);
        (answer.status, answer.text())
    };
    let (status, text) = post(&call(2, "quiet"));
    assert!(status == 200 && text.contains("QUIET"), "{status} {text}");
    let (status, text) = post(&request(3, "prompts/list", "{}"));
    assert!(
        status == 200 && text.contains(r#"{"prompts":[]}"#),
        "{status} {text}"
    );
    let (status, text) = post(&request(4, "resources/list", "{}"));
    assert!(
        status == 200 && text.contains("not here"),
        "{status} {text}"
    );
    assert_eq!(post(&request(5, "ping", "{}")), (502, String::new()));
    let (status, text) = post(&call(6, "next"));
    assert!(
        status == 200 && text.contains("NEXT"),
        "the session goes on: {status} {text}"
    );
}

#[test]
fn every_action_over_http_before_a_process() {
    over_http(&["--", PROXY, "demo-server", "stdio"]);
}

#[test]
fn every_action_over_http_before_http() {
    let server = ListeningProgram::demo();
    let url = server.url();
    over_http(&["--transport", "streamable-http", "--target-url", &url]);
}

fn redirecting(house: &TestHome, server: &str) -> PathBuf {
    let rule = format!("[[rule]]\nname = \"elsewhere\"\ntool = \"echo\"\nredirect = '{server}'\n");
    file(house, &rule)
}

#[test]
fn a_call_is_redirected_to_a_process_and_to_a_url() {
    let other = ListeningProgram::demo();
    let process = format!("{PROXY} demo-server stdio");
    for server in [process, other.url()] {
        let house = TestHome::new();
        let rules = redirecting(&house, &server);
        let mut run = house.demo(&["--rules", rules.to_str().unwrap()]);
        run.round(INITIALIZE);
        run.say(INITIALIZED);
        let heard = run.round(&call(2, "there"));
        let own = heard.starts_with(r#"{"jsonrpc":"2.0","id":2,"#);
        assert!(own && heard.contains("there"), "{heard}");
        run.round(&request(3, "tools/list", "{}"));
        assert_eq!(run.end(), Some(0));
        let record = house.record();
        let calls: Vec<Value> = record
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .filter(|line: &Value| line["method"] == "tools/call")
            .collect();
        let ways: Vec<_> = calls
            .iter()
            .map(|call| call["conn"].as_str().unwrap())
            .collect();
        assert_eq!(
            ways,
            ["c1", "c2"],
            "once from the client, once to the other server"
        );
        assert!(record.contains("rule:elsewhere"), "{record}");
        assert_eq!(
            judged(&house),
            [
                "initialize",
                "notifications/initialized",
                "tools/call",
                "tools/list"
            ],
            "what the proxy said itself, and what it was told, no rule has seen"
        );
    }
}

/// The methods of all that a rule for every message would have seen, once each and in order of the alphabet.
fn judged(house: &TestHome) -> Vec<String> {
    let rules = file(house, "[[rule]]\ndelay = \"1ms\"\n");
    let words = ["rules", "check", rules.to_str().unwrap(), "LAST", "--json"];
    let text = String::from_utf8(house.run(&words).stdout).unwrap();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut methods: Vec<String> = lines
        .filter(|line| line["direction"] == "client_to_server")
        .map(|line| line["method"].as_str().unwrap().to_owned())
        .collect();
    // Both answers on the client's own session: that to the call was made here.
    assert_eq!(text.lines().count(), methods.len() + 2, "{text}");
    methods.sort();
    methods
}

#[test]
fn a_call_over_http_is_redirected_and_a_server_that_is_not_there_is_an_error() {
    let server = ListeningProgram::demo();
    let (url, other) = (server.url(), ListeningProgram::demo());
    let cases = [
        (other.url(), "there"),
        ("/no/such/program".to_owned(), "-31001"),
    ];
    for (to, expected) in cases {
        let house = TestHome::new();
        let rules = redirecting(&house, &to);
        let rules = rules.to_str().unwrap();
        let target = ["--transport", "streamable-http", "--target-url", &url];
        let proxy = ListeningProgram::proxy("http", &[&["--rules", rules][..], &target].concat());
        let session = proxy.session();
        let answer = proxy.post(&[("mcp-session-id", &session)], &call(2, "there"));
        let (status, text) = (answer.status, answer.text());
        assert!(
            status == 200 && text.contains(r#""id":2"#),
            "{status} {text}"
        );
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_change_of_the_file_counts_and_a_broken_one_does_not() {
    let house = TestHome::new();
    let rules = file(&house, RULES);
    let mut run = house.demo(&["--rules", rules.to_str().unwrap()]);
    run.round(INITIALIZE);
    run.say(INITIALIZED);
    file(
        &house,
        "[[rule]]\ntool = \"echo\"\nchange = '.arguments.message = \"other\"'\n",
    );
    until("the new rules are read", || {
        house.ctl(&["rules.list"])["rules"]
            .as_array()
            .unwrap()
            .len()
            == 1
    });
    let heard = run.round(&call(2, "quiet"));
    assert!(heard.contains("other"), "{heard}");

    file(&house, "[[rule]]\ntool = \"echo\"\nchnge = '.'\n");
    until("the fault is told", || {
        house.ctl(&["rules.list"])["fault"].is_string()
    });
    let heard = run.round(&call(3, "quiet"));
    assert!(heard.contains("other"), "the old rules stay: {heard}");
    let fault = house.refused(&["rules.reload"]);
    assert_eq!(fault["code"], -31104, "{fault}");
    assert!(
        fault["message"].as_str().unwrap().contains("chnge"),
        "{fault}"
    );
    // Both are told on stderr: first how many rules there are now, then what is wrong.
    let line = run.error_line();
    assert!(line.contains("1 ") && !line.contains("chnge"), "{line}");
    let line = run.error_line();
    assert!(line.contains("chnge"), "{line}");

    std::fs::remove_file(&rules).unwrap();
    until("the missing file is told", || {
        // The old fault was about a word in the file.
        let fault = house.ctl(&["rules.list"])["fault"].clone();
        fault.as_str().is_some_and(|fault| !fault.contains("chnge"))
    });
    assert!(run.round(&call(4, "quiet")).contains("other"));
    file(&house, "");
    assert_eq!(house.ctl(&["rules.reload"])["rules"], 0);
    assert!(run.round(&call(5, "quiet")).contains("quiet"));
    assert_eq!(run.end(), Some(0));
}

#[test]
fn what_is_too_slow_does_nothing_and_is_told() {
    let house = TestHome::new();
    let rules = file(
        &house,
        "[[rule]]\nname = \"forever\"\ndirection = \"client_to_server\"\ntool = \"echo\"\nfilter = 'jq:last(range(1e12))'\ndrop = true\n",
    );
    let flags = ["--break", "jq:last(range(1e12))", "--rules"];
    let flags = [&flags[..], &[rules.to_str().unwrap()]].concat();
    let mut run = house.demo(&flags);
    run.round(INITIALIZE);
    run.say(INITIALIZED);
    for id in 2..7 {
        let heard = run.round(&call(id, "still there"));
        assert!(heard.contains("still there"), "{heard}");
    }
    let rule = &house.ctl(&["rules.list"])["rules"][0];
    assert_eq!(rule["too_slow"], 5, "{rule}");
    let breakpoint = &house.ctl(&["breakpoints.list"])["breakpoints"][0];
    assert!(breakpoint["too_slow"].as_u64() >= Some(5), "{breakpoint}");
    assert_eq!(breakpoint["hits"], 0);
    assert_eq!(run.end(), Some(0));
    let lines = record_lines(&house.record());
    for subject in ["rule 1 (forever)", "breakpoint 1"] {
        let about = |line: &&Value| {
            let text = line["text"].as_str().unwrap_or_default();
            line["t"] == "note" && text.contains(subject)
        };
        let notes = lines.iter().filter(about).count();
        assert!((1..5).contains(&notes), "{subject}: {notes}");
    }
}

#[test]
fn a_file_that_cannot_be_used_is_a_usage_error() {
    let house = TestHome::new();
    let cases = [
        ("[[rule]]\n", "line 1"),
        ("[[rule]]\ndrop = true\nredirect = \"x\"\n", "redirect"),
        ("[[rule]]\nredirect = \"ftp://other\"\n", "ftp"),
    ];
    for (rules, named) in cases {
        let path = file(&house, rules);
        let output = pipe(
            &[
                "proxy",
                "--no-record",
                "--rules",
                path.to_str().unwrap(),
                "--",
                "cat",
            ],
            b"",
        );
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("rules.toml") && said.contains(named),
            "{said}"
        );
    }
    // A pipe that nobody writes to, and a file that never ends.
    let fifo = house.path("pipe.toml");
    make_fifo(&fifo);
    for path in [Path::new("/nowhere/r.toml"), &fifo, Path::new("/dev/zero")] {
        let path = path.to_str().unwrap();
        let words = ["proxy", "--no-record", "--rules", path, "--", "cat"];
        let output = pipe(&words, b"");
        assert_eq!(output.status.code(), Some(2), "{path}");
    }
}

fn make_fifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

#[test]
fn a_pipe_in_the_place_of_the_file_is_refused() {
    let house = TestHome::new();
    let rules = file(&house, "");
    let mut run = house.demo(&["--rules", rules.to_str().unwrap()]);
    run.round(INITIALIZE);
    std::fs::remove_file(&rules).unwrap();
    make_fifo(&rules);
    let fault = house.refused(&["rules.reload"]);
    assert_eq!(fault["code"], -31104, "{fault}");
    assert_eq!(run.end(), Some(0));
}

#[test]
fn a_dropped_notification_ends_no_stream() {
    let server = ListeningProgram::demo();
    let url = server.url();
    let house = TestHome::new();
    let rules = file(
        &house,
        "[[rule]]\nmethod = \"notifications/progress\"\ndrop = true\n",
    );
    let rules = rules.to_str().unwrap();
    let target = ["--transport", "streamable-http", "--target-url", &url];
    let proxy = ListeningProgram::proxy("http", &[&["--rules", rules][..], &target].concat());
    let session = proxy.session();
    let body = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"count_down","arguments":{"from":2},"_meta":{"progressToken":7}}}"#;
    let answer = proxy.post(&[("mcp-session-id", &session)], body);
    let text = answer.text();
    assert!(text.contains(r#""id":2"#), "{text}");
    assert!(!text.contains("notifications/progress"), "{text}");
}

#[test]
fn what_a_rule_answers_late_is_answered_late() {
    let house = TestHome::new();
    let rules = "[[rule]]\nmethod = \"ping\"\ndelay = \"100ms\"\n[[rule]]\nmethod = \"ping\"\nanswer = {}\n";
    let rules = file(&house, rules);
    let mut run = house.demo(&["--rules", rules.to_str().unwrap()]);
    run.round(INITIALIZE);
    run.round(&request(2, "ping", "{}"));
    assert_eq!(run.end(), Some(0));
    let record = house.record();
    let answer = record
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|line| line["kind"] == "response" && line["jsonrpc_id"] == 2)
        .unwrap();
    // The delay is not the server's time.
    let held = answer["request_held_us"].as_u64().unwrap();
    assert!(held >= 100_000, "{answer}");
    assert!(answer["latency_us"].as_u64().unwrap() < held, "{answer}");
}

const ELICITS: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"test","version":"0"}}}"#;
const ANSWERED: &str = r#"
[[rule]]
name = "nobody home"
method = "elicitation/create"
answer = { action = "accept", content = { name = "Rule" } }
"#;

#[test]
fn a_question_of_the_server_is_answered_between_two_http_sides() {
    let server = ListeningProgram::demo();
    let url = server.url();
    let house = TestHome::new();
    let rules = file(&house, ANSWERED);
    let rules = ["--rules", rules.to_str().unwrap(), "--no-control"];
    let refused =
        "[[rule]]\nmethod = \"elicitation/create\"\nerror = { code = -5, message = \"not now\" }\n";
    let path = house.path("refused.toml");
    std::fs::write(&path, refused).unwrap();
    let refuses = ["--rules", path.to_str().unwrap()];
    let held = "--break elicitation/create --hold-timeout 50ms --on-hold-timeout error";
    let held: Vec<&str> = held.split(' ').collect();
    let cases = [
        (&rules[..], "Hello, Rule!"),
        (&refuses, "not now"),
        (&held, "-31012"),
    ];
    for (flags, expected) in cases {
        let target = ["--transport", "streamable-http", "--target-url", &url];
        let proxy = ListeningProgram::proxy("http", &[flags, &target].concat());
        let answer = proxy.post(&[], ELICITS);
        let session = answer.header("mcp-session-id").unwrap().to_owned();
        let headers = [("mcp-session-id", session.as_str())];
        proxy.post(&headers, INITIALIZED);
        let answer = proxy.post(
            &headers,
            &request(2, "tools/call", r#"{"name":"ask_name","arguments":{}}"#),
        );
        let text = answer.text();
        assert!(text.contains(expected), "{text}");
        assert!(
            !text.contains("elicitation/create"),
            "the client is not asked: {text}"
        );
    }
}

#[test]
fn a_question_of_the_server_is_answered_between_two_sse_sides() {
    let server = ListeningProgram::proxy("sse", &["--", PROXY, "demo-server", "stdio"]);
    let url = server.url();
    let house = TestHome::new();
    let rules = file(&house, ANSWERED);
    let flags = ["--rules", rules.to_str().unwrap(), "--transport", "sse"];
    let proxy = ListeningProgram::proxy("sse", &[&flags[..], &["--target-url", &url]].concat());
    let mut client = SseClient::connect(&proxy);
    client.round(ELICITS);
    client.say(INITIALIZED);
    let ask = request(2, "tools/call", r#"{"name":"ask_name","arguments":{}}"#);
    let heard = client.round(&ask);
    assert!(heard.contains("Hello, Rule!"), "{heard}");
}
