//! The promises of this crate, for any bytes: generated ones (`properties`, `streams`) and a collection of nasty ones
//! (`corpus`). What is promised stands in `invariants`, which the fuzz target uses too.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test that finds nothing where something must be has failed"
)]

mod corpus;
mod headers;
mod invariants;
mod line;
mod message;
mod properties;
mod sse;
mod streams;
