//! The binary's tests: everything here runs the real program.

mod bytes;
mod failures;
mod listener;
mod passing;
mod run;
mod supervisor;
mod usage;
