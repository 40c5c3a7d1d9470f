//! Makes new tokens.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use rustls_pki_types::pem::SectionKind;
use serde::Serialize;

use crate::claims::{LAST_SECOND, is_name, seconds};
use crate::verification_key::SignatureAlgorithm;
use crate::{KeyError, key_file, secret};

/// How long a token is valid unless somebody says otherwise. The published client cannot wait for the end of one that is valid
/// for more than 24 days, and looks at its clock all the time instead.
pub const DEFAULT_LIFETIME: Duration = Duration::from_secs(21 * 24 * 60 * 60);

/// A secret or a private key.
#[derive(Debug)]
pub struct SigningKey {
    kind: KeyKind,
}

#[derive(Debug)]
enum KeyKind {
    Secret(hmac::Key),
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// What a new token is to say.
#[derive(Debug, Clone)]
pub struct TokenRequest {
    /// The user that it belongs to.
    pub user: String,
    /// How long it is valid.
    pub lifetime: Duration,
    /// Where its holder is to connect to.
    pub connection_url: Option<String>,
}

/// A new token.
#[derive(Debug)]
pub struct IssuedToken {
    /// The token itself, to be given to its user alone.
    pub token: String,
    /// The name by which it can be revoked.
    pub token_id: String,
    /// When it ends.
    pub expires_at: SystemTime,
}

/// Why no token was made.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// Empty, too long, or with characters that nobody sees.
    #[error("a user's name has 1 to 256 characters, no control characters and no spaces around it")]
    UserName,
    /// It would never be valid, or end after the year 9999.
    #[error("a token must be valid for at least a second and end before the year 10000")]
    Lifetime,
    /// No randomness, or a key that fails.
    #[error("the token cannot be signed")]
    Signing,
}

#[derive(Serialize)]
struct NewClaims<'a> {
    user_id: &'a str,
    /// The published extension uses no token without one, and only shows it.
    email: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    connection_url: Option<&'a str>,
    iat: u64,
    exp: u64,
    jti: &'a str,
}

/// Makes a token that is valid from `now` on.
pub fn issue(
    key: &SigningKey,
    request: &TokenRequest,
    now: SystemTime,
) -> Result<IssuedToken, IssueError> {
    if !is_name(&request.user) {
        return Err(IssueError::UserName);
    }
    let issued_at = seconds(now) as u64;
    let lifetime = request.lifetime.as_secs();
    let expires_at = issued_at
        .checked_add(lifetime)
        .filter(|end| lifetime > 0 && *end <= LAST_SECOND)
        .ok_or(IssueError::Lifetime)?;
    let token_id = random_name()?;
    let header = format!(r#"{{"alg":"{}","typ":"JWT"}}"#, key.algorithm().name());
    let claims = NewClaims {
        user_id: &request.user,
        email: &request.user,
        connection_url: request.connection_url.as_deref(),
        iat: issued_at,
        exp: expires_at,
        jti: &token_id,
    };
    let claims = serde_json::to_vec(&claims).map_err(|_| IssueError::Signing)?;
    let mut token = URL_SAFE_NO_PAD.encode(header);
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(claims, &mut token);
    let signature = key.sign(token.as_bytes())?;
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut token);
    Ok(IssuedToken {
        token,
        token_id,
        expires_at: UNIX_EPOCH + Duration::from_secs(expires_at),
    })
}

impl SigningKey {
    /// Reads a secret, or a private key in PKCS #8 (`-----BEGIN PRIVATE KEY-----`): RSA, EC P-256 or Ed25519.
    pub fn from_file(path: &Path) -> Result<SigningKey, KeyError> {
        let bytes = key_file::read(path)?;
        if !key_file::is_pem(&bytes) {
            let secret = secret::parse_secret(path, bytes)?;
            let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
            return Ok(SigningKey {
                kind: KeyKind::Secret(key),
            });
        }
        let section = key_file::pem_section(&bytes, SectionKind::PrivateKey);
        let der = section.ok_or_else(|| KeyError::NotPem {
            path: path.to_owned(),
            expected: "PRIVATE KEY",
        })?;
        match KeyKind::from_pkcs8(&der) {
            Some(kind) => Ok(SigningKey { kind }),
            None => Err(KeyError::Unsupported {
                path: path.to_owned(),
            }),
        }
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        match self.kind {
            KeyKind::Secret(_) => SignatureAlgorithm::Hs256,
            KeyKind::Rsa(_) => SignatureAlgorithm::Rs256,
            KeyKind::P256(_) => SignatureAlgorithm::Es256,
            KeyKind::Ed25519(_) => SignatureAlgorithm::EdDsa,
        }
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, IssueError> {
        let random = SystemRandom::new();
        match &self.kind {
            KeyKind::Secret(key) => Ok(hmac::sign(key, message).as_ref().to_vec()),
            KeyKind::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                let signed = key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature);
                signed.map_err(|_| IssueError::Signing)?;
                Ok(signature)
            }
            KeyKind::P256(key) => {
                let signature = key
                    .sign(&random, message)
                    .map_err(|_| IssueError::Signing)?;
                Ok(signature.as_ref().to_vec())
            }
            KeyKind::Ed25519(key) => Ok(key.sign(message).as_ref().to_vec()),
        }
    }
}

impl KeyKind {
    /// Each parser refuses the keys of the others by their object identifiers.
    fn from_pkcs8(der: &[u8]) -> Option<KeyKind> {
        // OpenSSL leaves out the public half of Ed25519 keys.
        let ed25519 = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map(KeyKind::Ed25519);
        let p256 = || {
            let random = SystemRandom::new();
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random)
                .map(KeyKind::P256)
        };
        let rsa = || RsaKeyPair::from_pkcs8(der).map(KeyKind::Rsa);
        ed25519.or_else(|_| p256()).or_else(|_| rsa()).ok()
    }
}

/// 128 random bits in hexadecimal: no dash at the beginning that a command line would take for a flag.
fn random_name() -> Result<String, IssueError> {
    let mut random = [0; 16];
    SystemRandom::new()
        .fill(&mut random)
        .map_err(|_| IssueError::Signing)?;
    let mut name = String::new();
    for byte in random {
        let _ = write!(name, "{byte:02x}");
    }
    Ok(name)
}
