//! Secrets and keys in files.

use std::error::Error;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use mcp_proxy_token::{KeyError, SigningKey, TokenVerifier, create_secret};

use crate::vectors::{now, tokens, vector};

/// The error and its causes, without the folder of the test.
fn text(error: &KeyError, folder: &Path) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    let vectors = vector("");
    text.replace(&format!("{}/", folder.display()), "")
        .replace(&vectors.display().to_string(), "")
}

#[test]
fn a_new_secret_is_private_random_and_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("relay/secret");
    create_secret(&path).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    let first = std::fs::read_to_string(&path).unwrap();
    assert_eq!(first.len(), 44);
    assert!(TokenVerifier::from_secret_file(&path).is_ok());

    let refused = create_secret(&path).unwrap_err();
    assert!(matches!(refused, KeyError::Create { .. }), "{refused}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), first);

    let other = folder.path().join("other");
    create_secret(&other).unwrap();
    assert_ne!(std::fs::read_to_string(&other).unwrap(), first);
}

#[test]
fn a_link_is_not_followed_to_a_place_for_a_new_secret() {
    let folder = tempfile::tempdir().unwrap();
    let (link, target) = (folder.path().join("link"), folder.path().join("target"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    assert!(create_secret(&link).is_err());
    assert!(!target.exists());
}

#[test]
fn the_secret_is_the_text_without_the_line_break_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    let text = std::fs::read_to_string(vector("secret")).unwrap();
    let token = &tokens()["hs256"];
    for (ending, is_same) in [
        ("", true),
        ("\n", true),
        ("\r\n", true),
        (" ", false),
        ("\n\n", false),
    ] {
        std::fs::write(&path, format!("{}{ending}", text.trim_end())).unwrap();
        let verifier = TokenVerifier::from_secret_file(&path).unwrap();
        assert_eq!(verifier.verify(token, now()).is_ok(), is_same, "{ending:?}");
    }
}

#[test]
fn keys_that_cannot_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let short = write("short", b"0123456789012345678901234567890\n");
    let words = write(
        "words",
        b"not a key at all, but long enough to be a secret\n",
    );
    let broken = write(
        "broken.pem",
        b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
    );
    let missing = folder.path().join("missing");
    let secret = |path: &Path| TokenVerifier::from_secret_file(path).unwrap_err();
    let public = |path: &Path| TokenVerifier::from_public_key_file(path).unwrap_err();
    let set = |json: &str| TokenVerifier::from_jwks(json.as_bytes()).unwrap_err();
    let signing = |path: &Path| SigningKey::from_file(path).unwrap_err();
    let errors = [
        secret(&missing),
        secret(&short),
        secret(&vector("rsa.pub.pem")),
        public(&missing),
        public(&words),
        public(&broken),
        public(&vector("secret")),
        public(&vector("rsa.key.pem")),
        public(&vector("rsa-1024.pub.pem")),
        public(&vector("rsa-pkcs1.pub.pem")),
        public(&vector("ec-p384.pub.pem")),
        signing(&short),
        signing(&vector("ec.pub.pem")),
        set(""),
        set("[]"),
        set(r#"{"keys":[]}"#),
        set(r#"{"keys":[1,{"kty":"oct","k":"c2VjcmV0"},{"kty":"RSA","n":"","e":"AQAB"}]}"#),
        create_secret(&short).unwrap_err(),
    ];
    let lines = errors.map(|error| text(&error, folder.path()));
    insta::assert_snapshot!("key-errors", lines.join("\n"));
}
