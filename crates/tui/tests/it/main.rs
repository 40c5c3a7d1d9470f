//! The terminal UI without a terminal: the test plays the proxy and the keyboard, and reads the state or the cells.

#![allow(
    clippy::unwrap_used,
    reason = "a test's helper functions may stop the test too"
)]

mod calls;
mod deciding;
mod editing;
mod files;
mod heads;
mod hostile;
mod layout;
mod leaving;
mod looking;
mod mouse;
mod notices;
mod pages;
mod random_input;
mod record;
mod remembered;
mod replaying;
mod scenes;
mod screens;
mod servers;
mod test_ui;
mod typing;
