//! Records through their public face: written, torn, read, exported, imported, listed, pruned.

#![allow(
    clippy::unwrap_used,
    reason = "a test's helper functions may stop the test too"
)]

mod causes;
mod copies;
mod errors;
mod exports;
mod follow;
mod imports;
mod lines;
mod redaction;
mod sample;
mod stores;
mod torn;
