//! The relay as its peers see it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod audit;
mod current_tab;
mod delivery;
mod direct;
mod driver;
mod limits;
mod openings;
mod policies;
mod random;
mod resuming;
mod rules;
mod scenes;
mod seed;
mod shared_debugger;
mod tabs;
mod tokens;
mod transcript;
