//! The proxy between real peers: official SDK clients, official servers and the conformance suite, none of them ours.
//! Every case is run direct first, so that a failure says whether the proxy is to blame.
//!
//! Run by `cargo xtask test`, which installs the peers and says where they are; a plain `cargo test` leaves this out.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test that cannot go on should stop loudly, and say what it saw"
)]

mod agents;
mod browser;
mod checks;
mod chromium;
mod client;
mod closing;
mod conformance;
mod conformance_client;
mod endpoint;
mod fixtures;
mod h2;
mod hub;
mod inspector;
mod page_server;
mod piped_program;
mod process;
mod relay;
mod screen;
mod sdk_legacy;
mod sdk_modern;
mod shell;
mod sign_in;
mod terminal;
mod texts;
mod tmux;
mod viewers;
