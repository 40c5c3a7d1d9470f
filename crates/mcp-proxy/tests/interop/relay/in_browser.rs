//! Clients that drive a real Chromium through the relay.

use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::RelayKeys;
use super::browser::Browser;
use super::client::RelayClient;
use crate::fixtures::{EXTENSION_ID, PROXY};
use crate::process::RunningProgram;
use crate::texts;

impl RelayClient {
    /// Opens a tab and returns the extension's description of it.
    fn create_tab(&mut self, url: &str) -> Value {
        let mut created = self.ask("createTab", &json!({"url": url}));
        assert_eq!(created["tab"]["url"], url);
        created["tab"].take()
    }

    fn connect(&mut self, extension_id: &str) {
        let connected = self.ask("connect", &json!({"extension_id": extension_id}));
        assert_eq!(connected["extension_id"], extension_id);
    }

    fn cdp(&mut self, method: &str, params: &Value) -> Value {
        self.ask(
            "forwardCDPCommand",
            &json!({"method": method, "params": params}),
        )
    }

    /// The value of an expression in the client's tab.
    fn evaluate(&mut self, expression: &str) -> Value {
        self.cdp("Runtime.evaluate", &evaluation(expression))["result"]["value"].take()
    }
}

fn evaluation(expression: &str) -> Value {
    json!({"expression": expression, "awaitPromise": true, "returnByValue": true})
}

/// The title of the page, once it is loaded.
const TITLE: &str = "new Promise(done => {
    const look = () => document.readyState === 'complete' && done(document.title);
    addEventListener('load', look);
    look();
})";

#[test]
fn a_client_drives_a_real_browser() {
    let keys = RelayKeys::new();
    let (_relay, url) = keys.start(0, &["--extension-id", EXTENSION_ID]);
    let token = keys.token("ada");
    let browser = Browser::start(&url, &token, &[]);
    let extension = browser.extension_id();
    assert_eq!(extension, format!("ext-chrome-{EXTENSION_ID}"));
    let mut client = RelayClient::open(&url, &token, "laptop");
    let listed = client.ask("list_extensions", &json!({}));
    assert_eq!(
        listed["extensions"],
        json!([{"id": extension, "name": "Chromium of a test", "connected": true}])
    );
    client.connect(&extension);

    let tab = client.create_tab(&browser.page("one"));
    assert_eq!(client.evaluate(TITLE), "/one");
    let navigated = client.cdp("Page.navigate", &json!({"url": browser.page("two")}));
    assert_eq!(navigated["errorText"], Value::Null);
    assert_eq!(client.evaluate(TITLE), "/two");
    for event in ["mousePressed", "mouseReleased"] {
        let params = json!({"type": event, "x": 20, "y": 20, "button": "left", "clickCount": 1});
        client.cdp("Input.dispatchMouseEvent", &params);
    }
    assert_eq!(client.evaluate("document.title"), "clicked");
    let shown = client.cdp("Page.captureScreenshot", &json!({"format": "png"}));
    assert_eq!(shown["currentTab"]["id"], tab["id"]);
    let picture = STANDARD.decode(shown["data"].as_str().unwrap()).unwrap();
    assert_eq!(png_chunks(&picture), ["IHDR", "IDAT", "IEND"]);

    let tabs = client.ask("getTabs", &json!({}));
    let tabs = tabs["tabs"].as_array().unwrap();
    let index = tabs.iter().position(|listed| listed["id"] == tab["id"]);
    client.ask("activateTab", &json!({"tabIndex": index}));
    client.ask("closeTab", &json!({"index": index}));
    let left = client.ask("getTabs", &json!({}));
    assert_eq!(left["count"], tabs.len() - 1);
}

#[test]
fn d12_a_browser_is_driven_without_tokens() {
    let mut relay = Command::new(PROXY);
    relay.args(["relay", "--direct", "--no-record", "--headless"]);
    relay.args(["--listen-port", "0", "--extension-id", EXTENSION_ID]);
    let relay = RunningProgram::start(&mut relay);
    let url = relay.wait_for(texts::LISTENING_ON);
    let url = url.trim_end_matches('/');
    let browser = Browser::start(url, "", &[]);
    browser.extension_id_of("local");
    let mut client = RelayClient::open_directly(url);
    let tab = client.create_tab(&browser.page("one"));
    assert_eq!(client.evaluate(TITLE), "/one");
    client.cdp("Page.navigate", &json!({"url": browser.page("two")}));
    assert_eq!(client.evaluate(TITLE), "/two");
    client.ask("closeTab", &json!({"tabId": tab["id"]}));
}

/// The kinds of the chunks of a PNG, each once. Fails if it is cut off or not one.
fn png_chunks(bytes: &[u8]) -> Vec<String> {
    let mut rest = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n").expect("a PNG");
    let mut kinds = Vec::new();
    while let Some((length, _)) = rest.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        kinds.push(String::from_utf8(rest[4..8].to_vec()).unwrap());
        rest = &rest[12 + length..];
    }
    kinds.dedup();
    kinds.retain(|kind| kind.starts_with('I'));
    kinds
}

#[test]
fn two_clients_of_one_browser_see_and_reach_their_own_tabs() {
    let keys = RelayKeys::new();
    let (_relay, url) = keys.start(0, &[]);
    let token = keys.token("ada");
    let browser = Browser::start(&url, &token, &[]);
    let extension = browser.extension_id();
    let mut clients = ["one", "two"].map(|name| RelayClient::open(&url, &token, name));
    let mut tabs = Vec::new();
    for (client, name) in clients.iter_mut().zip(["one", "two"]) {
        client.connect(&extension);
        tabs.push(client.create_tab(&browser.page(name)));
    }
    let command = json!({"method": "Runtime.evaluate", "params": evaluation("document.title")});
    for _ in 0..20 {
        let sent = clients
            .each_mut()
            .map(|client| client.say("forwardCDPCommand", &command));
        for (at, client) in clients.iter_mut().enumerate() {
            let heard = client.hear(sent[at]);
            assert_eq!(heard["result"]["value"], ["/one", "/two"][at], "{heard}");
            assert_eq!(heard["currentTab"]["id"], tabs[at]["id"], "{heard}");
        }
    }

    let [one, two] = &mut clients;
    let listed = one.ask("getTabs", &json!({}));
    let listed = listed["tabs"].as_array().unwrap();
    let foreign = listed.iter().position(|tab| tab["id"] == tabs[1]["id"]);
    let change = evaluation("document.title = 'changed'");
    let attempts = [
        (
            "forwardCDPCommand",
            json!({"tabId": tabs[1]["id"], "method": "Runtime.evaluate", "params": change}),
        ),
        ("selectTab", json!({"tabIndex": foreign})),
        ("closeTab", json!({"index": foreign})),
    ];
    for (method, params) in attempts {
        let refused = one.ask_in_vain(method, &params);
        assert_eq!(refused["code"], -32003, "{refused}");
        assert_eq!(refused["data"]["reason"], "foreign_tab");
    }
    assert_eq!(two.evaluate("document.title"), "/two");
}

#[test]
fn a_browser_comes_back_after_a_restart_with_its_id_and_its_tabs() {
    let keys = RelayKeys::new();
    let (relay, url) = keys.start(0, &[]);
    let token = keys.token("ada");
    let browser = Browser::start(&url, &token, &[]);
    let extension = browser.extension_id();
    let mut client = RelayClient::open(&url, &token, "laptop");
    client.connect(&extension);
    let tab = client.create_tab(&browser.page("one"));
    drop(relay);
    assert_eq!(u16::from(client.hear_close().code), 1012);

    let port = url.rsplit_once(':').unwrap().1.parse().unwrap();
    let (_relay, url) = keys.start(port, &[]);
    assert_eq!(browser.extension_id(), extension);
    let mut client = RelayClient::open(&url, &token, "laptop");
    client.connect(&extension);
    let listed = client.ask("getTabs", &json!({}));
    let listed = listed["tabs"].as_array().unwrap();
    let index = listed.iter().position(|listed| listed["id"] == tab["id"]);
    client.ask("selectTab", &json!({"tabIndex": index}));
    assert_eq!(client.evaluate(TITLE), "/one");
}

/// A browser stops a service worker that nothing happens to for 30 s. This one has no tab, no alarm and no command to keep
/// it awake.
#[test]
fn status_messages_keep_the_service_worker_awake() {
    let keys = RelayKeys::new();
    let (_relay, url) = keys.start(0, &[]);
    let token = keys.token("ada");
    let browser = Browser::start(&url, &token, &[]);
    let extension = browser.extension_id();
    let mut client = RelayClient::open(&url, &token, "laptop");
    client.connect(&extension);
    let started = client.ask("get_build_info", &json!({}));
    // One every 20 s.
    for _ in 0..2 {
        client.hear_notification("status");
    }
    assert_eq!(client.ask("get_build_info", &json!({})), started);
}

#[test]
fn a_large_answer_of_a_browser_arrives_whole() {
    const LENGTH: usize = 16 << 20;
    let keys = RelayKeys::new();
    let (_relay, url) = keys.start(0, &[]);
    let token = keys.token("ada");
    let browser = Browser::start(&url, &token, &[]);
    let extension = browser.extension_id();
    let mut client = RelayClient::open(&url, &token, "laptop");
    client.connect(&extension);
    client.create_tab(&browser.page("one"));
    let text = client.evaluate(&format!("'0123456789abcdef'.repeat({LENGTH} / 16)"));
    let text = text.as_str().unwrap();
    assert_eq!(text.len(), LENGTH);
    let pieces = text.as_bytes().chunks(16);
    assert_eq!(
        pieces.filter(|piece| *piece == b"0123456789abcdef").count(),
        LENGTH / 16
    );
}

#[test]
fn a_browser_connects_with_tls() {
    let keys = RelayKeys::new();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (keys.file("cert.pem"), keys.file("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let (_relay, url) = keys.start(0, &["--tls-cert", &cert, "--tls-key", &key]);
    let port = url.rsplit_once(':').unwrap().1;
    let token = keys.token("ada");
    let public_key = rcgen::PublicKeyData::subject_public_key_info(&made.signing_key);
    let hash = ring::digest::digest(&ring::digest::SHA256, &public_key);
    let trusted = STANDARD.encode(hash);
    let browser = Browser::start(
        &format!("wss://localhost:{port}"),
        &token,
        &[&format!("--ignore-certificate-errors-spki-list={trusted}")],
    );
    let extension = browser.extension_id();
    let mut client = RelayClient::open_tls(port, made.cert.der().clone(), &token);
    client.connect(&extension);
    client.create_tab(&browser.page("one"));
    assert_eq!(client.evaluate(TITLE), "/one");
}
