//! The transport's tests: a listener with handlers of the test's own, over real sockets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test's helper functions may stop the test too"
)]

mod in_process;
mod server;
mod upgrades;
