//! `--memory-budget`: what clients leave unread or half sent.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::{Value, json};

use super::test_hub::TestHub;
use crate::control::test_home::TestHome;
use crate::programs::{INITIALIZE, request};

const MIB: usize = 1 << 20;

/// Its tool `large` answers with 16 MiB, and `half` never ends its answer of as many.
const LARGE: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"large","version":"1"}}}\n' "$id";;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"large","inputSchema":{"type":"object"}},{"name":"half","inputSchema":{"type":"object"}}]}}\n' "$id";;
    *'"tools/call"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"
      head -c 16777216 /dev/zero | tr '\0' x
      case "$line" in *half*) ;; *) printf '"}]}}\n';; esac;;
    *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
  esac
done
"#;

/// A hub with room for 40 MiB.
fn hub() -> TestHub {
    hub_of(&["large"])
}

/// The same with these servers.
fn hub_of(names: &[&str]) -> TestHub {
    let server = |name: &&str| {
        let server = json!({"command": "sh", "args": ["-c", LARGE]});
        ((*name).to_owned(), server)
    };
    let servers: serde_json::Map<_, _> = names.iter().map(server).collect();
    let servers = json!({"mcpServers": servers});
    let flags = ["--expose", "all", "--no-record", "--memory-budget", "40M"];
    let hub = TestHub::start_in(TestHome::new(), &servers, &flags);
    hub.until("the servers are up", |hub| {
        names.iter().all(|name| hub.is_ready(name))
    });
    hub
}

fn load(hub: &TestHub, what: &str) -> usize {
    let status = hub.home.run(&["status", "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert!(status["hub"]["memory_budget"] == 40 * MIB, "{status}");
    let count = status["hub"][what].as_u64().unwrap();
    usize::try_from(count).unwrap()
}

/// A POST whose body has this length, of which this much is sent.
fn post(hub: &TestHub, session: &str, length: usize, sent: &[u8]) -> TcpStream {
    let address = &hub.program.address;
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\nmcp-session-id: {session}\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(sent).unwrap();
    stream
}

#[test]
fn a5_answers_that_nobody_reads_stay_within_the_budget() {
    let hub = hub();
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"large_large","arguments":{}}}"#;
    let unread = |_| post(&hub, &hub.program.session(), call.len(), call.as_bytes());
    let unread: Vec<TcpStream> = (0..8).map(unread).collect();
    hub.until("answers are refused", |hub| load(hub, "memory_refused") > 0);
    assert!(load(&hub, "memory_used") <= 40 * MIB);
    drop(unread);
    hub.until("the room is free again", |hub| {
        load(hub, "memory_used") < MIB
    });
}

#[test]
fn a5_answers_that_do_not_end_stay_within_the_budget() {
    let hub = hub_of(&["a", "b", "c"]);
    let half = |server: &str| json!({"name": format!("{server}_half"), "arguments": {}});
    let unfinished = ["a", "b"].map(|server| {
        let call =
            json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": half(server)});
        let call = call.to_string();
        post(&hub, &hub.program.session(), call.len(), call.as_bytes())
    });
    hub.until("they are read", |hub| load(hub, "memory_used") >= 32 * MIB);
    let answer = hub.answer_in(&hub.session, "tools/call", &half("c"));
    assert_eq!(answer["error"]["code"], -31015, "{answer}");
    assert!(load(&hub, "memory_refused") == 1);
    // What is small enough still finds room.
    let answer = hub.answer_in(&hub.session, "ping", &json!({}));
    assert!(answer.get("result").is_some(), "{answer}");
    drop(unfinished);
}

#[test]
fn a5_bodies_that_do_not_end_stay_within_the_budget() {
    let hub = hub();
    let half = vec![b' '; 12 * MIB];
    let halves: Vec<TcpStream> = (0..3)
        .map(|_| post(&hub, &hub.session, 20 * MIB, &half))
        .collect();
    hub.until("they fill it", |hub| load(hub, "memory_used") >= 36 * MIB);
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let answer = request(&hub.program.address, "POST", "/mcp", &headers, &half);
    let error: Value = serde_json::from_str(&answer.text()).unwrap();
    assert_eq!(
        (answer.status, &error["error"]["code"]),
        (503, &json!(-31015))
    );
    // What is small enough still finds room.
    let answer = request(
        &hub.program.address,
        "POST",
        "/mcp",
        &headers,
        INITIALIZE.as_bytes(),
    );
    assert_eq!(answer.status, 200);
    drop(halves);
    hub.until("the room is free again", |hub| {
        load(hub, "memory_used") < MIB
    });
}
