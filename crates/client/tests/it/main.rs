//! The client and the proxy tool with each other, and each with others.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test's helper functions may stop the test too"
)]

mod batches;
mod calls;
mod child;
mod foreign_servers;
mod http;
mod lists;
mod plain_server;
mod raw;
mod scripted_server;
mod settings;
mod strange_answers;
