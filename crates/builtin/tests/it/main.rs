//! The built-in servers, asked as clients ask them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should stop loudly"
)]

mod conversations;
mod hostile;
mod options;
mod reading;
mod searching;
mod testbed;
mod writing;
