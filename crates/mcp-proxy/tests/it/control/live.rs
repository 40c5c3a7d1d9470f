//! `ctl replay session=live`: one message more on the session of a client, over every pair of transports.

pub mod headers;

use serde_json::{Value, json};

use super::replay::{CALL, called, linked};
use super::test_home::{self, PING, TestHome, TestProxy, until};
use crate::programs::{INITIALIZE, INITIALIZED, ListeningProgram, open, request};

const DEMO: [&str; 4] = ["--", test_home::PROXY, "demo-server", "stdio"];
const COUNT: &str = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"count_down","arguments":{"from":2},"_meta":{"progressToken":"t"}}}"#;
const ASK: &str =
    r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"ask_name","arguments":{}}}"#;

/// A recorded proxy that listens as `kind` before a target.
fn before(house: &TestHome, kind: &str, target: &[&str]) -> ListeningProgram {
    let words = ["proxy", "--listen", kind, "--listen-port", "0"];
    ListeningProgram::start_with(&[&words[..], target].concat(), &house.env())
}

/// The number of the client's message that has this text.
fn number_of(house: &TestHome, text: &str) -> String {
    let rows = house.ctl(&["get", "raw=true"])["rows"].clone();
    let mut rows = rows.as_array().unwrap().iter();
    let row = rows.find(|row| row["method"].is_string() && row["raw"].to_string().contains(text));
    format!("sequence={}", row.unwrap()["sequence"])
}

fn replay(house: &TestHome, sequence: &str) -> Value {
    let replayed = house.ctl(&["replay", sequence, "session=live"]);
    linked(house, &replayed);
    replayed
}

#[test]
fn a_call_is_sent_again_on_the_live_session() {
    let house = TestHome::new();
    let mut run = called(&house, &[]);
    let replayed = house.ctl(&["replay", "sequence=4", "session=live"]);
    assert_eq!(replayed["raw"]["result"]["content"][0]["text"], "hi");
    assert_eq!(replayed["conn"], "c1");
    let (request, _) = linked(&house, &replayed);
    let id = request["jsonrpc_id"].as_str().unwrap();
    assert!(id.starts_with("mcp-proxy-replay-"), "{id}");
    assert_eq!(request["raw"]["params"]["_meta"]["progressToken"], id);
    assert!(run.round(PING).contains(r#""id":7"#));
    // The request goes between two messages of the client.
    let long = "x".repeat(200_000);
    let large = CALL.replace("hi", &long);
    let (first, rest) = large.split_at(150_000);
    run.say_part(first);
    let replayed = std::thread::scope(|scope| {
        let asked = scope.spawn(|| {
            let edit = CALL.replace("hi", &"y".repeat(100_000));
            let params = json!({"sequence": 4, "session": "live", "raw": edit}).to_string();
            house.ctl_with(&["replay", "-"], &params)
        });
        run.say_part(rest);
        run.say("");
        assert!(run.hear().contains(&long));
        asked.join().unwrap()
    });
    let answer = replayed["raw"].to_string();
    assert!(answer.len() > 100_000, "{replayed}");
    assert!(run.round(PING).contains(r#""id":7"#));
    assert_eq!(run.end(), Some(0));
}

#[test]
fn a_live_session_over_http_before_a_process_takes_one_too() {
    let house = TestHome::new();
    let server = ["--", test_home::PROXY, "demo-server", "stdio"];
    let words = [
        &["proxy", "--listen", "http", "--listen-port", "0"],
        &server[..],
    ]
    .concat();
    let proxy = ListeningProgram::start_with(&words, &house.env());
    let session = proxy.session();
    let answer = proxy.post(&[("mcp-session-id", &session)], CALL);
    assert!(answer.text().contains("hi"), "{answer:?}");
    let replayed = house.ctl(&["replay", "sequence=4", "session=live"]);
    assert_eq!(replayed["raw"]["result"]["content"][0]["text"], "hi");
    linked(&house, &replayed);
}

#[test]
fn a_live_session_over_stdio_before_http_takes_one() {
    let house = TestHome::new();
    let demo = ListeningProgram::demo();
    let url = demo.url();
    let target = ["--transport", "streamable-http", "--target-url", &url];
    let mut run = house.start_before(&[], &target, TestProxy::wait_for_id);
    run.round(INITIALIZE);
    run.say(INITIALIZED);
    assert!(run.round(CALL).contains("hi"));
    let replayed = replay(&house, "sequence=4");
    assert_eq!(replayed["raw"]["result"]["content"][0]["text"], "hi");
    assert_eq!(replayed["conn"], "c1");
    assert!(run.round(PING).contains(r#""id":7"#));
}

#[test]
fn a_live_session_from_http_to_http_takes_one() {
    let house = TestHome::new();
    let demo = ListeningProgram::demo();
    let url = demo.url();
    let target = ["--transport", "streamable-http", "--target-url", &url];
    let proxy = before(&house, "http", &target);
    let answer = proxy.post(&[], &INITIALIZE.replace("{},", r#"{"elicitation":{}},"#));
    let session = answer.header("mcp-session-id").unwrap().to_owned();
    let headers = [("mcp-session-id", session.as_str())];
    // Nothing but its opening was said, so how the client speaks is not known.
    let refused = house.refused(&["replay", "sequence=1", "session=live"]);
    assert_eq!(refused["code"], -31104, "{refused}");
    assert_eq!(proxy.post(&headers, INITIALIZED).status, 202);
    let calls = [(CALL, "echo", "hi"), (COUNT, "count_down", "Lift-off!")];
    for (body, tool, expected) in calls {
        assert!(proxy.post(&headers, body).text().contains(expected));
        let sequence = number_of(&house, tool);
        let replayed = replay(&house, &sequence);
        let text = &replayed["raw"]["result"]["content"][0]["text"];
        assert_eq!(*text, expected);
        assert_eq!(replayed["conn"], "c1", "the client's own");
    }
    // What the server asks meanwhile is answered with an error, and the client is not asked.
    let edit = format!("raw={ASK}");
    let sequence = number_of(&house, "count_down");
    let replayed = house.ctl(&["replay", &sequence, "session=live", &edit]);
    assert!(replayed["raw"]["error"].is_object(), "{replayed}");
    let asked = number_of(&house, "elicitation/create");
    let rows = house.ctl(&["get", "raw=true"])["rows"].clone();
    let answer = rows.as_array().unwrap().iter().find(|row| {
        let answers = format!("sequence={}", row["answers"]);
        answers == asked
    });
    assert_eq!(answer.unwrap()["raw"]["error"]["code"], -32601, "{rows}");
    // A notification has no answer.
    let sequence = number_of(&house, "notifications/initialized");
    let replayed = house.ctl(&["replay", &sequence, "session=live"]);
    assert_eq!(replayed["answer"], Value::Null);
    // An answer that a viewer drops is not waited for.
    let filter = r#"filter=.kind == "response""#;
    house.ctl(&["breakpoints.add", filter, "hits=1"]);
    std::thread::scope(|scope| {
        let sequence = number_of(&house, "echo");
        let refused = scope.spawn(|| {
            let sequence = sequence;
            house.refused(&["replay", &sequence, "session=live"])
        });
        let hold = house.held();
        house.ctl(&["hold.resolve", &format!("hold={hold}"), "action=drop"]);
        let refused = refused.join().unwrap();
        assert_eq!(refused["code"], -31104, "{refused}");
        assert_eq!(refused["data"]["reason"], "unanswered", "{refused}");
        let text = refused["message"].as_str().unwrap();
        assert!(text.contains("user (ctl, pid "), "{text}");
    });
    // After its end there is no session to send on.
    let sequence = number_of(&house, "echo");
    let delete = request(&proxy.address, "DELETE", "/mcp", &headers, b"");
    assert!(delete.status < 300, "{delete:?}");
    let refused = house.refused(&["replay", &sequence, "session=live"]);
    assert_eq!(refused["code"], -31104, "{refused}");
    assert_eq!(refused["data"]["reason"], "not_live", "{refused}");
}

/// A client of HTTP+SSE.
pub struct SseClient<'a> {
    proxy: &'a ListeningProgram,
    stream: crate::programs::OpenResponse,
    endpoint: String,
}

impl SseClient<'_> {
    pub fn connect(proxy: &ListeningProgram) -> SseClient<'_> {
        let accept = [("accept", "text/event-stream")];
        let mut stream = open(&proxy.address, "GET", "/sse", &accept, b"");
        assert_eq!(stream.head().0, 200);
        let endpoint = stream.until("data:");
        SseClient {
            proxy,
            stream,
            endpoint,
        }
    }

    pub fn say(&self, body: &str) {
        let headers = [("content-type", "application/json")];
        let (address, endpoint) = (&self.proxy.address, &self.endpoint);
        let answer = request(address, "POST", endpoint, &headers, body.as_bytes());
        assert_eq!(answer.status, 202, "{answer:?}");
    }

    /// A message, and what comes next on the stream.
    pub fn round(&mut self, body: &str) -> String {
        self.say(body);
        self.stream.until("data:")
    }

    /// The next message on the stream.
    pub fn hear(&mut self) -> String {
        self.stream.until("data:").trim().to_owned()
    }

    /// The next that has not this word.
    pub fn hear_without(&mut self, word: &str) -> String {
        loop {
            let heard = self.stream.until("data:");
            if !heard.contains(word) {
                return heard;
            }
        }
    }
}

#[test]
fn a_live_session_from_sse_to_sse_takes_one() {
    let server = ListeningProgram::proxy("sse", &DEMO);
    let house = TestHome::new();
    let url = server.url();
    let proxy = before(&house, "sse", &["--transport", "sse", "--target-url", &url]);
    let mut client = SseClient::connect(&proxy);
    client.round(INITIALIZE);
    client.say(INITIALIZED);
    assert!(client.round(CALL).contains("hi"));
    let replayed = replay(&house, "sequence=4");
    assert_eq!(replayed["raw"]["result"]["content"][0]["text"], "hi");
    assert_eq!(replayed["conn"], "c1");
    // Progress does not reach the client, nor does a large answer.
    let words = ["replay", "sequence=4", "session=live"];
    let edit = format!("raw={COUNT}");
    let counted = house.ctl(&[&words[..], &[&edit]].concat());
    assert_eq!(counted["raw"]["result"]["content"][0]["text"], "Lift-off!");
    let edit = CALL.replace("hi", &"y".repeat(100_000));
    let params = json!({"sequence": 4, "session": "live", "raw": edit}).to_string();
    let large = house.ctl_with(&["replay", "-"], &params);
    assert!(large["answer"].is_u64(), "{large}");
    // An answer that a rule or a viewer drops ends the replay, and not the client's stream.
    house.ctl(&["breakpoints.add", "filter=isError", "hits=1"]);
    std::thread::scope(|scope| {
        let refused = scope.spawn(|| house.refused(&words));
        let hold = house.held();
        house.ctl(&["hold.resolve", &format!("hold={hold}"), "action=drop"]);
        let refused = refused.join().unwrap();
        assert_eq!(refused["code"], -31104, "{refused}");
        assert_eq!(refused["data"]["reason"], "unanswered", "{refused}");
    });
    client.say(PING);
    loop {
        let heard = client.stream.until("data:");
        // What the server logged because of it cannot be told apart.
        if heard.contains("notifications/message") {
            continue;
        }
        assert!(heard.contains(r#""id":7"#), "{heard}");
        break;
    }
    drop(client);
    until("the end of its stream is seen", || {
        let answer = house.run(&[&["ctl"], &words[..]].concat());
        let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
        answer["error"]["data"]["reason"] == "not_live"
    });
}

#[test]
fn so_many_replays_may_be_under_way_and_no_more() {
    let house = TestHome::new();
    let mut run = called(&house, &[]);
    // The answers are held, so no replay ends.
    let filter = "filter=mcp-proxy-replay";
    house.ctl(&["breakpoints.add", filter, "direction=server_to_client"]);
    let words = ["replay", "sequence=4", "session=live"];
    std::thread::scope(|scope| {
        let under_way: Vec<_> = (0..4).map(|_| scope.spawn(|| house.ctl(&words))).collect();
        until("all four are answered and held", || {
            let held = house.ctl(&["intercept.get"])["held"].clone();
            held.as_array().unwrap().len() == 4
        });
        for session in ["session=live", "session=fresh"] {
            let refused = house.refused(&["replay", "sequence=4", session]);
            assert_eq!(refused["code"], -31104, "{refused}");
            assert_eq!(refused["data"]["reason"], "limit", "{refused}");
        }
        house.ctl(&["continue"]);
        let answers: Vec<_> = under_way.into_iter().map(|it| it.join().unwrap()).collect();
        for replayed in &answers {
            linked(&house, replayed);
        }
    });
    assert!(run.round(PING).contains(r#""id":7"#));
}
