//! `token`: the access tokens of a relay, as a person issues and revokes them.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::records::sample::TestStore;

/// A folder with a config folder of its own.
struct TokenHome {
    place: TestStore,
}

impl TokenHome {
    /// One without a secret.
    fn empty() -> TokenHome {
        TokenHome {
            place: TestStore::new(),
        }
    }

    fn with_secret() -> TokenHome {
        let home = TokenHome::empty();
        home.print(&["init"], "");
        home
    }

    fn run(&self, words: &[&str], input: &str) -> Output {
        let mut command = self.place.command(&[&["token"], words].concat());
        let mut child = command
            .env("XDG_CONFIG_HOME", self.place.path("config"))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that reads no input may have ended already.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// The stdout of a command that succeeds.
    #[track_caller]
    fn print(&self, words: &[&str], input: &str) -> String {
        let output = self.run(words, input);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn issue(&self, user: &str) -> String {
        self.print(&["issue", "--user", user], "")
    }

    /// What `show --json` says about a token, and whether its exit code agrees.
    #[track_caller]
    fn show(&self, token: &str) -> Value {
        let output = self.run(&["show", "-", "--json"], token);
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
        let code = if shown["good"] == true { 0 } else { 1 };
        assert_eq!(output.status.code(), Some(code), "{shown}");
        shown
    }

    /// Everything that a command says, without the folder of the test.
    fn said(&self, words: &[&str], input: &str) -> String {
        let output = self.run(words, input);
        let text = format!(
            "$ token {}\n{}{}exit code {}\n",
            words.join(" "),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
            output.status.code().unwrap()
        );
        let folder = self.place.folder.path().display().to_string();
        text.replace(&folder, "FOLDER")
            .replace(&vector(""), "VECTORS/")
    }
}

/// A file of the token crate's vectors.
fn vector(name: &str) -> String {
    format!(
        "{}/../token/tests/vectors/{name}",
        env!("CARGO_MANIFEST_DIR")
    )
}

fn vector_token(name: &str) -> String {
    let text = std::fs::read_to_string(vector("tokens.json")).unwrap();
    let tokens: Value = serde_json::from_str(&text).unwrap();
    tokens[name].as_str().unwrap().to_owned()
}

#[test]
fn a_token_is_issued_and_shown() {
    let home = TokenHome::with_secret();
    let secret = home.place.path("config/mcp-proxy/relay/secret");
    assert_eq!(
        secret.metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
    let url = "wss://relay.example.com/mcp";
    let words = [
        "issue",
        "--user",
        "alice",
        "--ttl",
        "12h",
        "--connection-url",
        url,
    ];
    let token = home.print(&words, "");
    assert_eq!(token.lines().count(), 1);
    let shown = home.show(&token);
    assert_eq!(shown["good"], true);
    assert_eq!(shown["reason"], Value::Null);
    assert_eq!(shown["header"]["alg"], "HS256");
    let claims = &shown["claims"];
    assert_eq!(claims["user_id"], "alice");
    assert_eq!(claims["connection_url"], url);
    let lifetime = claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap();
    assert_eq!(lifetime, 12 * 3600);
    let text = home.print(&["show", token.trim()], "");
    assert!(text.contains("alice") && text.contains("11h 59m"), "{text}");
}

#[test]
fn a_token_lasts_three_weeks_by_default() {
    let home = TokenHome::with_secret();
    let claims = &home.show(&home.issue("alice"))["claims"];
    let lifetime = claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap();
    assert_eq!(lifetime, 21 * 86_400);
}

#[test]
fn tokens_are_revoked_one_by_one_and_by_user() {
    let home = TokenHome::with_secret();
    let tokens = [(); 3].map(|()| home.issue("alice"));
    let of_bob = home.issue("bob");
    home.print(&["revoke", "-"], &tokens[0]);
    let id = home.show(&tokens[1])["claims"]["jti"]
        .as_str()
        .unwrap()
        .to_owned();
    home.print(&["revoke", &id], "");
    let good = |token: &str| home.show(token)["good"].clone();
    assert_eq!(
        tokens.each_ref().map(|token| good(token)),
        [false, false, true]
    );

    home.print(&["revoke", "user:alice"], "");
    assert_eq!(good(&tokens[2]), false);
    assert_eq!(good(&of_bob), true);
    // A script revokes and issues within one second: the new token is good.
    assert_eq!(good(&home.issue("alice")), true);
}

#[test]
fn a_private_key_signs_and_its_public_key_verifies() {
    let home = TokenHome::empty();
    for name in ["rsa", "ec", "ed25519"] {
        let key = vector(&format!("{name}.key.pem"));
        let token = home.print(&["issue", "--user", "alice", "--secret-file", &key], "");
        let public = vector(&format!("{name}.pub.pem"));
        home.print(&["show", "-", "--public-key", &public], &token);
    }
    let token = vector_token("es256 kid ec-1");
    let shown = home.said(
        &["show", "-", "--json", "--jwks", &vector("jwks.json")],
        &token,
    );
    assert!(shown.contains("\"ec-1\""), "{shown}");
}

#[test]
fn a_token_that_ended_and_one_that_cannot_be_verified() {
    let home = TokenHome::empty();
    let shown = home.show(&vector_token("hs256"));
    assert_eq!(shown["good"], Value::Null);
    assert_eq!(shown["claims"]["jti"], "token-1");
    let words = ["show", "-", "--json", "--secret-file", &vector("secret")];
    let output = home.run(&words, &vector_token("expired long ago"));
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&shown["good"], output.status.code()),
        (&Value::Bool(false), Some(1))
    );
    assert_eq!(shown["expires_at"], "1970-01-01T00:00:00.000000Z");
}

#[test]
fn what_is_said_about_tokens_that_are_not_good() {
    let home = TokenHome::empty();
    let secret = vector("secret");
    let mut said = String::new();
    for name in ["other secret", "none", "exp string"] {
        let words = ["show", "-", "--secret-file", &secret];
        said.push_str(&home.said(&words, &vector_token(name)));
    }
    insta::assert_snapshot!("token-refused", said);
}

#[test]
fn mistakes_with_tokens_are_named() {
    let home = TokenHome::empty();
    let mut said = String::new();
    let mut say = |words: &[&str], input: &str| said.push_str(&home.said(words, input));
    say(&["issue", "--user", "alice"], "");
    say(&["init"], "");
    say(&["init"], "");
    say(&["issue"], "");
    say(&["issue", "--user", "alice", "--ttl", "soon"], "");
    say(&["issue", "--user", "alice", "--ttl", "0s"], "");
    say(&["issue", "--user", ""], "");
    say(
        &["issue", "--user", "alice", "--connection-url", "https://x/"],
        "",
    );
    say(
        &["issue", "--user", "alice", "--secret-file", "missing"],
        "",
    );
    say(&["show", "hello"], "");
    say(&["show", "-"], "");
    say(
        &["show", "-", "--public-key", &vector("secret")],
        &vector_token("hs256"),
    );
    say(
        &["show", "-", "--jwks", &vector("secret")],
        &vector_token("hs256"),
    );
    say(&["show", "-", "--jwks", "a", "--public-key", "b"], "");
    say(&["revoke", "user:"], "");
    say(&["revoke", "-"], "");
    say(&["revoke", "-"], &vector_token("least"));
    say(&["revoke", "eyJhbGciOiJIUzI1NiJ9.eyJ"], "");
    say(&["revoke", "eyJhbGciOiJIUzI1NiJ9"], "");
    say(&["revoke", "bob"], "");
    say(&["revoke", "jti:550e8400-e29b"], "");
    insta::assert_snapshot!("token-mistakes", said);
}

#[test]
fn a_user_who_is_revoked_for_good_gets_no_token() {
    let home = TokenHome::with_secret();
    let revoked = home.place.path("revoked");
    std::fs::write(&revoked, "# left the company\nuser:mallory\n").unwrap();
    let revoked = revoked.to_str().unwrap();
    let words = ["issue", "--user", "mallory", "--revoked-file", revoked];
    let output = home.run(&words, "");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
}
