//! The access tokens of the relay: JSON Web Tokens that say which user a client or a browser belongs to.
//!
//! [`TokenVerifier`] decides whether a token is good, [`RevocationList`] whether it still is, and [`issue`] makes new
//! ones. The algorithm always comes from the key. A token only gets to name the same one, so it cannot choose how it
//! is checked.
//!
//! No sockets, no clock: the time is passed in as `now`.

mod claims;
mod compact;
mod error;
mod issue;
mod jwks;
mod key_file;
mod pairing;
mod revocation;
mod secret;
mod verification_key;
mod verifier;

pub use claims::VerifiedToken;
pub use compact::DecodedToken;
pub use error::{KeyError, TokenError};
pub use issue::{DEFAULT_LIFETIME, IssueError, IssuedToken, SigningKey, TokenRequest, issue};
pub use pairing::{PAIRING_LIFETIME, PairingCodes, PairingError, PairingRefusal};
pub use revocation::{RevocationEntry, RevocationList};
pub use secret::create_secret;
pub use verifier::TokenVerifier;
