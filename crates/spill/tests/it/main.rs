//! Tests of the store through its public interface.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop loudly"
)]

mod arguments;
mod cleanup;
mod quota;
mod reading;
mod refusals;
mod test_store;
