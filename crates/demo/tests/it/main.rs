//! The server and the scripted client as other crates use them.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

mod http;
mod script;
