//! What `proxy-dispatch` knows about servers: those that were never listed, that fail, and that were given other names.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_hub::config::StartMode;
use mcp_proxy_hub::{ServerNaming, ServerSettings};
use serde_json::{Value, json};

use crate::dispatch::{TOOLS, call_tool, dispatch, last};
use crate::transcript::{Transcript, server, settings};

fn lazy(name: &str) -> ServerSettings {
    ServerSettings {
        start: StartMode::Lazy,
        ..server(name)
    }
}

/// A hub in front of these servers, none of which has started, and a client.
fn unstarted(servers: Vec<ServerSettings>) -> Transcript {
    let mut hub = Transcript::new(settings(), servers);
    hub.client();
    hub.initialize(1, "{}");
    hub.take();
    hub
}

fn result_of(hub: &mut Transcript) -> Value {
    last(&hub.take(), "C1")["result"].clone()
}

/// Whether the client got a result.
fn is_answered(said: &str) -> bool {
    let mut lines = said.lines();
    lines.any(|line| line.starts_with("C1< ") && line.contains(r#""result":"#))
}

/// The JSON in the text of a result.
fn text_of(result: &Value) -> Value {
    serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
}

#[test]
fn the_first_list_or_search_starts_servers_that_were_never_listed() {
    for arguments in [
        json!({"action": "list", "format": "compact"}),
        json!({"action": "search", "format": "compact", "query": "read a file"}),
        json!({"action": "search", "format": "compact", "query": "read a file", "connection": "a"}),
    ] {
        let mut hub = unstarted(vec![lazy("a")]);
        hub.client_says(1, &dispatch(1, &arguments));
        let asked = hub.take();
        assert!(asked.contains("! dial"), "{asked}");
        assert!(!is_answered(&asked), "{asked}");
        hub.start_server(1, TOOLS);
        let answer = text_of(&result_of(&mut hub));
        assert!(answer.get("serversNotReady").is_none(), "{answer}");
        let found = match arguments["action"] == "list" {
            true => &answer["connections"][0]["tools"],
            false => &answer["results"],
        };
        assert_eq!(found[0]["name"], "read_file", "{answer}");
    }
}

#[test]
fn a_call_of_an_unknown_tool_starts_servers_that_were_never_listed() {
    let mut hub = unstarted(vec![lazy("a"), lazy("b")]);
    hub.client_says(
        1,
        &dispatch(1, &json!({"action": "call", "tool": "read_file"})),
    );
    hub.start_server(1, TOOLS);
    hub.start_server(2, "[]");
    assert_eq!(last(&hub.take(), "S1")["method"], "tools/call");
}

#[test]
fn only_the_selected_server_is_started() {
    let mut hub = unstarted(vec![lazy("a"), lazy("b")]);
    hub.client_says(
        1,
        &dispatch(
            1,
            &json!({"action": "list", "format": "compact", "connection": "b"}),
        ),
    );
    assert_eq!(hub.take().matches("! dial").count(), 1);
}

#[test]
fn status_and_reading_start_nothing() {
    let mut hub = unstarted(vec![lazy("a")]);
    hub.client_says(1, &dispatch(1, &json!({"action": "status"})));
    let said = hub.take();
    assert!(!said.contains("! dial"), "{said}");
    let status = text_of(&last(&said, "C1")["result"]);
    assert_eq!(status["connections"][0]["state"], "not-started", "{status}");
    assert!(status["connections"][0].get("lastError").is_none());
}

#[test]
fn answers_name_the_connections_that_are_missing_from_them() {
    let slow = ServerSettings {
        start_timeout: Duration::from_secs(30),
        ..lazy("slow")
    };
    let mut hub = unstarted(vec![lazy("a"), slow]);
    hub.client_says(
        1,
        &dispatch(
            1,
            &json!({"action": "search", "format": "compact", "query": "read a file"}),
        ),
    );
    hub.start_server(1, TOOLS);
    assert!(!is_answered(&hub.take()));
    hub.wait(Duration::from_secs(10));
    let found = text_of(&result_of(&mut hub));
    assert_eq!(found["results"][0]["name"], "read_file");
    let missing = json!([{"alias": "slow-alias", "name": "slow", "state": "starting"}]);
    assert_eq!(found["serversNotReady"], missing);

    // What fails is not waited for again, and its reason is told.
    hub.server_ends(2, "it crashed");
    hub.take();
    hub.client_says(
        1,
        &dispatch(2, &json!({"action": "list", "format": "compact"})),
    );
    let said = hub.take();
    assert!(!said.contains("! dial"), "{said}");
    let listed = text_of(&last(&said, "C1")["result"]);
    assert_eq!(listed["connections"][1]["lastError"], "it crashed");

    hub.client_says(1, &dispatch(3, &json!({"action": "call", "tool": "nope"})));
    let refused = result_of(&mut hub)["_meta"]["mcp-proxy/dispatch"].clone();
    assert_eq!(refused["code"], "not-found");
    assert_eq!(refused["serversNotReady"][0]["alias"], "slow-alias");
    hub.client_says(
        1,
        &dispatch(
            4,
            &json!({"action": "search", "format": "compact", "query": "file", "connection": "a"}),
        ),
    );
    assert!(
        text_of(&result_of(&mut hub))
            .get("serversNotReady")
            .is_none()
    );
}

#[test]
fn a_search_does_not_wait_long_for_a_slow_server_that_starts_by_itself_but_names_it() {
    let slow = ServerSettings {
        start_timeout: Duration::from_secs(60),
        ..server("slow")
    };
    let mut hub = unstarted(vec![server("a"), slow]);
    hub.start_server(1, TOOLS);
    hub.wait(Duration::from_secs(10));
    hub.take();
    hub.client_says(
        1,
        &dispatch(
            1,
            &json!({"action": "search", "format": "compact", "query": "read a file"}),
        ),
    );
    let found = text_of(&result_of(&mut hub));
    assert_eq!(found["results"][0]["name"], "read_file");
    assert_eq!(found["serversNotReady"][0]["state"], "starting");
}

#[test]
fn a_refresh_tells_why_a_server_failed() {
    let mut hub = unstarted(vec![lazy("a")]);
    hub.client_says(
        1,
        &dispatch(
            1,
            &json!({"action": "list", "format": "compact", "refresh": true}),
        ),
    );
    assert!(!is_answered(&hub.take()));
    hub.server_ends(1, "no such program");
    let listed = text_of(&result_of(&mut hub));
    assert_eq!(listed["connections"][0]["lastError"], "no such program");
}

#[test]
fn an_ambiguous_name_offers_the_aliases_of_connections() {
    let mut hub = unstarted(vec![server("a"), server("b")]);
    hub.start_server(1, TOOLS);
    hub.start_server(2, TOOLS);
    hub.take();
    hub.client_says(
        1,
        &dispatch(1, &json!({"action": "call", "tool": "read_file"})),
    );
    let refused = result_of(&mut hub)["_meta"]["mcp-proxy/dispatch"].clone();
    assert_eq!(refused["code"], "ambiguous");
    assert_eq!(refused["connections"], json!(["a-alias", "b-alias"]));
}

#[test]
fn a_renamed_tool_is_listed_found_and_called_by_its_new_name() {
    let renamed = |name: &str, new: &str| {
        let mut naming = ServerNaming::clone(&server(name).naming);
        naming.rename.insert("read_file".to_owned(), new.to_owned());
        ServerSettings {
            naming: Arc::new(naming),
            ..server(name)
        }
    };
    let mut hub = unstarted(vec![renamed("a", "peruse"), renamed("b", "skim")]);
    hub.start_server(1, TOOLS);
    hub.start_server(2, TOOLS);
    hub.take();
    hub.client_says(
        1,
        &dispatch(
            1,
            &json!({"action": "list", "format": "compact", "connection": "a"}),
        ),
    );
    let listed = text_of(&result_of(&mut hub));
    let tools = &listed["connections"][0]["tools"];
    assert_eq!(tools[0]["name"], "peruse");
    assert!(tools[0].get("public").is_none(), "{tools}");
    assert_eq!(tools[1]["public"], "a_write_file");

    hub.client_says(
        1,
        &dispatch(
            2,
            &json!({"action": "search", "format": "compact", "query": "skim", "limit": 1}),
        ),
    );
    let found = text_of(&result_of(&mut hub));
    assert_eq!(found["results"][0]["name"], "skim", "{found}");
    assert_eq!(found["results"][0]["alias"], "b-alias");
    hub.client_says(1, &dispatch(3, &json!({"action": "call", "tool": "skim"})));
    assert_eq!(last(&hub.take(), "S2")["params"]["name"], "read_file");
}

#[test]
fn nothing_is_known_about_an_unlisted_uri_of_a_healthy_server() {
    let mut hub = Transcript::ready(TOOLS);
    for uri in ["spill:754gg28xfyk10dc31e4tvhjxv3.json", "note://a/7"] {
        let info = json!({"action": "info", "type": "resource", "path": uri});
        hub.client_says(1, &call_tool(1, "proxy", &info));
        let refused = result_of(&mut hub);
        assert_eq!(refused["isError"], true, "{refused}");
        assert_eq!(
            refused["_meta"]["mcp-proxy/proxy"]["error"], "not-found",
            "{refused}"
        );
    }
}

#[test]
fn a_result_in_a_file_cannot_be_subscribed_to() {
    let mut hub = Transcript::ready(TOOLS);
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let subscribe = json!({"jsonrpc": "2.0", "id": 1, "method": method,
            "params": {"uri": "spill:754gg28xfyk10dc31e4tvhjxv3.json"}});
        hub.client_says(1, &subscribe.to_string());
        let said = hub.take();
        assert!(!said.contains("S1<"), "{said}");
        assert_eq!(last(&said, "C1")["error"]["code"], -32602);
    }
}
