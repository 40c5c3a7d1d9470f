//! `refresh`, and servers that start when they are first used.

use serde_json::json;

use super::super::test_hub::{TestHub, demo, time};
use super::{answer, refusal, start, text};

/// A server that lists the tools in the file `tools` of its folder, and announces no change.
const SERVER: &str = r#"
say() { echo '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
while read -r line; do
  id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case $line in
  *'"initialize"'*) say '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
  *'"tools/list"'*) say "{\"tools\":$(cat "$1/tools")}" ;;
  *'"tools/call"'*) say '{"content":[{"type":"text","text":"done"}]}' ;;
  esac
done
"#;

#[test]
fn refresh_asks_servers_for_their_tools_again() {
    let folder = tempfile::tempdir().unwrap();
    let write = |names: &[&str]| {
        let tools = names
            .iter()
            .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
        let tools = serde_json::Value::from_iter(tools).to_string();
        std::fs::write(folder.path().join("tools"), tools).unwrap();
    };
    write(&["paint"]);
    let entry =
        json!({"command": "sh", "args": ["-c", SERVER, "server", folder.path().to_str().unwrap()]});
    let config = json!({"mcpServers": {"changing": entry, "clock": time()}});
    let hub = TestHub::start(&config, &["--expose", "dispatch"]);
    let call = json!({"action": "call", "tool": "paint"});
    assert_eq!(text(&hub.dispatch(&call)), "done");

    write(&["paint", "varnish"]);
    let search = json!({"action": "search", "format": "compact", "query": "varnish"});
    assert_eq!(answer(&hub.dispatch(&search))["totalMatches"], 0);
    let list =
        json!({"action": "list", "format": "compact", "connection": "changing", "refresh": true});
    let listed = answer(&hub.dispatch(&list));
    let tools = listed["connections"][0]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 2, "{listed}");
    assert_eq!(answer(&hub.dispatch(&search))["totalMatches"], 1);

    write(&["varnish", "frame"]);
    let call = json!({"action": "call", "tool": "frame", "refresh": true});
    assert_eq!(text(&hub.dispatch(&call)), "done");
    let gone = json!({"action": "call", "tool": "paint"});
    assert_eq!(refusal(&hub.dispatch(&gone)).0, "not-found");
}

#[test]
fn a_lazy_server_starts_with_its_first_use() {
    let config = json!({"mcpServers": {"demo": demo()}});
    let hub = TestHub::start(&config, &["--expose", "dispatch", "--lazy"]);
    assert_ne!(hub.states()[0].1, "ready");
    let listed = answer(&hub.dispatch(&json!({"action": "list", "format": "compact"})));
    assert_eq!(listed["totalConnections"], 1);
    let call = json!({"action": "call", "tool": "echo", "connection": "demo", "arguments": {"message": "hi"}});
    assert_eq!(text(&hub.dispatch(&call)), "hi");
    assert!(hub.is_ready("demo"));
}

#[test]
fn lazy_servers_can_be_found_in_a_first_run() {
    let config = json!({"mcpServers": {"demo": demo()}});
    for first in [
        json!({"action": "list", "format": "compact"}),
        json!({"action": "search", "format": "compact", "query": "current time"}),
        json!({"action": "call", "tool": "get_current_time", "arguments": {"timezone": "UTC"}}),
    ] {
        let words = ["--mcpproxy", "--mcplazy", "--useutils"];
        let hub = TestHub::start(&config, &words);
        let result = hub.dispatch(&first);
        assert_eq!(result["isError"], false, "{first}: {result}");
        let search =
            json!({"action": "search", "format": "compact", "query": "current time", "limit": 1});
        let found = answer(&hub.dispatch(&search));
        assert_eq!(found["results"][0]["name"], "get_current_time", "{found}");
        assert!(found.get("serversNotReady").is_none(), "{found}");
        let status = answer(&hub.dispatch(&json!({"action": "status"})));
        for connection in status["connections"].as_array().unwrap() {
            assert!(connection.get("lastError").is_none(), "{status}");
            assert!(connection["toolCount"].as_u64() > Some(0), "{status}");
        }
    }
}

#[test]
fn refresh_starts_lazy_servers() {
    let config = json!({"mcpServers": {"demo": demo()}});
    let hub = TestHub::start(&config, &["--expose", "dispatch", "--lazy"]);
    let list = json!({"action": "list", "format": "compact", "refresh": true});
    let listed = answer(&hub.dispatch(&list));
    assert_eq!(
        listed["connections"][0]["tools"].as_array().unwrap().len(),
        5
    );
    assert!(hub.is_ready("demo"));
}

#[test]
fn a_call_may_come_while_its_server_starts() {
    let hub = start(&[]);
    let call = json!({"action": "call", "tool": "echo", "arguments": {"message": "hi"}});
    assert_eq!(text(&hub.dispatch(&call)), "hi");
}
