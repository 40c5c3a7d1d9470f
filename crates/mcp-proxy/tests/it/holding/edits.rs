//! Edits that change whom a message belongs to: before a server of another kind the client's POST ends all the same.

use serde_json::{Value, json};

use super::DEMO;
use crate::control::test_home::TestHome;
use crate::programs::{HttpAnswer, ListeningProgram};

struct EditClient {
    house: TestHome,
    proxy: ListeningProgram,
    headers: Vec<(&'static str, String)>,
    meta: Value,
}

impl EditClient {
    fn legacy() -> EditClient {
        let mut client = EditClient::new();
        let session = client.proxy.session();
        client.headers = vec![("mcp-session-id", session)];
        client
    }

    fn modern() -> EditClient {
        let mut client = EditClient::new();
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "echo"),
        ];
        client.headers = headers.map(|(name, value)| (name, value.to_owned())).into();
        client.meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        });
        client
    }

    fn new() -> EditClient {
        let house = TestHome::new();
        let words = ["proxy", "--listen", "http", "--listen-port", "0"];
        let proxy = ListeningProgram::start_with(&[&words[..], &DEMO].concat(), &house.env());
        EditClient {
            house,
            proxy,
            headers: Vec::new(),
            meta: json!({}),
        }
    }

    fn call(&self, id: &Value, message: &str) -> Value {
        let arguments = json!({"message": message});
        let params = json!({"name": "echo", "arguments": arguments, "_meta": self.meta});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    }

    /// What a POST is answered with, if this is decided about what the breakpoint holds.
    fn decided(&self, filter: &str, body: &Value, decision: &[&str]) -> HttpAnswer {
        self.house
            .ctl(&["breakpoints.add", &format!("filter={filter}"), "hits=1"]);
        let headers: Vec<_> = self
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| self.proxy.post(&headers, &body.to_string()));
            let hold = format!("hold={}", self.house.held());
            let words = [&["hold.resolve", &hold], decision].concat();
            self.house.ctl(&words);
            asked.join().unwrap()
        })
    }
}

const REQUEST: &str = r#".kind=="request""#;
const ANSWER: &str = r#".kind=="response""#;

#[test]
fn the_post_ends_whatever_the_message_has_become() {
    for client in [EditClient::legacy(), EditClient::modern()] {
        let ask = |id: u32| client.call(&json!(id), "hi");
        let other = format!("raw={}", client.call(&json!("other"), "ho"));
        let answer = client.decided(REQUEST, &ask(1), &["action=modify", &other]);
        assert_eq!(answer.status, 200);
        let text = answer.text();
        assert!(
            text.contains(r#""id":"other""#) && text.contains("ho"),
            "{text}"
        );
        let note = r#"raw={"jsonrpc":"2.0","method":"notifications/n"}"#;
        let answer = client.decided(REQUEST, &ask(2), &["action=modify", note]);
        assert_eq!((answer.status, answer.text()), (202, String::new()));
        // And what the answer has become.
        let other = r#"raw={"jsonrpc":"2.0","id":98,"result":{}}"#;
        let answer = client.decided(ANSWER, &ask(4), &["action=modify", other]);
        assert_eq!(answer.text(), other.strip_prefix("raw=").unwrap());
        let page = ["action=modify", "raw_text=<html>", "as_is=true"];
        let answer = client.decided(ANSWER, &ask(5), &page);
        assert_eq!((answer.status, answer.text()), (200, "<html>".to_owned()));
        // The session goes on, and in the record the answer belongs to the request that went on.
        let rows = client.house.ctl(&["get", "limit=1000"])["rows"].clone();
        let rows = rows.as_array().unwrap();
        let changed = rows.iter().find(|row| row["modified"] == true).unwrap();
        let is_answer = |row: &&Value| row["answers"] == changed["sequence"];
        assert_eq!(rows.iter().filter(is_answer).count(), 1, "{rows:?}");
        let broken = ["action=modify", "raw_text={\"a\":", "as_is=true"];
        let answer = client.decided(REQUEST, &ask(3), &broken);
        assert_eq!((answer.status, answer.text()), (202, String::new()));
    }
}

#[test]
fn a_batch_with_requests_is_dropped_as_a_request() {
    let client = EditClient::legacy();
    let batch = json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 2, "method": "ping"}]);
    let is_batch = r#".kind=="batch""#;
    let answer = client.decided(is_batch, &batch, &["action=drop"]);
    assert_eq!((answer.status, answer.text()), (502, String::new()));
    let error = ["action=error", "code=-5", "message=no"];
    let answer = client.decided(is_batch, &batch, &error);
    assert_eq!(answer.text().matches(r#""code":-5"#).count(), 2);
}
