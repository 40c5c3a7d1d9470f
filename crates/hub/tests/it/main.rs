//! The hub's public API, without any server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that finds nothing where something must be has failed"
)]

mod cached_results;
mod catalog;
mod catalog_properties;
mod config;
mod config_clients;
mod config_errors;
mod config_properties;
mod config_schema;
mod conversations;
mod listings;
mod lookups;
mod rewriting;
mod standing;
mod transcript;
mod views;
