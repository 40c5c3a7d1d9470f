//! Tokens of our own.

use std::time::{Duration, UNIX_EPOCH};

use mcp_proxy_token::{
    DEFAULT_LIFETIME, DecodedToken, IssueError, SigningKey, TokenError, TokenRequest, issue,
};

use crate::vectors::{now, public_key, secret, vector, verifiers};

fn request(user: &str) -> TokenRequest {
    TokenRequest {
        user: user.to_owned(),
        lifetime: DEFAULT_LIFETIME,
        connection_url: Some("wss://relay.example.com/mcp".to_owned()),
    }
}

#[test]
fn what_a_key_signs_its_other_half_verifies_and_no_other_key() {
    for file in ["secret", "rsa.key.pem", "ec.key.pem", "ed25519.key.pem"] {
        let key = SigningKey::from_file(&vector(file)).unwrap();
        let issued = issue(&key, &request("alice"), now()).unwrap();
        for (name, verifier, _) in verifiers().iter().take(4) {
            let outcome = verifier.verify(&issued.token, now());
            if file.starts_with(name) {
                let token = outcome.unwrap();
                assert_eq!(token.user, "alice");
                assert_eq!(token.token_id.as_ref(), Some(&issued.token_id));
                assert_eq!(token.issued_at, Some(now()));
                assert_eq!(token.expires_at, now() + DEFAULT_LIFETIME);
                assert_eq!(token.expires_at, issued.expires_at);
                assert_eq!(token.connection_url, request("alice").connection_url);
            } else {
                assert_eq!(outcome, Err(TokenError::WrongAlgorithm), "{file} {name}");
            }
        }
    }
}

#[test]
fn two_tokens_have_two_names() {
    let key = SigningKey::from_file(&vector("secret")).unwrap();
    let names = [(); 2].map(|()| issue(&key, &request("alice"), now()).unwrap().token_id);
    assert_ne!(names[0], names[1]);
    assert!(names[0].bytes().all(|byte| byte.is_ascii_hexdigit()));
}

#[test]
fn a_new_token_says_nothing_else() {
    let key = SigningKey::from_file(&vector("secret")).unwrap();
    let mut request = request("alice");
    request.connection_url = None;
    let issued = issue(&key, &request, now()).unwrap();
    let decoded = DecodedToken::decode(&issued.token).unwrap();
    let names = |map: &serde_json::Map<String, serde_json::Value>| {
        map.keys().cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&decoded.header), "alg typ");
    assert_eq!(names(&decoded.claims), "user_id email iat exp jti");
}

#[test]
fn names_and_times_that_no_verifier_would_accept() {
    let key = SigningKey::from_file(&vector("secret")).unwrap();
    for user in ["", " ", "a\nb", " a", "a\u{0}", &"x".repeat(257)] {
        let refused = issue(&key, &request(user), now()).unwrap_err();
        assert!(matches!(refused, IssueError::UserName), "{user:?}");
    }
    for user in ["a b", "ä".repeat(256).as_str(), "#1", "user:x"] {
        let issued = issue(&key, &request(user), now()).unwrap();
        assert_eq!(secret().verify(&issued.token, now()).unwrap().user, user);
    }
    for lifetime in [Duration::ZERO, Duration::from_millis(999), Duration::MAX] {
        let request = TokenRequest {
            lifetime,
            ..request("alice")
        };
        let refused = issue(&key, &request, now()).unwrap_err();
        assert!(matches!(refused, IssueError::Lifetime), "{lifetime:?}");
    }
    let before_1970 = UNIX_EPOCH - Duration::from_secs(10);
    assert!(issue(&key, &request("alice"), before_1970).is_ok());
}

#[test]
fn a_private_key_does_not_show_itself() {
    for file in ["secret", "rsa.key.pem", "ec.key.pem", "ed25519.key.pem"] {
        let shown = format!("{:?}", SigningKey::from_file(&vector(file)).unwrap());
        assert!(!shown.contains("test-only"), "{shown}");
    }
    assert!(!format!("{:?}", secret()).contains("test-only"));
    assert!(!format!("{:?}", public_key("rsa.pub.pem")).is_empty());
}
