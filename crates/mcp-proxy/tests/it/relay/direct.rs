//! `relay --direct`: without tokens, for one user on one machine.

use std::process::Command;

use serde_json::json;

use super::{Peer, TestRelay};
use crate::programs::PROXY;

const EXTENSION: &str = "chrome-extension://abcdefghijklmnopabcdefghijklmnop";

fn start(more: &[&str]) -> TestRelay {
    let mut args = vec!["--direct", "--no-record"];
    args.extend(more);
    TestRelay::start_without_keys(&args)
}

fn extension(relay: &TestRelay) -> Peer {
    let socket = relay.try_open("/extension", &[("origin", EXTENSION)]);
    Peer {
        socket: socket.unwrap(),
    }
}

#[test]
fn the_published_extension_and_a_client_without_a_handshake_need_no_tokens() {
    let relay = start(&[]);
    let mut extension = extension(&relay);
    extension.say(&json!({"type": "handshake", "browser": "Chrome", "version": "1.9.22"}));
    let asked = extension.hear();
    extension.say(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"message": "No authentication tokens found"}}));
    let told = extension.hear_method("authenticated");
    assert_eq!(told["params"]["extension_id"], "ext-chrome");
    let mut client = relay.open("/mcp");
    let listed = client.ask(1, "list_extensions", &json!({}));
    assert_eq!(listed["result"]["extensions"][0]["name"], "Chrome");
    client.say(&json!({"id": 2, "method": "createTab", "params": {"url": "https://a.test"}}));
    let asked = extension.hear_command();
    assert_eq!(asked["id"], 2);
    extension.say(&json!({"id": 2, "result": {"tab": {"id": 7}}}));
    assert_eq!(client.hear_answer(&json!(2))["result"]["tab"]["id"], 7);
}

#[test]
fn a_silent_extension_is_taken_as_it_is_and_a_handshake_is_answered() {
    let relay = start(&[]);
    let mut extension = extension(&relay);
    assert_eq!(extension.hear()["method"], "authenticate");
    // It never answers.
    let told = extension.hear_method("authenticated");
    assert_eq!(told["params"]["extension_id"], "ext-browser");
    let mut client = relay.open("/");
    let params = json!({"client_id": "laptop"});
    let answer = client.ask(1, "mcp_handshake", &params);
    assert_eq!(answer["result"]["mcp_client_id"], "mcp-laptop");
    client.connect(2, "ext-browser");
}

#[test]
fn web_pages_are_refused_and_no_extension_can_be_a_client() {
    let relay = start(&[]);
    let open = |path, origin| relay.try_open(path, &[("origin", origin)]).err();
    for page in [
        "https://evil.test",
        "http://localhost:3000",
        "http://127.0.0.1:8899",
        "null",
    ] {
        for path in ["/mcp", "/extension", "/"] {
            assert_eq!(open(path, page), Some(Some(403)), "{page} {path}");
        }
    }
    let rebound = relay.try_open("/mcp", &[("host", "evil.test")]);
    assert_eq!(rebound.err(), Some(Some(403)));
    assert_eq!(open("/mcp", EXTENSION), Some(Some(403)));
    // At `/` it is an extension, whatever it says.
    let socket = relay.try_open("/", &[("origin", EXTENSION)]).unwrap();
    let mut other = Peer { socket };
    other.say(&json!({"id": 1, "method": "mcp_handshake", "params": {}}));
    other.hear_method("authenticated");
    let pinned = start(&["--extension-id", "ponmlkjihgfedcbaponmlkjihgfedcba"]);
    let refused = pinned.try_open("/extension", &[("origin", EXTENSION)]);
    assert_eq!(refused.err(), Some(Some(403)));
}

#[test]
fn what_would_let_others_in_is_a_usage_error() {
    for flags in [
        &["--listen-host", "0.0.0.0"][..],
        &[
            "--listen-host",
            "192.168.1.2",
            "--tls-cert",
            "c",
            "--tls-key",
            "k",
        ],
        &["--behind-tls-proxy"],
        &["--allow-host", "relay.test"],
        &["--allow-origin", "https://a.test"],
        &["--jwt-secret-file", "s"],
        &["--jwt-public-key", "p"],
        &["--jwks", "j"],
        &["--revoked-file", "r"],
    ] {
        let refused = Command::new(PROXY)
            .args(["relay", "--direct"])
            .args(flags)
            .output()
            .unwrap();
        assert_eq!(refused.status.code(), Some(2), "{flags:?} {refused:?}");
    }
}
