//! The binary's tests: everything here runs the real program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test's helper functions may stop the test too"
)]

mod bytes;
mod failures;
mod help;
mod listener;
mod passing;
mod records;
mod redaction;
mod run;
mod supervisor;
mod tls;
mod usage;
