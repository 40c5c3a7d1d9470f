//! A server that floods its clients with notifications.

use serde_json::{Value, json};

use super::test_hub::{TestHub, time};
use crate::programs::{OpenResponse, open};

/// Its tool `burst` logs 50,000 times before it answers.
const NOISY: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"noisy","version":"1"}}}\n' "$id";;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"burst","inputSchema":{"type":"object"}}]}}\n' "$id";;
    *'"tools/call"'*)
      yes '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"noise"}}' | head -n 50000
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}\n' "$id";;
    *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
  esac
done
"#;

#[test]
fn a2_a_burst_of_log_messages_ends_no_session() {
    let servers = json!({"mcpServers": {
        "noisy": {"command": "sh", "args": ["-c", NOISY]},
        "time": time(),
    }});
    let hub = TestHub::start(&servers, &["--expose", "all", "--no-record"]);
    hub.until("the servers are up", |hub| {
        hub.is_ready("noisy") && hub.is_ready("time")
    });
    let idle: Vec<String> = (0..8).map(|_| hub.program.session()).collect();
    let streams = idle[..4].iter().map(|id| open_stream(&hub, id));
    let streams: Vec<OpenResponse> = streams.collect();
    let burst = json!({"name": "noisy_burst", "arguments": {}});
    let (silent, listening) = (hub.program.session(), hub.program.session());
    let mut stream = open_stream(&hub, &listening);
    // Once it has caught up, the client is told how much it has lost.
    let warned = std::thread::spawn(move || stream.until(WARNING));
    for session in [&silent, &listening] {
        let answer = hub.answer_in(session, "tools/call", &burst);
        assert!(answer.get("result").is_some(), "{answer}");
    }
    let warning = warned.join().unwrap();
    assert!(warning.contains(r#""lost":"#), "{warning}");
    let now = json!({"name": "time_get_current_time", "arguments": {"timezone": "UTC"}});
    for session in idle.iter().chain([&silent, &listening]) {
        let answer = hub.answer_in(session, "tools/call", &now);
        assert!(answer.get("result").is_some(), "{answer}");
    }
    let status = hub.home.run(&["status", "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let lost = status["hub"]["lost_notifications"].as_u64().unwrap();
    assert!((1..100_000).contains(&lost), "{status}");
    drop(streams);
}

const WARNING: &str =
    r#"data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning""#;

/// The GET stream of a session.
fn open_stream(hub: &TestHub, session: &str) -> OpenResponse {
    let headers = [("accept", "text/event-stream"), ("mcp-session-id", session)];
    let mut stream = open(&hub.program.address, "GET", "/mcp", &headers, b"");
    assert_eq!(stream.head().0, 200);
    stream
}
