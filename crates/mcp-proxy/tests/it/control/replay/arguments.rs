//! Arguments that a server wants in headers, where somebody speaks to it who never saw its tools listed.

use serde_json::{Value, json};

use crate::control::test_home::TestHome;
use crate::programs::ListeningProgram;

fn modern(method: &str, mut params: Value) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    params["_meta"] = meta;
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

fn add(unit: &str) -> String {
    let arguments = json!({"a": 1, "b": 2, "unit": unit});
    modern("tools/call", json!({"name": "add", "arguments": arguments}))
}

fn post(proxy: &ListeningProgram, body: &str, more: &[(&str, &str)]) -> u16 {
    let version = [("mcp-protocol-version", "2026-07-28")];
    let answer = proxy.post(&[&version, more].concat(), body);
    answer.status
}

/// The demo server compares the header with the body, as the specification wants.
#[test]
fn a_replay_on_a_fresh_session_says_them_too() {
    let server = ListeningProgram::demo();
    let url = server.url();
    let call = [
        ("mcp-method", "tools/call"),
        ("mcp-name", "add"),
        ("mcp-param-unit", "apples"),
    ];
    let list = [("mcp-method", "tools/list")];
    for listed in [true, false] {
        let house = TestHome::new();
        let words = ["proxy", "--listen", "http", "--listen-port", "0"];
        let target = ["--transport", "streamable-http", "--target-url", &url];
        let proxy = ListeningProgram::start_with(&[&words[..], &target].concat(), &house.env());
        if listed {
            assert_eq!(post(&proxy, &modern("tools/list", json!({})), &list), 200);
        }
        assert_eq!(post(&proxy, &add("apples"), &call), 200);
        let rows = house.ctl(&["get"])["rows"].clone();
        let rows = rows.as_array().unwrap();
        let called = rows.iter().find(|row| row["method"] == "tools/call");
        let sequence = format!("sequence={}", called.unwrap()["sequence"]);
        let edit = format!("raw={}", add("pears"));
        for (words, unit) in [(vec![], "apples"), (vec![edit.as_str()], "pears")] {
            let replayed = house.ctl(&[&["replay", &sequence], &words[..]].concat());
            let sum = &replayed["raw"]["result"]["structuredContent"];
            assert_eq!(*sum, json!({"sum": 3.0, "unit": unit}), "{replayed}");
        }
        drop(proxy);
        let record = house.path("played.jsonl");
        std::fs::write(&record, house.record()).unwrap();
        let played = house.run(&[
            "replay",
            record.to_str().unwrap(),
            "--filter",
            "add",
            "--connection",
            "1",
            "--no-record",
            "--json",
            "--transport",
            "streamable-http",
            "--target-url",
            &url,
        ]);
        let text = String::from_utf8_lossy(&played.stdout);
        let outcomes: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(outcomes.len(), 1, "{played:?}");
        assert_eq!(outcomes[0]["verdict"], "same", "{played:?}");
    }
}
