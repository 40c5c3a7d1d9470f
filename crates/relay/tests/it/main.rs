//! The relay as its peers see it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod delivery;
mod limits;
mod openings;
mod random;
mod resuming;
mod rules;
mod seed;
mod tabs;
mod tokens;
mod transcript;
