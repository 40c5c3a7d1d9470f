//! The commands that work on records.

pub mod export;
pub mod import;
pub mod inspect;
pub mod list;
pub mod prune;
