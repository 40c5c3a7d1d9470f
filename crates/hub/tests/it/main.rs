//! The hub's public API, without any server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that finds nothing where something must be has failed"
)]

mod batches;
mod cached_results;
mod cancelled;
mod catalog;
mod catalog_properties;
mod changes;
mod clients;
mod config;
mod config_clients;
mod config_env_files;
mod config_errors;
mod config_formats;
mod config_mistakes;
mod config_properties;
mod config_schema;
mod conversations;
mod denied;
mod disabled;
mod dispatch;
mod dispatch_lists;
mod eras;
mod failed_lists;
mod first_lists;
mod listening;
mod listings;
mod logs;
mod lookups;
mod one_reading;
mod own_names;
mod read_tool;
mod rewriting;
mod roots;
mod server_errors;
mod settling;
mod sign_in;
mod sign_in_pages;
mod standing;
mod stored_results;
mod tasks;
mod transcript;
mod views;
