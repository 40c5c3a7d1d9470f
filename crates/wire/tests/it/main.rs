//! The promises of this crate, for any bytes: generated ones (`properties`, `streams`) and a collection of nasty ones
//! (`corpus`). What is promised stands in `invariants`, which the fuzz target uses too.

mod corpus;
mod invariants;
mod properties;
mod streams;
