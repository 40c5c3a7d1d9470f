//! The relay as its peers see it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod delivery;
mod limits;
mod long_answers;
mod openings;
mod random;
mod resuming;
mod seed;
mod tabs;
mod tokens;
mod transcript;
