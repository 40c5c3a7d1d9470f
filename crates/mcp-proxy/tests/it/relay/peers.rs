//! What the published client and extension really send, and the quirks of theirs that have to be lived with.

use serde_json::json;

use super::TestRelay;

#[test]
fn the_published_client_lists_connects_and_reconnects_after_a_loss() {
    let relay = TestRelay::start(&["--no-record"]);
    let mut client = relay.open("/mcp");
    let handshake = "8f14e45f-ceea-467f-a4d5-1b0f2a3c4d5e";
    client.say(
        &json!({"jsonrpc": "2.0", "id": handshake, "method": "mcp_handshake",
        "params": {"access_token": relay.token("ada"), "client_id": "mcp-claude"}}),
    );
    let answer = client.hear_answer(&json!(handshake));
    assert_eq!(answer["result"]["mcp_client_id"], "mcp-mcp-claude");
    // It asks again until a browser is there.
    let listed = client.ask(2, "list_extensions", &json!({}));
    assert_eq!(listed["result"]["extensions"], json!([]));
    let mut extension = relay.extension("ada", "chrome-5f3e");
    let listed = client.ask(3, "list_extensions", &json!({}));
    let id = listed["result"]["extensions"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let first = client.connect(4, &id);
    client.say(&json!({"id": "t", "method": "createTab", "params": {"url": "https://a.test"}}));
    let asked = extension.hear_command();
    extension.say(&json!({"jsonrpc": "2.0", "id": asked["id"],
        "result": {"success": true, "activated": true, "tab": {"id": 5, "title": "A", "url": "https://a.test"}}}));
    client.hear_answer(&json!("t"));
    extension.socket.close(None).unwrap();
    drop(extension);
    assert_eq!(
        client.hear_method("disconnected")["params"]["connection_id"],
        first
    );
    let mut extension = relay.extension("ada", "chrome-5f3e");
    assert_eq!(client.connect(5, &id), first);
    client.say(&json!({"id": "s", "method": "selectTab", "params": {"tabIndex": 0}}));
    let asked = extension.hear_command();
    assert_eq!(asked["method"], "getTabs");
    extension.say(&json!({"id": asked["id"], "result": {"tabs": [{"id": 5}], "count": 1}}));
    let asked = extension.hear_command();
    assert_eq!(asked["method"], "selectTab");
    extension.say(
        &json!({"id": asked["id"], "result": {"success": true, "tab": {"id": 5, "index": 0}}}),
    );
    assert_eq!(client.hear_answer(&json!("s"))["result"]["success"], true);
}

#[test]
fn the_extension_replaces_itself_again_and_again() {
    let relay = TestRelay::start(&["--no-record"]);
    let mut client = relay.client("ada", "l");
    let mut last = relay.extension("ada", "c");
    client.connect(2, "ext-c");
    for _ in 0..10 {
        let next = relay.extension("ada", "c");
        assert_eq!(u16::from(last.hear_close().code), 4409);
        last = next;
    }
    client.say(&json!({"id": 3, "method": "getTabs"}));
    let asked = last.hear_command();
    last.say(&json!({"id": asked["id"], "result": {"tabs": []}}));
    assert_eq!(client.hear_answer(&json!(3))["result"]["tabs"], json!([]));
}

#[test]
fn what_the_extension_says_unasked_is_survived() {
    let relay = TestRelay::start(&["--no-record"]);
    let mut extension = relay.open("/extension");
    let asked = extension.hear();
    extension.say(&json!({"type": "handshake", "browser": "chrome", "version": "1.9.22"}));
    extension.say(&json!({"id": asked["id"], "result": {"name": "Chrome", "access_token": relay.token("ada"), "client_id": "c"}}));
    extension.hear_method("authenticated");
    extension
        .say(&json!({"jsonrpc": "2.0", "method": "build_info", "params": {"buildTimestamp": "x"}}));
    extension.say_text("nonsense");
    extension.say(&json!({"id": null, "error": {"code": -32700, "message": "Parse error"}}));
    let mut client = relay.client("ada", "l");
    client.connect(2, "ext-c");
    extension.say(&json!({"jsonrpc": "2.0", "method": "notifications/tab_info_update", "params": {"currentTab": null}}));
    assert_eq!(
        client.hear_method("notifications/tab_info_update")["params"]["currentTab"],
        json!(null)
    );
    // An error without a code and with a stack.
    client.say(&json!({"id": 9, "method": "getTabs"}));
    let asked = extension.hear_command();
    extension.say(&json!({"id": asked["id"], "error": {"message": "Unknown command", "stack": "Error\n at x"}}));
    let answer = client.hear_answer(&json!(9));
    assert_eq!(
        answer["error"],
        json!({"code": -32000, "message": "Unknown command"})
    );
}
