//! HTTP heads that are changed on their way, by a person or by a rule.

use serde_json::{Value, json};

use crate::control::live::SseClient;
use crate::control::live::headers::{ScriptedResponse, http, id_of, scripted};
use crate::control::test_home::{PING, TestHome, TestProxy, until};
use crate::programs::{ListeningProgram, StdioProgram, pipe};

const ANSWER: ScriptedResponse = |request| {
    let answer = json!({"jsonrpc": "2.0", "id": id_of(request), "result": {}});
    let headers = "content-type: application/json\r\nx-server: one\r\nset-cookie: c=1\r\n";
    http("200 OK", headers, &answer.to_string())
};
const CLIENT: [(&str, &str); 2] = [("x-client", "one"), ("authorization", "Bearer t0ken")];

fn before(house: &TestHome, url: &str, flags: &[&str]) -> ListeningProgram {
    let words = ["proxy", "--listen", "http", "--listen-port", "0"];
    let target = ["--transport", "streamable-http", "--target-url", url];
    ListeningProgram::start_with(&[&words[..], flags, &target].concat(), &house.env())
}

#[test]
fn the_head_of_a_held_message_can_be_changed() {
    let (url, serving) = scripted(vec![ANSWER]);
    let house = TestHome::new();
    let proxy = before(&house, &url, &["--break", r#".method == "ping""#]);
    let answer = std::thread::scope(|scope| {
        let asked = scope.spawn(|| proxy.post(&CLIENT, PING));
        let decide = |headers: Value| {
            let hold = house.held();
            let row = house.ctl(&["hold.list"])["holds"][0].clone();
            assert_eq!(row["head_editable"], true, "{row}");
            let hold = format!("hold={hold}");
            let framing = r#"headers={"content-length":"1"}"#;
            let fault = house.refused(&["hold.resolve", &hold, "action=forward", framing]);
            assert_eq!(fault["code"], -32602, "{fault}");
            assert_eq!(fault["data"]["reason"], "header", "{fault}");
            let headers = format!("headers={headers}");
            house.ctl(&["hold.resolve", &hold, "action=forward", &headers]);
        };
        decide(json!({"x-client": "two", "x-new": ["a", "b"], "authorization": null}));
        until("the answer is held", || {
            house.ctl(&["hold.list"])["holds"][0]["direction"] == "server_to_client"
        });
        decide(json!({"x-server": "two", "set-cookie": null}));
        asked.join().unwrap()
    });
    let seen = &serving.join().unwrap()[0];
    for line in ["x-client: two\r\n", "x-new: a\r\n", "x-new: b\r\n"] {
        assert!(seen.contains(line), "{seen}");
    }
    assert!(!seen.contains("t0ken"), "{seen}");
    assert_eq!(answer.header("x-server"), Some("two"));
    assert_eq!(answer.header("set-cookie"), None);
    let row = house.ctl(&["get", "from=1", "to=1"])["rows"][0].clone();
    assert_eq!(row["modified"], true, "{row}");
    let act = row["verdicts"].as_array().unwrap().last().unwrap();
    assert_eq!(act["kind"], "modify", "{act}");
}

#[test]
fn rules_change_heads_between_two_http_sides() {
    let (url, serving) = scripted(vec![ANSWER]);
    let house = TestHome::new();
    let rules = house.path("rules.toml");
    let text = "[[rule]]\nname = \"tenant\"\ndirection = \"client_to_server\"\nset-header = { X-Client = \"two\", X-Trace = [\"a\", \"b\"] }\n\
                [[rule]]\nmethod = \"ping\"\nremove-header = [\"authorization\", \"set-cookie\"]\n";
    std::fs::write(&rules, text).unwrap();
    let proxy = before(&house, &url, &["--rules", rules.to_str().unwrap()]);
    let answer = proxy.post(&CLIENT, PING);
    let seen = &serving.join().unwrap()[0];
    for line in ["x-client: two\r\n", "x-trace: a\r\n", "x-trace: b\r\n"] {
        assert!(seen.contains(line), "{seen}");
    }
    assert!(!seen.contains("t0ken"), "{seen}");
    assert_eq!(answer.header("set-cookie"), None);
    assert_eq!(answer.header("x-server"), Some("one"));
    let verdicts = house.ctl(&["get", "from=1", "to=1"])["rows"][0]["verdicts"].clone();
    let by: Vec<_> = verdicts
        .as_array()
        .unwrap()
        .iter()
        .map(|act| &act["by"])
        .collect();
    assert_eq!(by, ["rule:tenant", "rule:2"], "{verdicts}");
}

#[test]
fn a_message_without_a_head_of_its_own_keeps_its_headers() {
    let house = TestHome::new();
    let request = r#".kind == "request" and .method == "ping""#;
    let mut run = house.demo(&["--break", request]);
    run.round(crate::programs::INITIALIZE);
    run.say(PING);
    let hold = format!("hold={}", house.held());
    let headers = r#"headers={"x-a":"1"}"#;
    let fault = house.refused(&["hold.resolve", &hold, "action=forward", headers]);
    assert_eq!(fault["data"]["reason"], "header", "{fault}");
    house.ctl(&["continue"]);
    assert!(run.hear().contains("\"result\""));
    run.end();
}

/// Requests that the proxy makes itself, because HTTP begins here.
fn rules_for_made_requests(house: &TestHome) -> String {
    let rules = house.path("rules.toml");
    let text = "[[rule]]\nname = \"tenant\"\nset-header = { X-Tenant = \"blue\" }\n\
                [[rule]]\nmethod = \"ping\"\nremove-header = \"user-agent\"\n";
    std::fs::write(&rules, text).unwrap();
    rules.to_str().unwrap().to_owned()
}

#[test]
fn rules_change_the_headers_of_requests_that_the_proxy_makes() {
    for sends_sse in [false, true] {
        let (url, serving) = scripted(vec![ANSWER]);
        let house = TestHome::new();
        let rules = rules_for_made_requests(&house);
        let target = ["--transport", "streamable-http", "--target-url", &url];
        let flags = [&["--rules", &rules], &target[..]].concat();
        let seen = match sends_sse {
            true => {
                let words = ["proxy", "--listen", "sse", "--listen-port", "0"];
                let words = [&words[..], &flags].concat();
                let proxy = ListeningProgram::start_with(&words, &house.env());
                assert!(SseClient::connect(&proxy).round(PING).contains("result"));
                serving.join().unwrap().remove(0)
            }
            false => {
                let words = [&["proxy", "--listen", "stdio"], &flags[..]].concat();
                let mut client = StdioProgram::start_with(&words, &house.env());
                client.say(PING);
                assert!(client.hear().contains("result"));
                serving.join().unwrap().remove(0)
            }
        };
        assert!(seen.contains("x-tenant: blue\r\n"), "{seen}");
        assert!(!seen.contains("user-agent"), "{seen}");
    }
}

#[test]
fn headers_of_a_held_message_can_be_given_where_the_proxy_makes_the_request() {
    let (url, serving) = scripted(vec![ANSWER]);
    let house = TestHome::new();
    let target = ["--transport", "streamable-http", "--target-url", &url];
    let mut client = house.start_before(&["--break", "ping"], &target, TestProxy::wait_for_id);
    client.say(PING);
    let hold = format!("hold={}", house.held());
    let row = house.ctl(&["hold.list"])["holds"][0].clone();
    let head = (&row["head_editable"], &row["head_made"]);
    assert_eq!(head, (&json!(false), &json!(true)), "{row}");
    let headers = r#"headers={"x-tenant":"blue","user-agent":null}"#;
    house.ctl(&["hold.resolve", &hold, "action=forward", headers]);
    until("the answer is held", || {
        house.ctl(&["hold.list"])["holds"][0]["direction"] == "server_to_client"
    });
    // The answer leaves over stdio.
    let hold = format!("hold={}", house.held());
    assert_eq!(house.ctl(&["hold.list"])["holds"][0]["head_made"], false);
    let fault = house.refused(&["hold.resolve", &hold, "action=forward", headers]);
    assert_eq!(fault["data"]["reason"], "header", "{fault}");
    house.ctl(&["continue"]);
    assert!(client.hear().contains("result"));
    let seen = serving.join().unwrap().remove(0);
    assert!(seen.contains("x-tenant: blue\r\n"), "{seen}");
    assert!(!seen.contains("user-agent"), "{seen}");
}

#[test]
fn rules_change_the_headers_of_what_a_hub_sends_to_an_http_server() {
    let house = TestHome::new();
    let rules = rules_for_made_requests(&house);
    let demo = ListeningProgram::demo();
    let record = house.path("between.jsonl");
    let words = ["proxy", "--listen", "http", "--listen-port", "0"];
    let target = [
        "--transport",
        "streamable-http",
        "--target-url",
        &demo.url(),
    ];
    let file = ["--session-file", record.to_str().unwrap()];
    let between = ListeningProgram::start(&[&words[..], &target, &file].concat());
    let words = ["serve", "--listen", "http", "--listen-port", "0"];
    let server = format!("demo={}", between.url());
    let more = ["--expose", "all", "--rules", &rules, "--server", &server];
    let hub = ListeningProgram::start_with(&[&words[..], &more].concat(), &house.env());
    until("the server is up", || {
        hub.post(&[], r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#)
            .text()
            .contains("demo_add")
    });
    let text = std::fs::read_to_string(&record).unwrap();
    assert!(text.contains("x-tenant"), "{text}");
}

#[test]
fn a_rule_about_headers_that_are_never_sent_is_named() {
    let house = TestHome::new();
    let rules = rules_for_made_requests(&house);
    let words = ["proxy", "--listen", "stdio", "--no-record", "--rules"];
    let output = pipe(&[&words[..], &[&rules, "--", "cat"]].concat(), b"");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("rule 1 (tenant)") && said.contains("rule 2"),
        "{said}"
    );
}
