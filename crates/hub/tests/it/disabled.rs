//! What models are told about servers that are disabled.

use mcp_proxy_hub::{NewServer, ServerChange, ServerSettings};
use serde_json::{Value, json};

use crate::dispatch::{TOOLS, call_tool, dispatch, last};
use crate::transcript::{Transcript, server, settings_with_proxy_tool};

const REASON: &str = "turned off in the config";

fn turned_off(name: &str) -> ServerSettings {
    ServerSettings {
        disabled: Some(REASON.to_owned()),
        is_turned_off: true,
        ..server(name)
    }
}

/// A hub with the server `alive`, and `sleeper`, which is disabled.
fn hub() -> Transcript {
    let servers = vec![server("alive"), turned_off("sleeper")];
    let mut hub = Transcript::new(settings_with_proxy_tool(), servers);
    hub.start_server(1, TOOLS);
    hub.client();
    hub.initialize(1, "{}");
    hub
}

fn result(hub: &mut Transcript, request: &str) -> Value {
    hub.take();
    hub.client_says(1, request);
    last(&hub.take(), "C1")["result"].clone()
}

fn list_tools(hub: &mut Transcript) -> String {
    result(hub, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).to_string()
}

#[test]
fn a_list_or_search_of_a_disabled_server_tells_why_it_is_empty() {
    let mut hub = hub();
    let of = |action: Value| {
        let mut arguments = json!({"type": "tool", "filter_server": "sleeper"});
        arguments
            .as_object_mut()
            .unwrap()
            .extend(action.as_object().unwrap().clone());
        call_tool(2, "proxy", &arguments)
    };
    let calls = [
        of(json!({"action": "list", "detail": "brief"})),
        of(json!({"action": "list"})),
        of(json!({"action": "search", "query": "read"})),
        dispatch(2, &json!({"action": "list", "connection": "sleeper"})),
        dispatch(
            2,
            &json!({"action": "search", "query": "read", "connection": "sleeper"}),
        ),
    ];
    for call in calls {
        let content = result(&mut hub, &call)["content"].to_string();
        assert!(content.contains(REASON), "{call}: {content}");
    }
    // Nobody misses it in a list of all.
    let all = call_tool(
        2,
        "proxy",
        &json!({"action": "list", "type": "tool", "detail": "brief"}),
    );
    let content = result(&mut hub, &all)["content"].to_string();
    assert!(!content.contains("sleeper"), "{content}");
}

#[test]
fn a_disabled_server_is_not_named_as_available() {
    let mut hub = hub();
    let hello = last(&hub.take(), "C1")["result"].clone();
    let instructions = hello["instructions"].as_str().unwrap();
    assert!(
        instructions.contains("alive") && !instructions.contains("sleeper"),
        "{hello}"
    );
    let definitions = list_tools(&mut hub);
    assert!(
        definitions.contains("alive") && !definitions.contains("sleeper"),
        "{definitions}"
    );
}

#[test]
fn a_server_is_named_again_when_it_is_enabled() {
    let mut hub = Transcript::new(settings_with_proxy_tool(), vec![server("a")]);
    hub.start_server(1, TOOLS);
    hub.client();
    hub.initialize(1, "{}");
    let named = "Servers: a.";
    assert!(list_tools(&mut hub).contains(named));
    hub.change(ServerChange::Disable);
    assert!(!list_tools(&mut hub).contains(named));
    hub.change(ServerChange::Enable);
    assert!(list_tools(&mut hub).contains(named));
    let disabled = NewServer::Changed(Box::new(turned_off("a")));
    hub.reconfigure(settings_with_proxy_tool(), vec![disabled]);
    assert!(!list_tools(&mut hub).contains(named));
}
