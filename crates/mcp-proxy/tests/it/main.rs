//! The binary's tests: everything here runs the real program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test's helper functions may stop the test too"
)]

mod both_kinds;
mod bridging;
mod bytes;
mod client;
mod client_library;
mod completions;
mod control;
mod cors;
mod evidence;
mod failures;
mod framing;
mod help;
mod holding;
mod jq_worker;
mod leaving;
mod limits;
mod listener;
mod mock;
mod passing;
mod peers;
mod programs;
mod recording;
mod records;
mod redaction;
mod relay;
mod replay;
mod restarts;
mod rules;
mod savings;
mod serve;
mod sessions;
mod sign_in;
mod signed_in;
mod stopping;
mod supervisor;
mod tls;
mod token;
mod towards_servers;
mod undelivered;
mod usage;
