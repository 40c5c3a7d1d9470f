//! HTTP heads that are changed on their way, by a person or by a rule.

use serde_json::{Value, json};

use crate::control::live::headers::{ScriptedResponse, http, id_of, scripted};
use crate::control::test_home::{PING, TestHome, until};
use crate::programs::ListeningProgram;

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
    let mut run = house.demo(&["--break", r#".kind == "request" and .method == "ping""#]);
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
