//! `relay --jwks URL`: keys that are fetched.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{KeyPair, SigningKey as _};
use serde_json::{Value, json};

use super::TestRelay;
use crate::programs::PROXY;

/// A key of an identity provider.
struct IssuerKey {
    name: &'static str,
    pair: KeyPair,
}

impl IssuerKey {
    fn new(name: &'static str) -> IssuerKey {
        let pair = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        IssuerKey { name, pair }
    }

    fn token(&self, user: &str) -> String {
        self.token_until(user, 4_000_000_000)
    }

    fn token_until(&self, user: &str, expires_at: u64) -> String {
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = part(json!({"alg": "EdDSA", "kid": self.name}));
        let claims = part(json!({"sub": user, "exp": expires_at}));
        let signed = format!("{header}.{claims}");
        let signature = self.pair.sign(signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

fn key_set(keys: &[&IssuerKey]) -> String {
    let keys = keys.iter().map(|key| {
        json!({"kty": "OKP", "crv": "Ed25519", "use": "sig", "kid": key.name,
            "x": URL_SAFE_NO_PAD.encode(key.pair.public_key_raw())})
    });
    json!({"keys": keys.collect::<Vec<_>>()}).to_string()
}

/// The server of an identity provider.
struct KeyServer {
    url: String,
    /// Status, further header lines and body of its answers.
    answer: Arc<Mutex<(u16, String, String)>>,
    asked: Arc<AtomicUsize>,
}

impl KeyServer {
    fn start(body: &str) -> KeyServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let answer = Arc::new(Mutex::new((200, String::new(), body.to_owned())));
        let asked = Arc::new(AtomicUsize::new(0));
        let (shared, counted) = (Arc::clone(&answer), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
                serve(stream, &shared.lock().unwrap());
            }
        });
        KeyServer { url, answer, asked }
    }

    fn set(&self, status: u16, body: &str) {
        *self.answer.lock().unwrap() = (status, String::new(), body.to_owned());
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn serve(mut stream: TcpStream, (status, more, body): &(u16, String, String)) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    while lines
        .next()
        .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
    {}
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\n{more}content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body.as_bytes());
}

fn start(server: &KeyServer) -> TestRelay {
    TestRelay::start_without_keys(&["--no-record", "--jwks", &server.url])
}

/// The answer to a handshake with this token.
fn handshake(relay: &TestRelay, token: &str) -> Value {
    let mut client = relay.open("/mcp");
    client.ask(1, "mcp_handshake", &json!({"accessToken": token}))
}

#[test]
fn keys_are_fetched_and_a_new_key_is_found_when_a_token_names_it() {
    let (old, new) = (IssuerKey::new("old"), IssuerKey::new("new"));
    let server = KeyServer::start(&key_set(&[&old]));
    let relay = start(&server);
    assert_eq!(
        handshake(&relay, &old.token("ada"))["result"]["user_id"],
        "ada"
    );
    assert_eq!(server.asked(), 1);
    server.set(200, &key_set(&[&old, &new]));
    assert_eq!(
        handshake(&relay, &new.token("ada"))["result"]["user_id"],
        "ada"
    );
    assert_eq!(server.asked(), 2);
    // Names of keys that somebody makes up do not cause further fetches.
    let unknown = IssuerKey::new("unknown");
    for _ in 0..3 {
        let refused = handshake(&relay, &unknown.token("ada"));
        assert_eq!(refused["error"]["code"], -32000);
    }
    assert_eq!(server.asked(), 2);
}

#[test]
fn a_client_renews_with_a_token_of_a_new_key() {
    let (old, new) = (IssuerKey::new("old"), IssuerKey::new("new"));
    let server = KeyServer::start(&key_set(&[&old]));
    let relay = start(&server);
    let mut client = relay.open("/mcp");
    client.ask(
        1,
        "mcp_handshake",
        &json!({"accessToken": old.token("ada")}),
    );
    server.set(200, &key_set(&[&new]));
    // Messages behind the renewal wait for it.
    let params = json!({"accessToken": new.token("ada")});
    client.say(&json!({"id": 2, "method": "mcp_handshake", "params": params}));
    client.say(&json!({"id": 3, "method": "list_extensions"}));
    let renewed = client.hear();
    assert_eq!(
        (&renewed["id"], &renewed["result"]["user_id"]),
        (&json!(2), &json!("ada")),
        "{renewed}"
    );
    assert!(client.hear_answer(&json!(3))["result"].is_object());
    assert_eq!(server.asked(), 2);
}

#[test]
fn an_extension_renews_with_a_token_of_a_new_key() {
    let (old, new) = (IssuerKey::new("old"), IssuerKey::new("new"));
    let server = KeyServer::start(&key_set(&[&old]));
    let relay = start(&server);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut extension = relay.open("/extension");
    let first = extension.hear_method("authenticate");
    let token = old.token_until("ada", now.as_secs() + 50);
    extension.say(&json!({"id": first["id"], "result": {"accessToken": token, "client_id": "c"}}));
    // It is asked again because the token expires soon.
    let again = extension.hear_method("authenticate");
    server.set(200, &key_set(&[&new]));
    let token = new.token("ada");
    extension.say(&json!({"id": again["id"], "result": {"accessToken": token}}));
    while server.asked() < 2 {
        std::thread::yield_now();
    }
    // What it says next is read after the token was checked.
    let mut client = relay.open("/mcp");
    client.ask(1, "mcp_handshake", &json!({"accessToken": token}));
    client.connect(2, "ext-c");
    client.say(&json!({"id": 3, "method": "getTabs"}));
    let asked = extension.hear_command();
    extension.say(&json!({"id": asked["id"], "result": {"tabs": []}}));
    assert!(client.hear_answer(&json!(3))["result"].is_object());
    assert_eq!(relay.health()["refused_tokens"], 0);
}

#[test]
fn known_keys_stay_in_use_when_a_fetch_fails() {
    let (old, new) = (IssuerKey::new("old"), IssuerKey::new("new"));
    let server = KeyServer::start(&key_set(&[&old]));
    let relay = start(&server);
    let mut client = relay.open("/mcp");
    let own = json!({"accessToken": old.token("ada")});
    client.ask(1, "mcp_handshake", &own);
    server.set(500, "");
    // Whether a token of an unknown key is good cannot be said now.
    let mut stranger = relay.open("/mcp");
    let unknown = json!({"accessToken": new.token("ada")});
    let refused = stranger.ask(1, "mcp_handshake", &unknown);
    assert_eq!(refused["error"]["code"], -32000);
    assert_eq!(refused["error"]["data"]["reason"], "keys_unavailable");
    assert_eq!(u16::from(stranger.hear_close().code), 1013);
    assert!(!refused.to_string().contains(&server.url));
    // A client that has shown a good one stays.
    let renewed = client.ask(2, "mcp_handshake", &unknown);
    assert_eq!(renewed["error"]["data"]["reason"], "keys_unavailable");
    assert!(client.ask(3, "list_extensions", &json!({}))["result"].is_object());
    assert_eq!(server.asked(), 2);
    assert_eq!(
        handshake(&relay, &old.token("ada"))["result"]["user_id"],
        "ada"
    );
    let (_, said) = relay.program.end("-TERM");
    let said: Vec<_> = said.lines().filter(|line| line.contains("500")).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains(&server.url), "{said:?}");
}

#[test]
fn a_start_without_keys_fails_and_says_why() {
    let large = "x".repeat(300 << 10);
    let empty = json!({"keys": []}).to_string();
    for (status, more, body) in [
        (404, "", "{}"),
        (200, "", "nonsense"),
        (200, "", &*empty),
        (200, "", &*large),
        (302, "location: http://localhost:1/keys\r\n", ""),
        (302, "location: /keys\r\n", ""),
    ] {
        let server = KeyServer::start("");
        *server.answer.lock().unwrap() = (status, more.to_owned(), body.to_owned());
        let (code, said) = fails(&server.url);
        assert_eq!(code, Some(1), "{status} {more}: {said}");
        assert!(said.contains(&server.url), "{said}");
        assert!(server.asked() <= 6, "{} requests", server.asked());
    }
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/keys", free.local_addr().unwrap());
    drop(free);
    assert_eq!(fails(&url).0, Some(1));
}

#[test]
fn keys_are_not_fetched_over_plain_http_or_from_odd_urls() {
    for url in [
        "http://issuer.test/keys",
        "http://127.0.0.1.issuer.test/keys",
        "ftp://127.0.0.1/keys",
        "https:///keys",
        "https://",
    ] {
        let (code, said) = fails(url);
        assert_eq!(code, Some(2), "{url}: {said}");
    }
}

/// The exit code and stderr of a relay that does not start.
fn fails(url: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let ended = Command::new(PROXY)
        .args(["relay", "--listen-port", "0", "--no-record", "--jwks", url])
        .env("XDG_CONFIG_HOME", folder.path())
        .env("XDG_STATE_HOME", folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    (ended.status.code(), said)
}
