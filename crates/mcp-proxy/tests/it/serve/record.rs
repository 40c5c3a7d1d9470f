//! The record of a hub: which server a message belongs to.

use serde_json::{Value, json};

use super::test_hub::{TestHub, demo, time};
use crate::control::test_home;

/// A call of each of the two servers, and then the end.
fn recorded() -> test_home::TestHome {
    let servers = json!({"mcpServers": {"a": demo(), "b": time()}});
    let hub = TestHub::start(&servers, &["--expose", "all"]);
    hub.until("the servers are up", |hub| {
        hub.is_ready("a") && hub.is_ready("b")
    });
    let add = json!({"name": "a_add", "arguments": {"a": 1, "b": 2}});
    assert_eq!(hub.ask("tools/call", &add)["structuredContent"]["sum"], 3.0);
    let now = json!({"name": "b_get_current_time", "arguments": {"timezone": "UTC"}});
    hub.ask("tools/call", &now);
    hub.program.end("-TERM");
    hub.home
}

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_filter_chooses_the_messages_of_one_server() {
    let home = recorded();
    let print = |words: &[&str]| test_home::ok(home.run(words));
    let all = lines(&print(&["inspect", "LAST", "--json"]));
    let opened = lines(&home.record())
        .into_iter()
        .filter(|line| line["kind"] == "open");
    let to_a: Vec<Value> = opened
        .filter(|line| line["server"]["name"] == "a")
        .map(|line| line["conn"].clone())
        .collect();
    let is_of_a = |line: &&Value| to_a.contains(&line["conn"]);
    let expected: Vec<&Value> = all.iter().filter(is_of_a).collect();
    let chosen = lines(&print(&["inspect", "LAST", "--json", r#".server == "a""#]));
    assert_eq!(chosen.iter().collect::<Vec<_>>(), expected);
    assert!(chosen.iter().all(|line| line["server"] == "a"));
    let calls = |server: &str| {
        let is_call = |line: &&Value| line["server"] == server && line["method"] == "tools/call";
        all.iter().filter(is_call).count()
    };
    assert_eq!([calls("hub"), calls("a"), calls("b")], [2, 1, 1]);

    let table = print(&["inspect", "LAST"]);
    let head = table.lines().find(|line| line.contains("conn "));
    assert!(head.unwrap().contains(" server "), "{table}");
    let of_a = print(&["export", "LAST", "--filter", r#".server == "a""#]);
    let exported: Value = serde_json::from_str(&of_a).unwrap();
    let messages = exported["messages"].as_array().unwrap();
    assert_eq!(messages.len(), expected.len());
    let told = &exported["metadata"]["proxy"];
    let server = |message: &Value| &told[message["sequence"].to_string()]["server"];
    assert!(messages.iter().all(|message| server(message) == "a"));
}
