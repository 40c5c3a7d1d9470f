//! `relay --audit-log`.

use serde_json::{Value, json};

use super::TestRelay;

#[test]
fn every_event_is_a_line_without_tokens_and_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.jsonl");
    let relay = TestRelay::start(&["--no-record", "--audit-log", log.to_str().unwrap()]);
    let mut extension = relay.extension("ada", "c");
    let token = relay.token("ada");
    let mut client = relay.open("/mcp");
    client.ask(
        1,
        "mcp_handshake",
        &json!({"accessToken": token, "client_id": "l"}),
    );
    let connection = client.connect(2, "ext-c");
    let secret = json!({"url": "https://bank.test/secret"});
    client.say(&json!({"id": 3, "method": "createTab", "params": secret}));
    let asked = extension.hear_command();
    extension.say(&json!({"id": asked["id"], "result": {"tab": {"id": 7}}}));
    client.hear_answer(&json!(3));
    let cookies = json!({"method": "Network.getCookies"});
    let denied = client.ask(4, "forwardCDPCommand", &cookies);
    assert_eq!(denied["error"]["code"], -32008);
    client.ask(5, "disconnect", &json!({}));
    let mut forger = relay.open("/mcp");
    forger.ask(1, "mcp_handshake", &json!({"accessToken": "forged"}));
    let next = relay.extension("ada", "c");
    assert_eq!(u16::from(extension.hear_close().code), 4409);
    // What has been heard is in the file.
    let text = std::fs::read_to_string(&log).unwrap();
    for hidden in [&*token, "forged", "bank.test"] {
        assert!(!text.contains(hidden), "{hidden}");
    }
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str()).collect();
    let expected = [
        "authenticated",
        "authenticated",
        "connected",
        "command",
        "denied",
        "disconnected",
        "refused",
        "authenticated",
        "taken_over",
    ];
    assert_eq!(events, expected.map(Some));
    assert!(lines.iter().all(|line| line["time"].is_string()));
    assert_eq!(
        (&lines[0]["user"], &lines[0]["role"]),
        (&json!("ada"), &json!("extension"))
    );
    let address = lines[1]["address"].as_str().unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let command = &lines[3];
    assert_eq!(command["connection"], connection);
    assert_eq!(
        (
            &command["method"],
            &command["extension"],
            &command["outcome"]
        ),
        (&json!("createTab"), &json!("ext-c"), &json!("ok"))
    );
    assert_eq!(
        (&lines[4]["cdp"], &lines[4]["policy"]),
        (&json!("Network.getCookies"), &json!("cdp"))
    );
    assert_eq!(lines[6].get("user"), None);
    drop(next);
}
