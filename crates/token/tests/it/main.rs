//! The crate's tests: tokens of another implementation, keys in files, and the file of revoked tokens.

#![allow(
    clippy::unwrap_used,
    reason = "a test's helper functions may stop the test too"
)]

mod issuing;
mod keys;
mod pairing;
mod properties;
mod revoking;
mod vectors;
