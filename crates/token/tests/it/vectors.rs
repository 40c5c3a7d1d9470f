//! Tokens that PyJWT made, good and hostile. `tests/vectors/make.py` says how.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_proxy_token::{TokenError, TokenVerifier, VerifiedToken};

/// The time at which the tokens are tried.
const NOW: u64 = 1_800_000_000;
const USER: &str = "83898119-db4f-4848-9d27-ea328b73a4df";

pub fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(NOW)
}

pub fn vector(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/vectors")
        .join(name)
}

pub fn tokens() -> BTreeMap<String, String> {
    serde_json::from_slice(&std::fs::read(vector("tokens.json")).unwrap()).unwrap()
}

pub fn secret() -> TokenVerifier {
    TokenVerifier::from_secret_file(&vector("secret")).unwrap()
}

pub fn public_key(name: &str) -> TokenVerifier {
    TokenVerifier::from_public_key_file(&vector(name)).unwrap()
}

pub fn key_set() -> TokenVerifier {
    TokenVerifier::from_jwks(&std::fs::read(vector("jwks.json")).unwrap()).unwrap()
}

/// All verifiers, each with the one token without a `kid` that it is made for. The set has two RSA keys, and one of each
/// other kind.
pub fn verifiers() -> Vec<(&'static str, TokenVerifier, &'static [&'static str])> {
    vec![
        ("secret", secret(), &["hs256"]),
        ("rsa", public_key("rsa.pub.pem"), &["rs256"]),
        ("ec", public_key("ec.pub.pem"), &["es256"]),
        ("ed25519", public_key("ed25519.pub.pem"), &["eddsa"]),
        ("set", key_set(), &["es256", "eddsa"]),
    ]
}

fn verify(verifier: &TokenVerifier, name: &str) -> Result<VerifiedToken, TokenError> {
    verifier.verify(&tokens()[name], now())
}

#[test]
fn each_key_accepts_its_own_algorithm_and_no_other() {
    for (key, verifier, good) in verifiers() {
        for name in ["hs256", "rs256", "es256", "eddsa"] {
            let outcome = verify(&verifier, name);
            if good.contains(&name) {
                assert_eq!(outcome.unwrap().user, USER, "{key} {name}");
            } else if (key, name) == ("set", "rs256") {
                assert_eq!(outcome, Err(TokenError::AmbiguousKey));
            } else if (key, name) == ("set", "hs256") {
                assert_eq!(outcome, Err(TokenError::WrongAlgorithm));
            } else {
                assert_eq!(outcome, Err(TokenError::WrongAlgorithm), "{key} {name}");
            }
        }
    }
}

#[test]
fn the_claims_that_matter_are_returned() {
    let token = verify(&secret(), "hs256").unwrap();
    let expected = VerifiedToken {
        user: USER.to_owned(),
        expires_at: now() + Duration::from_secs(3600),
        issued_at: Some(now() - Duration::from_secs(60)),
        token_id: Some("token-1".to_owned()),
        connection_url: Some("wss://relay.example.com/mcp".to_owned()),
    };
    assert_eq!(token, expected);
    assert_eq!(verify(&secret(), "sub only").unwrap().user, "bob");
    assert_eq!(verify(&secret(), "user_id and sub").unwrap().user, USER);
    let least = verify(&secret(), "least").unwrap();
    assert_eq!(
        (least.token_id, least.issued_at, least.connection_url),
        (None, None, None)
    );
}

#[test]
fn unusual_but_good_tokens() {
    for name in [
        "fraction of a second",
        "null claims",
        "claims nested",
        "expired within leeway",
        "not before within leeway",
    ] {
        assert!(verify(&secret(), name).is_ok(), "{name}");
    }
}

#[test]
fn a_key_id_chooses_among_the_keys_of_a_set() {
    for name in ["rs256 kid rsa-1", "rs256 kid rsa-2", "es256 kid ec-1"] {
        assert!(verify(&key_set(), name).is_ok(), "{name}");
    }
    // A key that stands alone has no name that could be wrong.
    assert!(verify(&public_key("rsa.pub.pem"), "rs256 kid rsa-1").is_ok());
}

#[test]
fn key_ids_that_do_not_fit() {
    use TokenError::*;
    let cases = [
        ("kid unknown", UnknownKey),
        ("kid of another key", BadSignature),
        ("kid of another algorithm", WrongAlgorithm),
        ("kid of an encryption key", UnknownKey),
        ("kid of a secret", UnknownKey),
        ("kid of a short key", UnknownKey),
        ("kid number", Malformed),
        ("own key in header", AmbiguousKey),
    ];
    for (name, error) in cases {
        assert_eq!(verify(&key_set(), name), Err(error), "{name}");
        // A newer set may have a key that this one lacks.
        let lacks = key_set().lacks_key_of(&tokens()[name]);
        assert_eq!(lacks, error == UnknownKey, "{name}");
    }
    assert!(!key_set().lacks_key_of(&tokens()["rs256 kid rsa-1"]));
    assert!(!public_key("rsa.pub.pem").lacks_key_of(&tokens()["kid unknown"]));
    assert!(!key_set().lacks_key_of("nonsense"));
}

#[test]
fn a_public_key_is_never_a_secret() {
    let cases = [
        ("rsa.pub.pem", "hs256 with rsa pem"),
        ("rsa.pub.pem", "hs256 with rsa pem, trimmed"),
        ("ec.pub.pem", "hs256 with ec pem"),
        ("ed25519.pub.pem", "hs256 with ed25519 pem"),
    ];
    for (key, name) in cases {
        let outcome = verify(&public_key(key), name);
        assert_eq!(outcome, Err(TokenError::WrongAlgorithm), "{name}");
        let outcome = verify(&key_set(), name);
        assert_eq!(outcome, Err(TokenError::WrongAlgorithm), "{name}");
    }
    let outcome = verify(&public_key("rsa.pub.pem"), "rs256 signed by hs256");
    assert_eq!(outcome, Err(TokenError::BadSignature));
}

#[test]
fn signatures_in_another_form() {
    let cases = [
        ("rsa.pub.pem", "ps256", TokenError::WrongAlgorithm),
        ("ec.pub.pem", "es256 as der", TokenError::BadSignature),
        ("ec.pub.pem", "es256 of zeros", TokenError::BadSignature),
        ("ec.pub.pem", "es256 empty", TokenError::BadSignature),
    ];
    for (key, name, error) in cases {
        assert_eq!(verify(&public_key(key), name), Err(error), "{name}");
    }
}

#[test]
fn hostile_headers_and_signatures() {
    use TokenError::*;
    let cases = [
        ("none", WrongAlgorithm),
        ("none with signature", WrongAlgorithm),
        ("None", WrongAlgorithm),
        ("hs512", WrongAlgorithm),
        ("hs256 lower case", WrongAlgorithm),
        ("no alg", Malformed),
        ("alg twice", Malformed),
        ("alg number", Malformed),
        ("header a list", Malformed),
        ("crit", CriticalHeader),
        ("crit unknown", CriticalHeader),
        ("crit null", CriticalHeader),
        ("other secret", BadSignature),
        ("claims changed", BadSignature),
        ("header changed", BadSignature),
        ("signature cut", Malformed),
        ("signature padded", Malformed),
        ("four parts", Malformed),
        ("two parts", Malformed),
        ("encrypted", Malformed),
        ("standard base64", Malformed),
    ];
    for (name, error) in cases {
        assert_eq!(verify(&secret(), name), Err(error), "{name}");
    }
    // A token without a signature is good for nobody.
    for (key, verifier, _) in verifiers() {
        for name in ["none", "none with signature", "None"] {
            assert_eq!(verify(&verifier, name), Err(WrongAlgorithm), "{key} {name}");
        }
    }
}

#[test]
fn claims_that_are_wrong_although_they_are_signed() {
    use TokenError::*;
    let cases = [
        ("expired", Expired),
        ("expired long ago", Expired),
        ("not yet valid", NotYetValid),
        ("no exp", MissingClaim("exp")),
        ("exp null", MissingClaim("exp")),
        ("exp string", InvalidClaims),
        ("exp negative", InvalidClaim("exp")),
        ("exp huge", InvalidClaim("exp")),
        ("exp beyond floats", InvalidClaims),
        ("exp twice", InvalidClaims),
        ("user_id twice", InvalidClaims),
        ("user_id twice, escaped", InvalidClaims),
        ("nbf string", InvalidClaims),
        ("iat string", InvalidClaims),
        ("no user", MissingClaim("user_id")),
        ("user empty", InvalidClaim("user_id")),
        ("user empty, sub set", InvalidClaim("user_id")),
        ("user number", InvalidClaims),
        ("user with a line break", InvalidClaim("user_id")),
        ("user with spaces around", InvalidClaim("user_id")),
        ("user of 257 letters", InvalidClaim("user_id")),
        ("jti with a line break", InvalidClaim("jti")),
        ("jti number", InvalidClaims),
        ("claims a list", InvalidClaims),
        ("claims not json", InvalidClaims),
        ("claims and more", InvalidClaims),
        ("claims not utf-8", BadSignature),
    ];
    for (name, error) in cases {
        assert_eq!(verify(&secret(), name), Err(error), "{name}");
    }
}

#[test]
fn garbage_is_refused_by_every_key() {
    let huge = tokens()["hs256"].repeat(100);
    let cases = [
        "", ".", "..", "...", "a.b.c", "é.é.é", "eyJ", "\0.\0.\0", " ", &huge,
    ];
    for (key, verifier, _) in verifiers() {
        for garbage in cases {
            assert!(
                verifier.verify(garbage, now()).is_err(),
                "{key} {garbage:?}"
            );
        }
    }
    assert_eq!(secret().verify(&huge, now()), Err(TokenError::TooLong));
}

#[test]
fn a_token_ends_and_begins_by_the_time_that_is_passed_in() {
    let (verifier, token) = (secret(), tokens().remove("hs256").unwrap());
    let at = |seconds| verifier.verify(&token, now() + Duration::from_secs(seconds));
    assert!(at(3604).is_ok());
    assert_eq!(at(3605), Err(TokenError::Expired));
    assert!(
        verifier
            .verify(&token, UNIX_EPOCH - Duration::from_secs(1))
            .is_ok()
    );
}

#[test]
fn every_vector_is_tried() {
    let this_file = include_str!("vectors.rs");
    for name in tokens().keys() {
        assert!(this_file.contains(&format!("\"{name}\"")), "{name}");
    }
}

#[test]
fn what_is_said_about_a_refused_token() {
    use TokenError::*;
    let errors = [
        TooLong,
        Malformed,
        WrongAlgorithm,
        CriticalHeader,
        UnknownKey,
        AmbiguousKey,
        BadSignature,
        InvalidClaims,
        MissingClaim("exp"),
        InvalidClaim("user_id"),
        NotYetValid,
        Expired,
        Revoked,
    ];
    let lines = errors.map(|error| format!("{:<14} {error}", error.peer_text()));
    insta::assert_snapshot!("token-errors", lines.join("\n"));
}
