//! How many requests of modern clients may be open at once.

use serde_json::{Value, json};

use super::test_hub::{TestHub, time};
use crate::programs::{OpenResponse, error_answer, open};

/// Opens a modern client's subscription to list changes, which stays open.
fn subscribe(hub: &TestHub, id: usize) -> OpenResponse {
    let body = json!({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": {
        "notifications": {"toolsListChanged": true},
        "_meta": modern_meta(),
    }});
    open_modern(hub, "subscriptions/listen", &body)
}

fn open_modern(hub: &TestHub, method: &str, body: &Value) -> OpenResponse {
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
    ];
    let body = body.to_string();
    open(
        &hub.program.address,
        "POST",
        "/mcp",
        &headers,
        body.as_bytes(),
    )
}

fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

#[test]
fn open_subscriptions_leave_room_for_requests() {
    let hub = TestHub::start(
        &json!({"mcpServers": {"time": time()}}),
        &["--max-sessions", "1"],
    );
    let mut subscriptions: Vec<_> = (0..100).map(|id| subscribe(&hub, id)).collect();
    for subscription in &mut subscriptions {
        assert_eq!(subscription.head().0, 200);
    }
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": modern_meta()}});
    assert_eq!(open_modern(&hub, "tools/list", &list).head().0, 200);
}

#[test]
fn requests_of_modern_clients_are_limited() {
    let hub = TestHub::start(
        &json!({"mcpServers": {"time": time()}}),
        &["--max-requests", "2"],
    );
    let mut subscriptions = [subscribe(&hub, 1), subscribe(&hub, 2)];
    for subscription in &mut subscriptions {
        assert_eq!(subscription.head().0, 200);
    }
    let mut refused = subscribe(&hub, 3);
    assert_eq!(refused.head().0, 503);
    let text = refused.line();
    assert_eq!(error_answer(&text), (json!(3), -31007), "{text}");
    assert!(text.contains("--max-requests"), "{text}");
    // Legacy sessions have a limit of their own.
    hub.program.session();
}
