//! The relay as its peers see it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod audit;
mod collected_answers;
mod current_tab;
mod cut_answers;
mod delivery;
mod direct;
mod driver;
mod limits;
mod long_answers;
mod openings;
mod policies;
mod random;
mod resuming;
mod rules;
mod scenes;
mod seed;
mod shared_debugger;
mod slow_clients;
mod tabs;
mod tokens;
mod transcript;
