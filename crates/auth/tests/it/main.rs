//! Sign-ins against an authorization server in this process.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test's helper functions may stop the test too"
)]

mod accounts;
mod authorization_server;
mod browser;
mod https;
mod logging_in;
mod machines;
mod refusing;
mod renewing;
