//! Results belong to the caller that asked for them: to its token and its profile.

use serde_json::{Value, json};

use super::super::test_hub::{TestHub, demo};
use super::{handle, refusal, start};
use crate::programs::request;

/// A request of a modern client, which has no session and may have a token.
fn ask_modern(hub: &TestHub, token: Option<&str>, method: &str, params: Value) -> Value {
    ask_at(hub, &hub.program.path, token, method, params)
}

/// A call of `proxy-dispatch` by a modern client of another profile.
fn ask_modern_at(hub: &TestHub, path: &str, arguments: &Value) -> Value {
    let params = json!({"name": "proxy-dispatch", "arguments": arguments});
    ask_at(hub, path, None, "tools/call", params)
}

fn ask_at(
    hub: &TestHub,
    path: &str,
    token: Option<&str>,
    method: &str,
    mut params: Value,
) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let name = params["name"].as_str().or(params["uri"].as_str());
    let name = name.unwrap_or_default().to_owned();
    let token = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
        ("mcp-name", &name),
    ];
    if let Some(token) = &token {
        headers.push(("authorization", token));
    }
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
    let answer = request(
        &hub.program.address,
        "POST",
        path,
        &headers,
        body.as_bytes(),
    );
    let text = answer.text();
    let line = text
        .lines()
        .map(|line| line.strip_prefix("data: ").unwrap_or(line))
        .rfind(|line| line.starts_with('{'));
    serde_json::from_str(line.unwrap_or_else(|| panic!("{text}"))).unwrap()
}

fn dispatch_modern(hub: &TestHub, token: Option<&str>, arguments: &Value) -> Value {
    let params = json!({"name": "proxy-dispatch", "arguments": arguments});
    let answer = ask_modern(hub, token, "tools/call", params);
    assert!(answer.get("result").is_some(), "{answer}");
    answer["result"].clone()
}

#[test]
fn modern_requests_with_the_same_token_share_results() {
    let hub = start(&[]);
    let call = json!({"action": "call", "tool": "echo", "arguments": {"message": "mine"}, "resultToFile": true});
    let file = handle(&dispatch_modern(&hub, Some("one"), &call));
    let read = json!({"action": "readresult", "resultFile": file, "op": "read"});
    assert_eq!(dispatch_modern(&hub, Some("one"), &read)["isError"], false);
    let uri = json!({"uri": file});
    let resource = ask_modern(&hub, Some("one"), "resources/read", uri.clone());
    assert_eq!(resource["result"]["cacheScope"], "private", "{resource}");
    assert_eq!(resource["result"]["ttlMs"], 0);

    for token in [Some("other"), None] {
        let result = dispatch_modern(&hub, token, &read);
        assert_eq!(refusal(&result).0, "file-refused", "{token:?}");
        let call = json!({"action": "call", "tool": "echo", "argumentsFile": file});
        let result = dispatch_modern(&hub, token, &call);
        assert_eq!(refusal(&result).0, "file-refused", "{token:?}");
        let resource = ask_modern(&hub, token, "resources/read", uri.clone());
        assert_eq!(resource["error"]["code"], -32602, "{resource}");
    }
    // A session without the token is somebody else, even on the same machine.
    assert_eq!(refusal(&hub.dispatch(&read)).0, "file-refused");
}

#[test]
fn modern_requests_without_a_token_are_one_caller() {
    let hub = start(&[]);
    let call = json!({"action": "call", "tool": "echo", "arguments": {"message": "ours"}, "resultToFile": true});
    let file = handle(&dispatch_modern(&hub, None, &call));
    let read = json!({"action": "readresult", "resultFile": file});
    assert_eq!(dispatch_modern(&hub, None, &read)["isError"], false);
    assert_eq!(
        refusal(&dispatch_modern(&hub, Some("one"), &read)).0,
        "file-refused"
    );
}

#[test]
fn g10_a_result_outlives_its_session() {
    let config = json!({
        "mcpServers": {"demo": demo()},
        "mcp-proxy": {"profiles": {"work": {}}},
    });
    let hub = TestHub::start(&config, &["--expose", "dispatch"]);
    let session = hub.program.session();
    let file = hub.spill_in(&session, "ours");
    let headers = [("mcp-session-id", session.as_str())];
    let (address, path) = (&hub.program.address, &hub.program.path);
    let ended = request(address, "DELETE", path, &headers, b"");
    assert_eq!(ended.status, 200);

    let read = json!({"action": "readresult", "resultFile": file});
    for session in [&hub.session, &hub.program.session()] {
        assert_eq!(hub.dispatch_in(session, &read)["isError"], false);
    }
    assert_eq!(dispatch_modern(&hub, None, &read)["isError"], false);
    // Another token or another profile is somebody else.
    let with_token = dispatch_modern(&hub, Some("one"), &read);
    assert_eq!(refusal(&with_token).0, "file-refused");
    let at_work = ask_modern_at(&hub, "/mcp/p/work", &read);
    assert_eq!(refusal(&at_work["result"]).0, "file-refused");
}
