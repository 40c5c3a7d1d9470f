//! A server that floods its clients with notifications.

use serde_json::{Value, json};

use super::test_hub::{TestHub, time};
use crate::programs::{OpenResponse, open};

/// Its tool `burst` logs [`NOISE`] times before it answers, and `twice` takes a break after half of them.
const NOISY: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"noisy","version":"1"}}}\n' "$id";;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"burst","inputSchema":{"type":"object"}},{"name":"twice","inputSchema":{"type":"object"}}]}}\n' "$id";;
    *'"tools/call"'*)
      padding=$(printf 'x%.0s' $(seq 500))
      noise='{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"noise'$padding'"}}'
      yes "$noise" | head -n 25000
      case "$line" in *twice*) sleep 2;; esac
      yes "$noise" | head -n 25000
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
    let stream = open_stream(&hub, &listening);
    for session in [&silent, &listening] {
        let answer = hub.answer_in(session, "tools/call", &burst);
        assert!(answer.get("result").is_some(), "{answer}");
    }
    let now = json!({"name": "time_get_current_time", "arguments": {"timezone": "UTC"}});
    for session in idle.iter().chain([&silent, &listening]) {
        let answer = hub.answer_in(session, "tools/call", &now);
        assert!(answer.get("result").is_some(), "{answer}");
    }
    let lost = lost(&hub);
    assert!((1..2 * NOISE).contains(&lost), "{lost}");
    drop((stream, streams));
}

const NOISE: u64 = 50_000;

/// How many notifications clients have lost, as `status` shows it.
fn lost(hub: &TestHub) -> u64 {
    let status = hub.home.run(&["status", "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    status["hub"]["lost_notifications"].as_u64().unwrap()
}

/// How many lost notifications this warning tells of.
fn told(warning: &str) -> u64 {
    let (_, count) = warning.split_once(r#""lost":"#).unwrap();
    count.split('}').next().unwrap().parse().unwrap()
}

#[test]
fn a2_a_client_is_told_of_every_notification_that_it_lost() {
    let servers = json!({"mcpServers": {"noisy": {"command": "sh", "args": ["-c", NOISY]}}});
    let hub = TestHub::start(&servers, &["--expose", "all", "--no-record"]);
    hub.until("the server is up", |hub| hub.is_ready("noisy"));
    let session = hub.program.session();
    let mut stream = open_stream(&hub, &session);
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-session-id", session.as_str()),
    ];
    let call = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"noisy_twice","arguments":{}}}"#;
    let address = &hub.program.address;
    let mut answer = open(address, "POST", "/mcp", &headers, call.as_bytes());
    // The hub gives the stream up during the break, and then what it loses are the messages behind it.
    hub.until("both halves lose some", |hub| lost(hub) > NOISE / 2);
    // Now the client reads. It is told on this stream, or on the other if this one has ended.
    let (mut received, mut told_of) = (0, 0);
    loop {
        let line = answer.line();
        if line.contains(r#""data":"noise"#) {
            received += 1;
        } else if let Some(warning) = line.strip_prefix(WARNING) {
            told_of += told(warning);
        } else if line.contains(r#""id":5"#) {
            break;
        }
    }
    while received + told_of < NOISE {
        told_of += told(&stream.until(WARNING));
    }
    assert_eq!((received + told_of, lost(&hub)), (NOISE, told_of));
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
