//! The points where the specification says two things, or leaves one open, and what the relay makes of them.
//!
//! The numbers are those of the table in `docs/relay.md`, "The protocol as implemented: both readings". Point 21, TLS, is a
//! rule about flags: `rule_21_…` is in the tests of the program.

mod connections;
mod ids;
mod messages;
