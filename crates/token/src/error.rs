//! Why a token or a key is refused. No text repeats any part of a token: texts end up in logs.

use std::io;
use std::path::PathBuf;

/// Why a token is refused. The peer that sent it is at fault, and gets [`TokenError::peer_text`] only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Longer than any real token.
    #[error("the token is too long")]
    TooLong,
    /// Not three parts of base64url, or a header that is not an object with `alg`.
    #[error("this is not a signed JSON Web Token")]
    Malformed,
    /// The header names an algorithm that is not the key's.
    #[error("the token's algorithm is not that of the key")]
    WrongAlgorithm,
    /// The header has `crit`: it demands something that we do not know.
    #[error("the token has critical headers")]
    CriticalHeader,
    /// The header has a `kid` that no key has.
    #[error("no key has the token's key id")]
    UnknownKey,
    /// Several keys fit the header.
    #[error("the token does not say which of several keys signed it")]
    AmbiguousKey,
    /// Somebody else signed it, or it was changed.
    #[error("the token's signature is wrong")]
    BadSignature,
    /// The claims are not an object, or one of those we read has the wrong type or appears twice.
    #[error("the token's claims are not valid")]
    InvalidClaims,
    /// A claim that we need is not there.
    #[error("the token has no {0}")]
    MissingClaim(&'static str),
    /// A claim has a value that we do not accept.
    #[error("the token's {0} is not acceptable")]
    InvalidClaim(&'static str),
    /// `nbf` is in the future.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// `exp` is in the past.
    #[error("the token has expired")]
    Expired,
    /// The token, or all tokens of its user, were revoked.
    #[error("the token was revoked")]
    Revoked,
}

impl TokenError {
    /// What the peer is told. It learns no more than it needs to help itself.
    pub fn peer_text(self) -> &'static str {
        match self {
            TokenError::Expired => "Token expired",
            TokenError::Revoked => "Token revoked",
            _ => "Invalid token",
        }
    }
}

/// Why a key cannot be used. The person who configured it is at fault.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The file cannot be created. If there is one already, it stays as it is.
    #[error("cannot create {path}")]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Few bytes can be guessed.
    #[error("{path}: the secret has {length} bytes, but HS256 needs at least 32")]
    ShortSecret {
        /// The file.
        path: PathBuf,
        /// How many bytes it has.
        length: usize,
    },
    /// Everybody may know a public key, so everybody could sign with it if it were used as a secret.
    #[error("{path} is a PEM file, not a secret")]
    PemAsSecret {
        /// The file.
        path: PathBuf,
    },
    /// No key in PEM.
    #[error("{path} has no {expected} in PEM form (-----BEGIN {expected}-----)")]
    NotPem {
        /// The file.
        path: PathBuf,
        /// The kind of key that was looked for.
        expected: &'static str,
    },
    /// Another kind of key.
    #[error(
        "{path}: this kind of key is not supported; use RSA (2048 to 8192 bits), EC P-256 or Ed25519"
    )]
    Unsupported {
        /// The file.
        path: PathBuf,
    },
    /// Not a JSON Web Key Set.
    #[error("this is not a JSON Web Key Set")]
    NotKeySet,
    /// A key set in which no key can verify a token.
    #[error(
        "no key of the set can verify tokens; RSA (2048 to 8192 bits), EC P-256 and Ed25519 can"
    )]
    NoUsableKey,
    /// The system has no random numbers.
    #[error("the system gives no random numbers")]
    NoRandomness,
}
