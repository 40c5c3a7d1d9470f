//! Decides whether a token is good.

use std::path::Path;
use std::time::SystemTime;

use rustls_pki_types::pem::SectionKind;

use crate::compact::{CompactToken, TokenHeader};
use crate::jwks::{self, NamedKey};
use crate::verification_key::VerificationKey;
use crate::{KeyError, TokenError, VerifiedToken, key_file, secret};

/// Verifies tokens with one key, or with the keys of a set.
#[derive(Debug)]
pub struct TokenVerifier {
    keys: Keys,
}

#[derive(Debug)]
enum Keys {
    /// The only key there is. A `kid` does not matter.
    One(VerificationKey),
    /// A `kid` chooses.
    Set(Vec<NamedKey>),
}

impl TokenVerifier {
    /// Verifies HS256 with the secret in a file: its text, without the line break at the end.
    pub fn from_secret_file(path: &Path) -> Result<TokenVerifier, KeyError> {
        let secret = secret::parse_secret(path, key_file::read(path)?)?;
        Ok(TokenVerifier {
            keys: Keys::One(VerificationKey::secret(&secret)),
        })
    }

    /// Verifies RS256, ES256 or EdDSA with the public key in a PEM file, by what kind of key it is.
    pub fn from_public_key_file(path: &Path) -> Result<TokenVerifier, KeyError> {
        let bytes = key_file::read(path)?;
        let section = key_file::pem_section(&bytes, SectionKind::PublicKey);
        let der = section.ok_or_else(|| KeyError::NotPem {
            path: path.to_owned(),
            expected: "PUBLIC KEY",
        })?;
        let key = VerificationKey::from_der(&der).ok_or_else(|| KeyError::Unsupported {
            path: path.to_owned(),
        })?;
        Ok(TokenVerifier {
            keys: Keys::One(key),
        })
    }

    /// Verifies RS256, ES256 and EdDSA with the public keys of a JSON Web Key Set.
    pub fn from_jwks(json: &[u8]) -> Result<TokenVerifier, KeyError> {
        Ok(TokenVerifier {
            keys: Keys::Set(jwks::parse(json)?),
        })
    }

    /// Whether the token is good at the time `now`. Whether it was revoked is for a [`crate::RevocationList`] to say.
    pub fn verify(&self, token: &str, now: SystemTime) -> Result<VerifiedToken, TokenError> {
        let token = CompactToken::parse(token)?;
        if token.header.is_critical {
            return Err(TokenError::CriticalHeader);
        }
        let key = self.key_for(&token.header)?;
        // The key decides about the algorithm. What the token says is compared, and otherwise not used.
        if token.header.alg != key.algorithm().name() {
            return Err(TokenError::WrongAlgorithm);
        }
        if !key.has_signed(token.signed, &token.signature) {
            return Err(TokenError::BadSignature);
        }
        VerifiedToken::from_claims(&token.claims, now)
    }

    /// Whether a token names a key that is not in the set: a newer set may have it.
    pub fn lacks_key_of(&self, token: &str) -> bool {
        let token = CompactToken::parse(token);
        token.is_ok_and(|token| matches!(self.key_for(&token.header), Err(TokenError::UnknownKey)))
    }

    fn key_for(&self, header: &TokenHeader) -> Result<&VerificationKey, TokenError> {
        let keys = match &self.keys {
            Keys::One(key) => return Ok(key),
            Keys::Set(keys) => keys,
        };
        let has_name = |key: &&NamedKey| header.kid.is_none() || key.kid == header.kid;
        let named: Vec<&NamedKey> = keys.iter().filter(has_name).collect();
        let mut fitting = named
            .iter()
            .filter(|named| named.key.algorithm().name() == header.alg);
        match (fitting.next(), fitting.next()) {
            (Some(named), None) => Ok(&named.key),
            (Some(_), Some(_)) => Err(TokenError::AmbiguousKey),
            (None, _) if named.is_empty() => Err(TokenError::UnknownKey),
            (None, _) => Err(TokenError::WrongAlgorithm),
        }
    }
}
