//! Records through their public face: written, torn, read, exported, imported, listed, pruned.

#![allow(
    clippy::unwrap_used,
    reason = "a test's helper functions may stop the test too"
)]

mod causes;
mod chains;
mod copies;
mod credentials;
mod errors;
mod exports;
mod filters;
mod follow;
mod imports;
mod interventions;
mod lines;
mod private_files;
mod programs;
mod redaction;
mod sample;
mod stores;
mod torn;
