//! The core's tests: conversations over in-memory links, read as transcripts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should stop loudly"
)]

#[macro_use]
mod runtimes;

mod control;
mod conversations;
mod correlation;
mod holding;
mod mocking;
mod multiplexer;
mod races;
mod recording;
mod refusing_client;
mod replaying;
mod rules;
mod sharing;
mod stress;
mod transcript;
