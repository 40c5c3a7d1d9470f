//! What a client sees when its messages are held and nobody decides: the policy's effect, on every transport.

mod edits;
mod heads;
mod leaving;
mod waiting;

use crate::control::live::headers::{ScriptedResponse, http, id_of, scripted};
use crate::control::test_home::{self, PING, TestHome, TestProxy};
use crate::programs::{INITIALIZE, INITIALIZED, ListeningProgram, PROXY, pipe, request};
use serde_json::{Value, json};

const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}"#;
/// Calls of tools, and not their answers.
const CALLS: &str = r#".kind == "request" and .method == "tools/call""#;
const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/secret","params":{"echo":1}}"#;
const DEMO: [&str; 4] = ["--", PROXY, "demo-server", "stdio"];

/// Holds what has the word for a moment and then does this with it.
fn holding<'a>(word: &'a str, policy: &'a str) -> Vec<&'a str> {
    vec![
        "--break",
        word,
        "--hold-timeout",
        "50ms",
        "--on-hold-timeout",
        policy,
    ]
}

fn with<'a>(mut flags: Vec<&'a str>, more: &[&'a str]) -> Vec<&'a str> {
    flags.extend_from_slice(more);
    flags
}

fn post(proxy: &ListeningProgram, session: &str, body: &str) -> (u16, String) {
    let answer = proxy.post(&[("mcp-session-id", session)], body);
    (answer.status, answer.text())
}

/// The three policies behind an HTTP listener, whatever stands behind it.
fn policies(target: &[&str]) {
    let proxy = ListeningProgram::proxy("http", &with(holding("echo", "forward"), target));
    let session = proxy.session();
    let (status, text) = post(&proxy, &session, CALL);
    assert!(status == 200 && text.contains("hi"), "{status} {text}");

    let proxy = ListeningProgram::proxy("http", &with(holding("echo", "drop"), target));
    let session = proxy.session();
    assert_eq!(post(&proxy, &session, CALL), (502, String::new()));
    assert_eq!(post(&proxy, &session, NOTE), (202, String::new()));
    let list = r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#;
    assert_eq!(post(&proxy, &session, list).0, 200, "the session goes on");

    let proxy = ListeningProgram::proxy("http", &with(holding("echo", "error"), target));
    let session = proxy.session();
    let (status, text) = post(&proxy, &session, CALL);
    assert_eq!(status, 200);
    assert!(
        text.contains(r#""id":2"#) && text.contains("-31012"),
        "{text}"
    );
}

#[test]
fn over_http_before_a_process() {
    policies(&DEMO);
}

#[test]
fn over_http_before_http() {
    let server = ListeningProgram::demo();
    let url = server.url();
    policies(&["--transport", "streamable-http", "--target-url", &url]);
}

#[test]
fn an_answer_that_is_dropped_ends_its_exchange() {
    // The word stands in the server's answer only.
    let held = "isError";
    let server = ListeningProgram::demo();
    let url = server.url();
    for target in [
        &DEMO[..],
        &["--transport", "streamable-http", "--target-url", &url],
    ] {
        let proxy = ListeningProgram::proxy("http", &with(holding(held, "drop"), target));
        let session = proxy.session();
        let (status, text) = post(&proxy, &session, CALL);
        // Where the stream was open already it ends without the answer.
        assert!(status == 502 || !text.contains("hi"), "{status} {text}");
    }
    let json: ScriptedResponse = |request| {
        let answer = serde_json::json!({"id": id_of(request), "result": {"isError": false}});
        let headers = "content-type: application/json\r\n";
        http("200 OK", headers, &answer.to_string())
    };
    let stream: ScriptedResponse = |request| {
        let answer = serde_json::json!({"id": id_of(request), "result": {"isError": false}});
        let body = format!(": first\n\ndata: {answer}\n\n");
        http("200 OK", "content-type: text/event-stream\r\n", &body)
    };
    let (url, serving) = scripted(vec![json, stream]);
    let target = ["--transport", "streamable-http", "--target-url", &url];
    let proxy = ListeningProgram::proxy("http", &with(holding(held, "drop"), &target));
    assert_eq!(post(&proxy, "", CALL), (502, String::new()));
    assert_eq!(post(&proxy, "", CALL), (200, ": first\n\n".to_owned()));
    serving.join().unwrap();
}

#[test]
fn on_modern_http_headers_follow_an_edit() {
    // The server names an argument that it wants in a header, as JSON and as an event.
    const TOOLS: &str = r#"{"tools":[{"name":"add","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}"#;
    let json: ScriptedResponse = |request| {
        let answer = format!(r#"{{"id":{},"result":{TOOLS}}}"#, id_of(request));
        http("200 OK", "content-type: application/json\r\n", &answer)
    };
    let stream: ScriptedResponse = |request| {
        let answer = format!(r#"data: {{"id":{},"result":{TOOLS}}}"#, id_of(request));
        let headers = "content-type: text/event-stream\r\n";
        http("200 OK", headers, &format!("{answer}\n\n"))
    };
    for list in [json, stream] {
        let (url, serving) = scripted(vec![list, json, json]);
        let house = TestHome::new();
        let words = [
            "proxy",
            "--listen",
            "http",
            "--listen-port",
            "0",
            "--break",
            CALLS,
        ];
        let target = ["--transport", "streamable-http", "--target-url", &url];
        let proxy = ListeningProgram::start_with(&[&words[..], &target].concat(), &house.env());
        let version = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        let list = format!(r#"{{"id":1,"method":"tools/list","params":{{{version}}}}}"#);
        let sent = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/list"),
        ];
        assert_eq!(proxy.post(&sent, &list).status, 200);
        let call = |region: &str| {
            let arguments = format!(r#""arguments":{{"region":"{region}"}}"#);
            format!(
                r#"{{"id":2,"method":"tools/call","params":{{"name":"add",{arguments},{version}}}}}"#
            )
        };
        let sent = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "add"),
            ("mcp-param-region", "eu"),
        ];
        for edit in [call("us"), list] {
            std::thread::scope(|scope| {
                let asked = scope.spawn(|| proxy.post(&sent, &call("eu")));
                let hold = format!("hold={}", house.held());
                house.ctl(&[
                    "hold.resolve",
                    &hold,
                    "action=modify",
                    &format!("raw={edit}"),
                ]);
                assert_eq!(asked.join().unwrap().status, 200);
            });
        }
        let seen = serving.join().unwrap();
        for header in [
            "mcp-method: tools/call",
            "mcp-name: add",
            "mcp-param-region: us",
        ] {
            assert!(seen[1].contains(&format!("{header}\r\n")), "{}", seen[1]);
        }
        assert!(
            seen[2].contains("mcp-method: tools/list\r\n"),
            "{}",
            seen[2]
        );
        for gone in ["mcp-name", "mcp-param"] {
            assert!(!seen[2].contains(gone), "{}", seen[2]);
        }
    }
}

#[test]
fn header_arguments_follow_an_edit_though_the_tools_were_never_listed() {
    let json: ScriptedResponse = |request| {
        let answer = format!(r#"{{"id":{},"result":{{}}}}"#, id_of(request));
        http("200 OK", "content-type: application/json\r\n", &answer)
    };
    let (url, serving) = scripted(vec![json]);
    let house = TestHome::new();
    let target = ["--transport", "streamable-http", "--target-url", &url];
    let break_at = ["--break", CALLS];
    let words = ["proxy", "--listen", "http", "--listen-port", "0"];
    let words = [&words[..], &break_at, &target].concat();
    let proxy = ListeningProgram::start_with(&words, &house.env());
    let call = |region: &str, zone: &str| {
        let version = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        format!(
            r#"{{"id":2,"method":"tools/call","params":{{"name":"add","arguments":{{"q":"eu","region":"{region}"{zone}}},{version}}}}}"#
        )
    };
    let sent = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "add"),
        ("mcp-param-region", "eu"),
        ("mcp-param-zone", "1"),
    ];
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| proxy.post(&sent, &call("eu", r#","zone":1"#)));
        let hold = format!("hold={}", house.held());
        let edit = format!("raw={}", call("us", ""));
        house.ctl(&["hold.resolve", &hold, "action=modify", &edit]);
        assert_eq!(asked.join().unwrap().status, 200);
    });
    let seen = serving.join().unwrap().remove(0);
    assert!(seen.contains("mcp-param-region: us\r\n"), "{seen}");
    assert!(!seen.contains("mcp-param-zone"), "{seen}");
}

#[test]
fn over_stdio_a_held_request_is_answered_or_goes_on() {
    let input = format!("{CALL}\n");
    let error = pipe(&with(holding("echo", "error"), &DEMO), input.as_bytes());
    let text = String::from_utf8_lossy(&error.stdout);
    assert!(text.contains("-31012"), "{text}");
    let flags = ["--intercept", "--hold-timeout", "20ms"];
    let on = pipe(&with(flags.to_vec(), &["--", "cat"]), input.as_bytes());
    assert_eq!(String::from_utf8_lossy(&on.stdout), input, "{on:?}");
}

#[test]
fn large_messages_can_be_held_too() {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"{}"}}}}}}"#,
        "x".repeat(300_000)
    );
    let input = format!("{body}\n");
    let flags = with(holding("echo", "forward"), &["--", "cat"]);
    let on = pipe(&flags, input.as_bytes());
    assert!(on.stdout == input.as_bytes(), "{} bytes", on.stdout.len());
    let server = ListeningProgram::demo();
    let url = server.url();
    let target = ["--transport", "streamable-http", "--target-url", &url];
    let proxy = ListeningProgram::proxy("http", &with(holding("echo", "forward"), &target));
    let session = proxy.session();
    let answer = request(
        &proxy.address,
        "POST",
        "/mcp",
        &[
            ("mcp-session-id", &session),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ],
        body.as_bytes(),
    );
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains("xxxx"));
}

#[test]
fn a_killed_proxy_leaves_a_session_that_opens() {
    let house = TestHome::new();
    let mut run = house.demo(&["--intercept"]);
    run.say(INITIALIZE);
    house.held();
    run.child.kill().unwrap();
    run.child.wait().unwrap();
    let shown = test_home::ok(house.run(&["inspect", "LAST", "--json"]));
    let row: serde_json::Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
    assert_eq!(row["method"], "initialize", "{shown}");
    assert_eq!(row["verdicts"][0]["kind"], "hold", "{shown}");
}

#[test]
fn a_request_whose_method_was_changed_is_shown_as_it_was_sent() {
    for flags in [&["--break", CALLS][..], &["--break", CALLS, "--no-record"]] {
        let house = TestHome::new();
        let mut run = house.demo(flags);
        run.round(INITIALIZE);
        run.say(INITIALIZED);
        run.say(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"x"}}}"#);
        let hold = format!("hold={}", house.held());
        let edit = r#"raw={"jsonrpc":"2.0","id":2,"method":"prompts/list"}"#;
        house.ctl(&["hold.resolve", &hold, "action=modify", edit]);
        let heard = run.hear();
        assert!(heard.contains("prompts"), "{heard}");
        let told = house.ctl(&["get", "from=4"]);
        let (request, answer) = (&told["rows"][0], &told["rows"][1]);
        assert_eq!(
            (&request["method"], &request["name"], &request["modified"]),
            (&json!("prompts/list"), &Value::Null, &json!(true)),
            "{told}"
        );
        assert_eq!(answer["asked"]["method"], "prompts/list", "{told}");
        assert_eq!(answer["asked"]["name"], Value::Null, "{told}");
        assert_eq!(run.end(), Some(0));
        if flags.len() == 2 {
            let table = String::from_utf8(house.run(&["inspect", "LAST"]).stdout).unwrap();
            assert!(
                !table.contains("tools/call") && !table.contains("echo"),
                "{table}"
            );
            assert!(table.contains("↩ prompts/list"), "{table}");
        }
    }
}

#[test]
fn a_held_answer_is_listed_with_what_it_answers() {
    let answers = r#".direction == "server_to_client" and .tool == "echo""#;
    for flags in [
        &["--break", answers][..],
        &["--break", answers, "--no-record"],
    ] {
        let house = TestHome::new();
        let mut run = house.demo(flags);
        run.round(INITIALIZE);
        run.say(INITIALIZED);
        run.say(CALL);
        let hold = house.held();
        let listed = house.ctl(&["hold.list"]);
        let held = &listed["holds"][0];
        assert_eq!(held["direction"], "server_to_client", "{listed}");
        assert_eq!(
            (&held["method"], &held["name"]),
            (&json!("tools/call"), &json!("echo"))
        );
        house.ctl(&["hold.resolve", &format!("hold={hold}"), "action=forward"]);
        assert!(run.hear().contains("hi"));
        assert_eq!(run.end(), Some(0));
    }
}

#[test]
fn an_edit_goes_on_to_the_byte_or_is_refused() {
    // A mirror as the server: what it is sent comes back as a request of its own.
    let house = TestHome::new();
    let mut run = house.start_before(&["--break", "ping"], &["--", "cat"], TestProxy::wait_for_id);
    let odd = r#"{"jsonrpc":"2.0","id":6,"method":"odd","params":{"n":1.00000000000000000001,"n":12345678901234567890123,"e":1E400,"u":"\u00e9é\ud800","z":-0, "t" : [ ] }}"#;
    for way in ["word", "stdin"] {
        run.say(PING);
        let hold = house.held();
        let words = ["hold.resolve", &format!("hold={hold}"), "action=modify"];
        let broken = house.run(&[&["ctl"], &words[..], &[r#"raw={"id":6,}"#]].concat());
        assert_eq!(broken.status.code(), Some(2));
        let said = String::from_utf8(broken.stderr).unwrap();
        assert!(said.contains("raw:") && said.contains("raw_text"), "{said}");
        if way == "word" {
            house.ctl(&[&words[..], &[&format!("raw={odd}")]].concat());
        } else {
            let params = format!(r#"{{"hold":{hold},"action":"modify","raw":{odd}}}"#);
            house.ctl_with(&["hold.resolve", "-"], &params);
        }
        assert_eq!(run.hear().trim_end(), odd, "{way}");
    }
}
