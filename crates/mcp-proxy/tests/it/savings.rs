//! `savings`: what exposures cost, by real servers and by records.

use serde_json::{Value, json};

use crate::records::sample::TestStore;
use crate::serve::test_hub::{TestHub, demo, time};

fn place(config: &Value) -> TestStore {
    let place = TestStore::new();
    std::fs::write(place.path("mcp.json"), config.to_string()).unwrap();
    place
}

fn json_of(place: &TestStore, words: &[&str]) -> Value {
    serde_json::from_str(&place.print(words)).unwrap()
}

/// The row of an exposure without pinned tools.
fn exposure<'a>(report: &'a Value, expose: &[&str]) -> &'a Value {
    let rows = report["exposures"].as_array().unwrap();
    let found = rows
        .iter()
        .find(|row| row["expose"] == json!(expose) && row["pinned"] == 0);
    found.unwrap()
}

/// A list of two tools, a small result and a large one.
fn write_record(place: &TestStore) {
    let mut sample = place.sample();
    let list = sample.client(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let tools = json!({"tools": [
        {"name": "read_file", "description": "Read a file and return its text", "inputSchema": schema},
        {"name": "write_file", "description": "Write a text to a file", "inputSchema": schema},
    ]});
    sample.result(1, list, &tools.to_string());
    for (id, length) in [(2, 100), (3, 30_000)] {
        let call = sample.call(id, "read_file", r#"{"path":"a.txt"}"#);
        let result = json!({"content": [{"type": "text", "text": "x".repeat(length)}]});
        sample.result(id, call, &result.to_string());
    }
    sample.end();
}

#[test]
fn few_tools_are_best_listed_directly() {
    let place = place(&json!({"mcpServers": {"time": time()}}));
    insta::assert_snapshot!(
        "savings-direct",
        place.print(&["savings", "--config", "mcp.json"])
    );
}

#[test]
fn servers_are_measured_with_their_pinned_tools() {
    let pinned = json!({"mcp-proxy": {"builtin": "demo", "pin": ["add"]}});
    let place = place(&json!({"mcpServers": {"time": time(), "demo": pinned}}));
    let words = ["savings", "--config", "mcp.json"];
    insta::assert_snapshot!("savings-servers", place.print(&words));
    let report = json_of(&place, &[&words[..], &["--json"]].concat());
    insta::assert_snapshot!(
        "savings-servers-json",
        serde_json::to_string_pretty(&report).unwrap()
    );
}

#[test]
fn the_figures_are_those_of_a_real_list() {
    let config = json!({"mcpServers": {"time": time()}});
    let place = place(&config);
    let report = json_of(&place, &["savings", "--config", "mcp.json", "--json"]);
    for expose in [
        &["all"][..],
        &["proxy"],
        &["dispatch"],
        &["all", "proxy"],
        &["proxy", "dispatch"],
        &["all", "proxy", "dispatch"],
    ] {
        let hub = TestHub::start(&config, &["--expose", &expose.join(",")]);
        hub.until("the server is up", |hub| hub.is_ready("time"));
        let listed = hub.answer_text("tools/list", &json!({}));
        let tools = listed.split_once(r#""tools":"#).unwrap().1;
        let tools = tools.strip_suffix("}}").unwrap();
        let measured = exposure(&report, expose);
        assert_eq!(measured["bytes"], tools.len(), "{expose:?}");
    }
}

#[test]
fn a_server_that_fails_is_named_and_the_others_are_measured() {
    let broken = json!({"command": "/no/such/program"});
    let servers = place(&json!({"mcpServers": {"time": time(), "broken": broken}}));
    let report = json_of(&servers, &["savings", "--config", "mcp.json", "--json"]);
    let states: Vec<_> = (0..2).map(|at| &report["servers"][at]["state"]).collect();
    assert_eq!(states, ["ready", "failed"]);
    assert!(report["servers"][1]["error"].is_string());
    assert_eq!(report["tools"], 2);

    let nothing = place(&json!({"mcpServers": {"broken": broken}}));
    let ran = nothing.run(&["savings", "--config", "mcp.json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    insta::assert_snapshot!("savings-failed", ran.stdout);
}

#[test]
fn tools_that_are_filtered_out_are_not_counted() {
    let filtered = json!({"mcp-proxy": {"builtin": "time", "deny": ["convert_time"]}});
    let place = place(&json!({"mcpServers": {"time": filtered, "demo": demo()}}));
    let words = ["savings", "--config", "mcp.json", "--json"];
    let report = json_of(&place, &words);
    assert_eq!(report["servers"][0]["tools"], 1);
    let sum: u64 = (0..2)
        .filter_map(|at| report["servers"][at]["tools"].as_u64())
        .sum();
    assert_eq!(report["tools"], sum);
}

#[test]
fn a_silent_server_is_given_up() {
    let silent = json!({"command": "sleep", "args": ["600"]});
    let place = place(&json!({"mcpServers": {"silent": silent}}));
    let words = ["savings", "--config", "mcp.json", "--timeout", "200ms"];
    let ran = place.run(&[&words[..], &["--json"]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["servers"][0]["state"], "failed");
}

#[test]
fn a_lazy_server_is_started_for_its_definitions() {
    let lazy = json!({"mcp-proxy": {"builtin": "time", "start": "lazy"}});
    let place = place(&json!({"mcpServers": {"time": lazy}}));
    let report = json_of(&place, &["savings", "--config", "mcp.json", "--json"]);
    assert_eq!(report["servers"][0]["tools"], 2);
}

#[test]
fn a_record_has_definitions_and_results() {
    let place = TestStore::new();
    write_record(&place);
    insta::assert_snapshot!("savings-record", place.print(&["savings", "session.jsonl"]));
    let report = json_of(&place, &["savings", "session.jsonl", "--json"]);
    assert_eq!(report["definitions_from"], "record");
    let record = &report["record"];
    assert_eq!(
        (&record["calls"], &record["tools_used"]),
        (&json!(2), &json!(1))
    );
    let above: Vec<_> = (0..2).map(|at| &record["spill"][at]["results"]).collect();
    assert_eq!(above, [1, 0]);
    let kept_out = record["spill"][0]["kept_out"]["bytes"].as_u64().unwrap();
    let exposed = record["exposed_calls"].as_array().unwrap();
    let modes: Vec<_> = exposed.iter().map(|row| &row["expose"]).collect();
    assert_eq!(modes, ["all", "proxy", "dispatch"]);
    let bytes: Vec<_> = exposed.iter().map(|row| row["bytes"].as_u64()).collect();
    assert!(bytes[0] < bytes[1] && bytes[0] < bytes[2], "{exposed:?}");
    assert!(exposed.iter().all(|row| row["calls"] == 2));
    // All of the large result but a preview.
    assert!((28_000..30_000).contains(&kept_out), "{kept_out}");
}

#[test]
fn a_record_and_servers_go_together() {
    let place = place(&json!({"mcpServers": {"time": time()}}));
    write_record(&place);
    let words = ["savings", "--config", "mcp.json", "session.jsonl", "--json"];
    let report = json_of(&place, &words);
    assert_eq!(report["definitions_from"], "servers");
    assert_eq!(
        (&report["tools"], &report["record"]["calls"]),
        (&json!(2), &json!(2))
    );
}

#[test]
fn a_record_of_the_hub_counts_calls_once_and_knows_its_servers() {
    let hub = TestHub::start(
        &json!({"mcpServers": {"demo": demo(), "time": time()}}),
        &[],
    );
    hub.until("the servers are up", |hub| {
        hub.is_ready("demo") && hub.is_ready("time")
    });
    assert_eq!(hub.tool_names(), ["proxy"]);
    hub.proxy(
        &json!({"action": "call", "type": "tool", "path": "demo_add", "args": {"a": 2, "b": 3}}),
    );
    hub.program.end("-TERM");
    let output = hub.home.run(&["savings", "LAST", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let record = &report["record"];
    assert_eq!(
        (&record["calls"], &record["tools_used"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(record["tools_list"]["count"], 1);
    // What the client was listed is what `proxy` alone costs, in a result, and with what each server says about itself,
    // which is not in the lists.
    let listed = record["tools_list"]["bytes"].as_u64().unwrap();
    let proxy = exposure(&report, &["proxy"])["bytes"].as_u64().unwrap();
    let about = listed - (proxy + r#"{"tools":}"#.len() as u64);
    assert!(about < 200, "{about}");
    assert!(report["tools"].as_u64().unwrap() > 2);
}

#[test]
fn a_record_without_lists_and_calls_says_so() {
    let place = TestStore::new();
    let mut sample = place.sample();
    sample.client(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    sample.end();
    insta::assert_snapshot!(
        "savings-empty-record",
        place.print(&["savings", "session.jsonl"])
    );
}

#[test]
fn mistakes_are_named() {
    let place = TestStore::new();
    std::fs::write(place.path("not-json.json"), "{").unwrap();
    std::fs::write(place.path("empty.json"), r#"{"mcpServers": {}}"#).unwrap();
    let cases = [
        (&["savings", "none.jsonl"][..], 1),
        (&["savings", "not-json.json"], 1),
        (&["savings", "--config", "none.json"], 2),
        (&["savings", "--config", "not-json.json"], 2),
        (&["savings", "--config", "empty.json"], 2),
        (&["savings", "--server", "nonsense"], 2),
        (&["savings", "--expose", "all"], 2),
        (&["savings", "--timeout", "soon"], 2),
    ];
    let told = cases.map(|(words, code)| {
        let text = place.fail(words, code);
        format!("$ mcp-proxy {}\n{text}", words.join(" "))
    });
    insta::assert_snapshot!("savings-mistakes", told.join("\n"));
}
