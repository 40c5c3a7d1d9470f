//! The binary's tests: everything here runs the real program.

mod bytes;
mod failures;
mod help;
mod listener;
mod passing;
mod records;
mod run;
mod supervisor;
mod tls;
mod usage;
