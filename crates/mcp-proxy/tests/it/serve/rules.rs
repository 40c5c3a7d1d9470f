//! Rules and replays where there are several servers.

use serde_json::{Value, json};

use super::test_hub::{TestHub, demo};

fn two_demos(flags: &[&str]) -> TestHub {
    let servers = json!({"mcpServers": {"a": demo(), "b": demo()}});
    let hub = TestHub::start(&servers, &[&["--expose", "all"], flags].concat());
    hub.until("the servers are up", |hub| {
        let names = hub.tool_names();
        ["a_add", "b_add"]
            .iter()
            .all(|name| names.iter().any(|known| known == name))
    });
    hub
}

#[test]
fn a_rule_is_for_the_server_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.toml");
    let text =
        "[[rule]]\nserver = \"b\"\ntool = \"add\"\nerror = { code = -32050, message = \"no\" }\n";
    std::fs::write(&rules, text).unwrap();
    let hub = two_demos(&["--rules", rules.to_str().unwrap()]);
    let add = |tool: &str| {
        let params = json!({"name": tool, "arguments": {"a": 1, "b": 2}});
        hub.answer("tools/call", &params)
    };
    assert_eq!(add("a_add")["result"]["structuredContent"]["sum"], 3.0);
    assert_eq!(add("b_add")["error"]["code"], -32050);
}

#[test]
fn a_clients_call_is_replayed_to_the_hub() {
    let hub = two_demos(&[]);
    let add = json!({"name": "b_add", "arguments": {"a": 1, "b": 2}});
    hub.ask("tools/call", &add);
    let rows = hub.home.ctl(&["get", "last=200"])["rows"].clone();
    let is_clients_call =
        |row: &&Value| row["server"] == "hub" && row["name"] == "b_add" && row["kind"] == "request";
    let row = rows.as_array().unwrap().iter().find(is_clients_call);
    let sequence = format!("sequence={}", row.unwrap()["sequence"]);
    let replayed = hub.home.ctl(&["replay", &sequence]);
    let sum = &replayed["raw"]["result"]["structuredContent"]["sum"];
    assert_eq!(*sum, 3.0, "{replayed}");
}
