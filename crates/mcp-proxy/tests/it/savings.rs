//! `savings`: what exposures cost, by real servers.

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

#[test]
fn the_table_compares_each_exposure_with_direct_listing() {
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
fn mistakes_are_named() {
    let place = TestStore::new();
    std::fs::write(place.path("not-json.json"), "{").unwrap();
    std::fs::write(place.path("empty.json"), r#"{"mcpServers": {}}"#).unwrap();
    let cases = [
        (&["savings", "record.jsonl"][..], 2),
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
