//! Codes for browsers: `relay pair`, and `POST /pair`.

use std::process::{Command, Output};

use serde_json::{Value, json};

use super::TestRelay;
use crate::programs::{HttpAnswer, PROXY, request};

const EXTENSION: (&str, &str) = (
    "origin",
    "chrome-extension://abcdefghijklmnopabcdefghijklmnop",
);

fn pair(relay: &TestRelay, more: &[&str]) -> Output {
    Command::new(PROXY)
        .args(["relay", "pair", "--user", "ada"])
        .args(more)
        .env("XDG_RUNTIME_DIR", relay.file("runtime"))
        // Where relays of other tests may be.
        .env("TMPDIR", relay.file("runtime"))
        .output()
        .unwrap()
}

fn code(relay: &TestRelay, more: &[&str]) -> String {
    let made = pair(relay, more);
    assert!(made.status.success(), "{made:?}");
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

fn post(relay: &TestRelay, headers: &[(&str, &str)], body: &str) -> HttpAnswer {
    let address = &relay.program.address;
    request(address, "POST", "/pair", headers, body.as_bytes())
}

fn exchange(relay: &TestRelay, code: &str) -> (u16, Value) {
    let answer = post(relay, &[EXTENSION], &json!({"code": code}).to_string());
    (answer.status, serde_json::from_str(&answer.text()).unwrap())
}

#[test]
fn a_code_becomes_a_token_once() {
    let relay = TestRelay::start(&[]);
    let code = code(&relay, &["--ttl", "1h"]);
    let (status, paired) = exchange(&relay, &code.to_lowercase());
    assert_eq!(status, 200, "{paired}");
    assert_eq!(paired["user_id"], "ada");
    let url = format!("ws://{}", relay.program.address);
    assert_eq!(paired["connection_url"], url);
    assert!(paired["expires_at"].is_u64(), "{paired}");
    let token = paired["access_token"].as_str().unwrap();
    let mut client = relay.open("/mcp");
    let answer = client.ask(1, "mcp_handshake", &json!({"access_token": token}));
    assert_eq!(answer["result"]["user_id"], "ada");
    assert_eq!(exchange(&relay, &code).0, 403);
    // Nothing of it is kept.
    let folder = relay.file("state");
    let TestRelay {
        program,
        folder: _folder,
    } = relay;
    let (_, said) = program.end("-TERM");
    let recorded = contents(&folder);
    assert!(!recorded.is_empty());
    for secret in [token, &code] {
        assert!(!said.contains(secret) && !recorded.contains(secret));
    }
}

#[test]
fn the_audit_log_says_who_exchanged_a_code_and_not_which() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.jsonl");
    let relay = TestRelay::start(&["--no-record", "--audit-log", log.to_str().unwrap()]);
    let code = code(&relay, &[]);
    assert_eq!(exchange(&relay, "AAAA-AAAA").0, 403);
    let (_, paired) = exchange(&relay, &code);
    let text = std::fs::read_to_string(&log).unwrap();
    let line: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(line["event"], "paired");
    assert_eq!(line["user"], "ada");
    let address = line["address"].as_str().unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    for secret in [&*code, paired["access_token"].as_str().unwrap()] {
        assert!(!text.contains(secret));
    }
}

/// Everything in the files of a folder.
fn contents(folder: &std::path::Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.path().is_dir() {
            true => text += &contents(&entry.path()),
            false => text += &String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()),
        }
    }
    text
}

#[test]
fn wrong_and_used_codes_are_answered_alike_and_limited() {
    let relay = TestRelay::start(&["--no-record"]);
    let used = code(&relay, &[]);
    exchange(&relay, &used);
    let refused = (403, json!({"error": "invalid_code"}));
    for wrong in [&used, "AAAA-AAAA", ""] {
        assert_eq!(exchange(&relay, wrong), refused);
    }
    assert_eq!(post(&relay, &[EXTENSION], "nonsense").status, 403);
    let next = code(&relay, &[]);
    let limited = post(&relay, &[EXTENSION], &json!({"code": next}).to_string());
    assert_eq!(limited.status, 429);
    assert!(limited.header("retry-after").is_some());
    let body: Value = serde_json::from_str(&limited.text()).unwrap();
    assert!(body["retry_after_ms"].as_u64().unwrap() > 0);
    let large = "x".repeat(2000);
    assert_eq!(post(&relay, &[EXTENSION], &large).status, 400);
    assert_eq!(relay.health()["refused_pairings"], 6);
}

#[test]
fn only_extensions_may_exchange_codes_and_browsers_let_them() {
    let relay = TestRelay::start(&["--no-record"]);
    let code = json!({"code": code(&relay, &[])}).to_string();
    for origin in ["https://evil.test", "http://localhost:3000", "null"] {
        assert_eq!(post(&relay, &[("origin", origin)], &code).status, 403);
    }
    assert_eq!(post(&relay, &[], &code).status, 403);
    let address = &relay.program.address;
    let asked = [
        EXTENSION,
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type"),
    ];
    let preflight = request(address, "OPTIONS", "/pair", &asked, b"");
    assert_eq!(preflight.status, 204);
    let allowed = "access-control-allow-origin";
    assert_eq!(preflight.header(allowed), Some(EXTENSION.1));
    let answer = post(&relay, &[EXTENSION], &code);
    assert_eq!(
        (answer.status, answer.header(allowed)),
        (200, Some(EXTENSION.1))
    );
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(
        request(address, "GET", "/pair", &[EXTENSION], b"").status,
        405
    );
    let pinned = TestRelay::start(&[
        "--no-record",
        "--extension-id",
        "ponmlkjihgfedcbaponmlkjihgfedcba",
    ]);
    assert_eq!(post(&pinned, &[EXTENSION], "{}").status, 403);
}

#[test]
fn the_url_can_be_given_and_revoked_users_get_no_code() {
    let relay = TestRelay::start(&["--no-record"]);
    let url = "wss://relay.example.com/both";
    let made = code(&relay, &["--connection-url", url]);
    assert_eq!(exchange(&relay, &made).1["connection_url"], url);
    assert_eq!(
        pair(&relay, &["--connection-url", "http://x"])
            .status
            .code(),
        Some(2)
    );
    std::fs::write(relay.file("revoked"), "user:ada\n").unwrap();
    assert_eq!(pair(&relay, &[]).status.code(), Some(1));
}

#[test]
fn relays_without_a_secret_have_nothing_to_pair() {
    let relay = TestRelay::start_without_keys(&["--direct", "--no-record"]);
    assert_eq!(pair(&relay, &[]).status.code(), Some(1));
    assert_eq!(post(&relay, &[EXTENSION], "{}").status, 404);
    let TestRelay { program, folder } = relay;
    program.end("-TERM");
    let alone = Command::new(PROXY)
        .args(["relay", "pair", "--user", "ada"])
        .env("XDG_RUNTIME_DIR", folder.path().join("runtime"))
        .env("TMPDIR", folder.path().join("runtime"))
        .output()
        .unwrap();
    assert_eq!(alone.status.code(), Some(1));
}
