//! The promises of this crate, for any bytes: generated ones (`properties`, `streams`) and a collection of nasty ones
//! (`corpus`). What is promised stands in `invariants`, which the fuzz target uses too.

#![allow(
    clippy::expect_used,
    reason = "a test that finds nothing where something must be has failed"
)]

mod corpus;
mod invariants;
mod properties;
mod streams;
