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

#[test]
fn a_socket_whose_token_was_revoked_has_its_own_line() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.jsonl");
    let relay = TestRelay::start(&["--no-record", "--audit-log", log.to_str().unwrap()]);
    let mut client = relay.client("ada", "l");
    relay.revoke("user:ada");
    assert_eq!(u16::from(client.hear_close().code), 4401);
    let text = std::fs::read_to_string(&log).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(
        [
            &last["event"],
            &last["user"],
            &last["role"],
            &last["client"],
            &last["reason"]
        ],
        ["closed", "ada", "client", "mcp-l", "Token revoked"]
    );
}

#[test]
fn a_hangup_opens_the_log_again_and_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (log, older) = (folder.path().join("audit"), folder.path().join("older"));
    let relay = TestRelay::start(&["--no-record", "--audit-log", log.to_str().unwrap()]);
    let mut client = relay.client("ada", "l");
    std::fs::rename(&log, &older).unwrap();
    relay.signal("-HUP");
    while !log.exists() {
        std::thread::yield_now();
    }
    let _extension = relay.extension("ada", "c");
    client.connect(2, "ext-c");
    let lines = |path: &std::path::Path| std::fs::read_to_string(path).unwrap().lines().count();
    assert_eq!((lines(&older), lines(&log)), (1, 2));
}

#[test]
fn a_log_that_others_can_read_is_told_about() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    for (mode, is_named) in [(0o644, true), (0o600, false)] {
        let log = folder.path().join(format!("audit-{mode:o}"));
        std::fs::write(&log, "").unwrap();
        std::fs::set_permissions(&log, std::fs::Permissions::from_mode(mode)).unwrap();
        let path = log.to_str().unwrap();
        let flags = ["--direct", "--no-record", "--audit-log", path];
        let relay = TestRelay::start_without_keys(&flags);
        let (_, said) = relay.program.end("-TERM");
        assert_eq!(said.contains(path), is_named, "{said}");
    }
}
