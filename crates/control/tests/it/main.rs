//! The control protocol's types, as the proxy and its viewers use them.

#![allow(
    clippy::unwrap_used,
    reason = "a test's helper functions may stop the test too"
)]

mod requests;
