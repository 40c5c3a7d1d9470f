//! No input makes the crate panic, and none but the right one is accepted.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_proxy_token::{DecodedToken, RevocationList, TokenVerifier};
use proptest::prelude::*;

use crate::vectors::{now, tokens, verifiers};

proptest! {
    #[test]
    fn no_text_is_a_token(text in any::<String>()) {
        for (_, verifier, _) in verifiers() {
            prop_assert!(verifier.verify(&text, now()).is_err());
        }
        let _ = DecodedToken::decode(&text);
    }

    #[test]
    fn no_three_parts_are_a_token(parts in prop::array::uniform3(any::<Vec<u8>>())) {
        let token = parts.map(|part| URL_SAFE_NO_PAD.encode(part)).join(".");
        for (_, verifier, _) in verifiers() {
            prop_assert!(verifier.verify(&token, now()).is_err());
        }
        let _ = DecodedToken::decode(&token);
    }

    #[test]
    fn no_header_changes_the_algorithm(
        header in r#"\{"alg":"(HS256|RS256|ES256|EdDSA|none)"(,"kid":"(rsa|ec|ed)-1")?\}"#,
        signature in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let good = tokens().remove("hs256").unwrap();
        let claims = good.split('.').nth(1).unwrap();
        let (header, signature) = (URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(signature));
        let token = format!("{header}.{claims}.{signature}");
        for (_, verifier, _) in verifiers() {
            prop_assert!(verifier.verify(&token, now()).is_err());
        }
    }

    #[test]
    fn a_changed_byte_is_noticed(
        name in prop::sample::select(vec!["hs256", "rs256", "es256", "eddsa"]),
        place in any::<prop::sample::Index>(),
        byte in "[A-Za-z0-9_.-]",
    ) {
        let good = tokens().remove(name).unwrap();
        let place = place.index(good.len());
        let mut changed = good.clone();
        changed.replace_range(place..=place, &byte);
        prop_assume!(changed != good);
        for (_, verifier, _) in verifiers() {
            prop_assert!(verifier.verify(&changed, now()).is_err());
        }
    }

    #[test]
    fn no_bytes_break_the_reading_of_files(bytes in any::<Vec<u8>>()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let pem = format!(
            "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
            base64::engine::general_purpose::STANDARD.encode(&bytes)
        );
        std::fs::write(&path, &pem).unwrap();
        prop_assert!(TokenVerifier::from_public_key_file(&path).is_err());
        std::fs::write(&path, &bytes).unwrap();
        prop_assert!(TokenVerifier::from_public_key_file(&path).is_err());
        let _ = TokenVerifier::from_secret_file(&path);
        prop_assert!(TokenVerifier::from_jwks(&bytes).is_err());
        prop_assert!(RevocationList::open(&path).is_ok());
    }
}
