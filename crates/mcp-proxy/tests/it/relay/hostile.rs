//! Peers that want what is not theirs, or just make trouble.
//!
//! | attack | tests |
//! |---|---|
//! | other users' ids | `a_client_does_not_see_or_reach_another_users_browser`, `ids_of_another_users_connection_mean_nothing` |
//! | forged tokens, `alg: none` | `forged_and_broken_tokens_are_refused_with_4401` |
//! | expired tokens, tokens of others | `expired_tokens_are_refused_with_4401`, `another_users_token_does_not_renew_a_socket` |
//! | oversized messages | `garbage_before_the_handshake_hurts_nobody` (before the token), `oversized_messages_hurt_only_their_sender` |
//! | floods | `a_flood_is_refused_and_the_other_client_is_served`; limits one by one: `limits` in the relay's tests |
//! | garbage | `garbage_before_the_handshake_hurts_nobody`, `garbage_after_the_handshake_hurts_nobody` |
//! | half-open sockets | `peers_that_are_gone_without_a_word_are_found_by_pings`, `garbage_before_the_handshake_hurts_nobody`, and `driver::a_socket_that_never_shows_a_token_is_closed_after_the_deadline` in the relay's tests |
//! | answers of others | `driver::another_users_extension_cannot_answer_a_command` and `delivery::answers_of_peers_that_were_not_asked_have_no_effect` in the relay's tests |
//! | web pages, DNS rebinding | `web_pages_and_unknown_hosts_are_refused_and_extensions_are_not` |
//! | what the policy denies | `a_policy_file_holds_for_its_user_in_every_wrapping`, `claims_of_a_token_do_not_widen_the_policy`, and `policies` in the relay's tests |
//! | 10,000 random sequences against a model | `random::whatever_happens_everybody_gets_their_own_answers` in the relay's tests |

use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_proxy_token::{SigningKey, TokenRequest, issue};
use ring::hmac;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::TestRelay;

const PINNED: &str = "ponmlkjihgfedcbaponmlkjihgfedcba";

fn forged(header: &Value, claims: &Value, signature: &str) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.{signature}", part(header), part(claims))
}

/// A token with these claims that is signed with the relay's secret.
fn signed(relay: &TestRelay, claims: &Value) -> String {
    let secret = std::fs::read_to_string(relay.file("secret")).unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.trim_end().as_bytes());
    let token = forged(&json!({"alg": "HS256"}), claims, "");
    let text = token.strip_suffix('.').unwrap();
    let signature = hmac::sign(&key, text.as_bytes());
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[test]
fn forged_and_broken_tokens_are_refused_with_4401() {
    let relay = TestRelay::start(&["--no-record"]);
    let good = relay.token("ada");
    let claims = json!({"user_id": "ada", "exp": 4_000_000_000_i64});
    let mut other_signature = good.clone();
    other_signature.replace_range(good.len() - 4.., "AAAA");
    let tokens = [
        forged(&json!({"alg": "none"}), &claims, ""),
        forged(&json!({"alg": "HS256"}), &claims, "AAAA"),
        other_signature,
        "x".to_owned(),
        "a.b.c".to_owned(),
        String::new(),
    ];
    for token in tokens {
        let mut client = relay.open("/mcp");
        client.say(&json!({"id": 1, "method": "mcp_handshake", "params": {"accessToken": token}}));
        let answer = client.hear();
        assert!(
            [-32000, -32602].contains(&answer["error"]["code"].as_i64().unwrap()),
            "{answer}"
        );
        assert!(token.is_empty() || !answer.to_string().contains(&token));
        if answer["error"]["code"] == -32000 {
            assert_eq!(u16::from(client.hear_close().code), 4401);
        }
        let mut extension = relay.open("/extension");
        let asked = extension.hear();
        extension.say(&json!({"id": asked["id"], "result": {"accessToken": token}}));
        assert_eq!(u16::from(extension.hear_close().code), 4401);
    }
}

#[test]
fn a_client_does_not_see_or_reach_another_users_browser() {
    let relay = TestRelay::start(&["--no-record"]);
    let mut extension = relay.extension("ada", "c");
    let mut mallory = relay.client("mallory", "l");
    let listed = mallory.ask(2, "list_extensions", &json!({"include_offline": true}));
    assert_eq!(listed["result"]["extensions"], json!([]));
    let refused = mallory.ask(3, "connect", &json!({"extension_id": "ext-c"}));
    assert_eq!(refused["error"]["code"], -32000);
    let refused = mallory.ask(4, "createTab", &json!({}));
    assert_eq!(refused["error"]["code"], -32003);
    // An extension of the same name is another one.
    let mut own = relay.extension("mallory", "c");
    mallory.connect(5, "ext-c");
    mallory.say(&json!({"id": 6, "method": "getTabs"}));
    assert_eq!(own.hear_command()["method"], "getTabs");
    let mut ada = relay.client("ada", "l");
    ada.connect(2, "ext-c");
    ada.say(&json!({"id": 7, "method": "getTabs"}));
    assert!(
        extension.hear_command()["id"]
            .as_str()
            .unwrap()
            .ends_with(":7")
    );
}

#[test]
fn web_pages_and_unknown_hosts_are_refused_and_extensions_are_not() {
    let relay = TestRelay::start(&["--no-record"]);
    let page = relay.try_open("/mcp", &[("origin", "https://evil.test")]);
    assert_eq!(page.err(), Some(Some(403)));
    let rebound = relay.try_open("/mcp", &[("host", "evil.test")]);
    assert_eq!(rebound.err(), Some(Some(403)));
    let id = "abcdefghijklmnopabcdefghijklmnop";
    let origin = format!("chrome-extension://{id}");
    assert!(relay.try_open("/extension", &[("origin", &origin)]).is_ok());
    let pinned = TestRelay::start(&["--no-record", "--extension-id", PINNED]);
    let other = pinned.try_open("/extension", &[("origin", &origin)]);
    assert_eq!(other.err(), Some(Some(403)));
    let own = format!("chrome-extension://{PINNED}");
    assert!(pinned.try_open("/extension", &[("origin", &own)]).is_ok());
}

#[test]
fn a_firefox_extension_is_pinned_by_its_uuid_and_a_page_by_its_origin() {
    let uuid = "5F0C2A94-b7e1-4d3f-a6a8-c0e2b4d6f8a1";
    let allowed = "https://app.example";
    let flags = ["--extension-id", uuid, "--allow-origin", allowed];
    let relay = TestRelay::start(&[&["--no-record"], &flags[..]].concat());
    let open = |origin: &str| relay.try_open("/extension", &[("origin", origin)]).err();
    let own = format!("moz-extension://{}", uuid.to_ascii_lowercase());
    assert_eq!(open(&own), None);
    assert_eq!(open(allowed), None);
    for other in [
        "moz-extension://00000000-b7e1-4d3f-a6a8-c0e2b4d6f8a1",
        &format!("chrome-extension://{PINNED}"),
        "https://other.example",
    ] {
        assert_eq!(open(other), Some(Some(403)), "{other}");
    }
}

/// Takes a minute, and next to no work: that is how long a relay waits for a peer that says nothing.
#[test]
fn peers_that_are_gone_without_a_word_are_found_by_pings() {
    let relay = TestRelay::start(&["--no-record"]);
    let mut extension = relay.extension("ada", "c");
    let mut client = relay.client("bob", "l");
    // The kernel takes what is written to these two, and nobody ever reads it: no pong comes back.
    let _gone_client = relay.client("ada", "gone");
    let _gone_extension = relay.extension("bob", "gone");
    let start = Instant::now();
    client.connect(2, "ext-gone");
    let hears_of_client = std::thread::spawn(move || {
        for count in [1, 0] {
            while extension.hear_method("connection_status")["params"]["total_mcp_clients"] != count
            {
            }
        }
        extension
    });
    client.hear_method("disconnected");
    let _extension = hears_of_client.join().unwrap();
    assert!(start.elapsed() > Duration::from_secs(50));
    relay.until_counted("silent_peers", 2);
    assert_eq!(relay.health()["sockets"], 2);
}

#[test]
fn garbage_before_the_handshake_hurts_nobody() {
    let relay = TestRelay::start(&["--no-record"]);
    let mut client = relay.open("/mcp");
    client.say_text("nonsense");
    assert_eq!(client.hear()["error"]["code"], -32700);
    client.say_text("[]");
    assert_eq!(client.hear()["error"]["code"], -32600);
    client.socket.send(Message::binary(vec![0xff, 0])).unwrap();
    assert_eq!(client.hear()["error"]["code"], -32700);
    assert_eq!(
        client.ask(1, "createTab", &json!({}))["error"]["code"],
        -32002
    );
    let too_long = "x".repeat(300 << 10);
    client.say_text(&too_long);
    assert_eq!(u16::from(client.hear_close().code), 1009);
    drop(client);
    relay.until_counted("oversized", 1);
    let mut half_open = TcpStream::connect(&relay.program.address).unwrap();
    half_open.write_all(b"GET /mcp HTTP/1.1\r\nUpgr").unwrap();
    let plain = crate::programs::request(&relay.program.address, "GET", "/mcp", &[], b"");
    assert_eq!(plain.status, 426);
    let mut other = relay.client("ada", "l");
    assert!(other.ask(2, "list_extensions", &json!({}))["result"].is_object());
}

#[test]
fn a_flood_is_refused_and_the_other_client_is_served() {
    let relay = TestRelay::start(&["--no-record", "--connection-rate", "20"]);
    let mut extension = relay.extension("ada", "c");
    let mut flooder = relay.client("ada", "one");
    flooder.connect(2, "ext-c");
    for id in 100..200 {
        flooder.say(&json!({"id": id, "method": "getTabs"}));
    }
    let mut limited = 0;
    while limited < 10 {
        let heard = flooder.hear_command();
        assert_eq!(heard["error"]["code"], -32006, "{heard}");
        assert!(heard["error"]["data"]["retry_after_ms"].is_u64(), "{heard}");
        limited += 1;
    }
    let mut other = relay.client("ada", "two");
    other.connect(2, "ext-c");
    other.say(&json!({"id": "mine", "method": "getTabs"}));
    loop {
        let asked = extension.hear_command();
        if asked["id"].as_str().unwrap().ends_with(":mine") {
            break;
        }
    }
}

#[test]
fn another_users_token_does_not_renew_a_socket() {
    let relay = TestRelay::start(&["--no-record"]);
    let mut client = relay.client("ada", "l");
    let params = json!({"accessToken": relay.token("ada")});
    assert_eq!(
        client.ask(2, "mcp_handshake", &params)["result"]["user_id"],
        "ada"
    );
    let params = json!({"accessToken": relay.token("bob")});
    assert_eq!(
        client.ask(3, "mcp_handshake", &params)["error"]["code"],
        -32000
    );
    assert_eq!(u16::from(client.hear_close().code), 4401);
}

#[test]
fn expired_tokens_are_refused_with_4401() {
    let relay = TestRelay::start(&["--no-record"]);
    let key = SigningKey::from_file(&relay.file("secret")).unwrap();
    let request = TokenRequest {
        user: "ada".to_owned(),
        lifetime: Duration::from_secs(60),
        connection_url: None,
    };
    let past = SystemTime::now() - Duration::from_secs(120);
    let expired = issue(&key, &request, past).unwrap().token;
    let mut client = relay.open("/mcp");
    let params = json!({"accessToken": expired});
    assert_eq!(
        client.ask(1, "mcp_handshake", &params)["error"]["data"]["reason"],
        "auth_failed"
    );
    assert_eq!(u16::from(client.hear_close().code), 4401);
    let mut extension = relay.open("/extension");
    let asked = extension.hear();
    extension.say(&json!({"id": asked["id"], "result": {"accessToken": expired}}));
    assert_eq!(u16::from(extension.hear_close().code), 4401);
    let mut open = relay.client("ada", "l");
    assert_eq!(
        open.ask(2, "mcp_handshake", &params)["error"]["code"],
        -32000
    );
    assert_eq!(u16::from(open.hear_close().code), 4401);
}

#[test]
fn ids_of_another_users_connection_mean_nothing() {
    let relay = TestRelay::start(&["--no-record", "--multi-connection"]);
    let mut adas_browser = relay.extension("ada", "c");
    let mut ada = relay.client("ada", "l");
    let connection = ada.connect(2, "ext-c");
    let _own = relay.extension("mallory", "c");
    let mut mallory = relay.client("mallory", "l");
    mallory.connect(2, "ext-c");
    for method in ["getTabs", "createTab", "disconnect"] {
        mallory.say(&json!({"id": method, "method": method, "connectionId": connection}));
        let refused = mallory.hear_answer(&json!(method));
        assert_eq!(refused["error"]["code"], -32003, "{refused}");
    }
    ada.say(&json!({"id": "mine", "method": "getTabs"}));
    let asked = adas_browser.hear_command();
    assert_eq!(asked["id"], format!("{connection}:mine"));
}

#[test]
fn oversized_messages_hurt_only_their_sender() {
    let relay = TestRelay::start(&["--no-record", "--max-message", "1M"]);
    let mut extension = relay.extension("ada", "c");
    let mut client = relay.client("ada", "one");
    client.connect(2, "ext-c");
    let mut other = relay.client("ada", "two");
    let padding = |bytes: usize| json!({"x": "x".repeat(bytes)});
    let refused = client.ask(3, "getTabs", &padding(3 << 19));
    assert_eq!(refused["error"]["code"], -32007, "{refused}");
    client.say(&json!({"id": 4, "method": "getTabs"}));
    let asked = extension.hear_command();
    extension.say(&json!({"id": asked["id"], "result": padding(3 << 19)}));
    assert_eq!(client.hear_answer(&json!(4))["error"]["code"], -32007);
    client.say(&json!({"id": 5, "method": "getTabs", "params": padding(3 << 20)}));
    assert_eq!(u16::from(client.hear_close().code), 1009);
    drop(client);
    relay.until_counted("oversized", 1);
    assert!(other.ask(2, "list_extensions", &json!({}))["result"].is_object());
}

#[test]
fn garbage_after_the_handshake_hurts_nobody() {
    let relay = TestRelay::start(&["--no-record"]);
    let mut extension = relay.extension("ada", "c");
    let mut client = relay.client("ada", "l");
    client.connect(2, "ext-c");
    for (text, code) in [("nonsense", -32700), ("[]", -32600), ("{}", -32600)] {
        client.say_text(text);
        assert_eq!(client.hear()["error"]["code"], code, "{text}");
        extension.say_text(text);
    }
    extension.say(&json!({"id": "conn-none:1", "result": {}}));
    client.say(&json!({"id": 3, "method": "getTabs"}));
    let asked = extension.hear_command();
    extension.say(&json!({"id": asked["id"], "result": {"tabs": []}}));
    assert_eq!(client.hear_answer(&json!(3))["result"]["tabs"], json!([]));
}

#[test]
fn a_policy_file_holds_for_its_user_in_every_wrapping() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.toml");
    let text = "[default]\ndeny-method = [\"openTestPage\"]\n[users.guest]\nread-only = true\n";
    std::fs::write(&policy, text).unwrap();
    let relay = TestRelay::start(&["--no-record", "--policy", policy.to_str().unwrap()]);
    let mut browser = relay.extension("ada", "c");
    let mut ada = relay.client("ada", "l");
    ada.connect(2, "ext-c");
    let denied = ada.ask(3, "openTestPage", &json!({}));
    assert_eq!(denied["error"]["code"], -32008, "{denied}");
    ada.say(&json!({"id": 4, "method": "createTab", "params": {}}));
    assert_eq!(browser.hear_command()["method"], "createTab");
    let _browser = relay.extension("guest", "c");
    let mut guest = relay.client("guest", "l");
    guest.connect(2, "ext-c");
    for (id, (method, params)) in (3..).zip([
        ("createTab", json!({})),
        ("openTestPage", json!({})),
        ("Network.getCookies", json!({})),
        ("sendCommand", json!({"method": "Network.getCookies"})),
    ]) {
        let denied = guest.ask(id, method, &params);
        assert_eq!(denied["error"]["code"], -32008, "{method}: {denied}");
    }
}

#[test]
fn claims_of_a_token_do_not_widen_the_policy() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.toml");
    std::fs::write(&policy, "[users.guest]\nread-only = true\n").unwrap();
    let relay = TestRelay::start(&["--no-record", "--policy", policy.to_str().unwrap()]);
    let _browser = relay.extension("guest", "c");
    let claims = json!({"user_id": "guest", "sub": "ada", "exp": 4_000_000_000_i64,
        "read-only": false, "read_only": false, "policy": {"read-only": false},
        "allow-method": ["*"], "deny-cdp": [], "scope": "admin"});
    let mut guest = relay.open("/mcp");
    let params = json!({"accessToken": signed(&relay, &claims)});
    let answer = guest.ask(1, "mcp_handshake", &params);
    assert_eq!(answer["result"]["user_id"], "guest", "{answer}");
    guest.connect(2, "ext-c");
    let denied = guest.ask(3, "createTab", &json!({}));
    assert_eq!(denied["error"]["code"], -32008, "{denied}");
}
