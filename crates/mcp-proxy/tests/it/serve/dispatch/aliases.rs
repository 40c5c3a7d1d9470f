//! The names that the feature has elsewhere, as flags and as keys of a config file.

use serde_json::{Value, json};

use super::super::test_hub::{TestHub, demo};
use super::{answer, text};

/// Checks that each name has had its effect.
fn check(hub: &TestHub) {
    // mcpproxy
    assert_eq!(hub.tool_names(), ["proxy-dispatch"]);
    // useutils
    let status = answer(&hub.dispatch(&json!({"action": "status"})));
    let connections = status["connections"].as_array().unwrap().iter();
    let names: Vec<&str> = connections
        .map(|connection| connection["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["demo", "time", "files"]);
    // mcplazy
    assert!(!hub.is_ready("demo"), "{:?}", hub.states());
    let echo = json!({"action": "call", "tool": "echo", "connection": "demo", "arguments": {"message": "hi"}});
    assert_eq!(text(&hub.dispatch(&echo)), "hi");
    // toolcachettl: the chance of the same dice is nil. That they may be kept is known once the tool is listed.
    hub.until("the server is up", |hub| hub.is_ready("demo"));
    let roll = json!({"action": "call", "connection": "demo", "tool": "roll_dice",
        "arguments": {"count": 20, "sides": 1000}, "resultSizeThreshold": 0});
    assert_eq!(text(&hub.dispatch(&roll)), text(&hub.dispatch(&roll)));
    let mut again = roll.clone();
    again["meta"] = json!({"mcp-proxy/no-cache": true});
    assert_ne!(text(&hub.dispatch(&roll)), text(&hub.dispatch(&again)));
    // mcpproxythreshold and mcpproxytoon
    let rows: Vec<Value> = (1..=20)
        .map(|id| json!({"id": id, "even": id % 2 == 0}))
        .collect();
    let message = json!(rows).to_string();
    let echo = json!({"action": "call", "tool": "echo", "arguments": {"message": message}});
    let facts = hub.dispatch(&echo)["_meta"]["mcp-proxy/dispatch"].clone();
    assert_eq!(facts["autoSpilled"], true, "{facts}");
    assert_eq!(facts["resultFormat"], "toon");
    let message = "x".repeat(40);
    let echo = json!({"action": "call", "tool": "echo", "arguments": {"message": message}});
    let facts = hub.dispatch(&echo)["_meta"]["mcp-proxy/dispatch"].clone();
    assert!(facts.get("resultFile").is_none(), "{facts}");
}

#[test]
fn as_flags() {
    let config = json!({"mcpServers": {"demo": demo()}});
    let words =
        "--mcpproxy --mcplazy --mcpproxythreshold 100 --mcpproxytoon --useutils --toolcachettl 5s";
    let flags: Vec<&str> = words.split(' ').collect();
    check(&TestHub::start(&config, &flags));
}

#[test]
fn as_keys() {
    let options = json!({"mcpproxy": true, "mcplazy": true, "mcpproxythreshold": 100, "mcpproxytoon": true,
        "useutils": true, "toolcachettl": "5s"});
    let config = json!({"mcpServers": {"demo": demo()}, "mcp-proxy": options});
    check(&TestHub::start(&config, &[]));
}

#[test]
fn our_names_mean_the_same() {
    let options = json!({"expose": "dispatch", "start": "lazy", "spill-threshold": "100", "spill-toon": true,
        "builtins": true, "cache-ttl": "5s"});
    let config = json!({"mcpServers": {"demo": demo()}, "mcp-proxy": options});
    check(&TestHub::start(&config, &[]));
}

#[test]
fn flags_win_over_keys() {
    let options = json!({"mcpproxy": true, "mcpproxythreshold": 1, "useutils": true});
    let config = json!({"mcpServers": {"demo": demo()}, "mcp-proxy": options});
    let flags = [
        "--expose",
        "dispatch",
        "--spill-threshold",
        "0",
        "--builtins=false",
    ];
    let hub = TestHub::start(&config, &flags);
    let status = answer(&hub.dispatch(&json!({"action": "status"})));
    assert_eq!(status["totalConnections"], 1, "{status}");
    let echo = json!({"action": "call", "tool": "echo", "arguments": {"message": "hi"}});
    assert_eq!(text(&hub.dispatch(&echo)), "hi");
}
