//! The relay as its peers see it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod audit;
mod delivery;
mod direct;
mod limits;
mod openings;
mod random;
mod resuming;
mod seed;
mod tabs;
mod tokens;
mod transcript;
