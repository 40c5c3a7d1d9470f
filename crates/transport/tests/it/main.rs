//! The transport's tests: a listener with handlers of the test's own, over real sockets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test's helper functions may stop the test too"
)]

#[macro_use]
#[allow(dead_code, reason = "paused time is of no use with sockets")]
#[path = "../../../core/tests/it/runtimes.rs"]
mod runtimes;

mod in_process;
mod kept_connections;
mod memory;
mod pass_through;
mod places;
mod server;
mod signing_in;
mod test_proxy;
mod upgrades;
mod websocket;
