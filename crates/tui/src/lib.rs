//! The terminal UI: a viewer of the control protocol and of records, and nothing else.
//!
//! State ([`App`](app::App)), one table of commands with their keys, and panes that draw the state. It is given a [`Port`](port::Port) to a proxy,
//! wherever that runs, and reads records by itself; it forwards nothing, and writes no file: the proxy does both when asked.

pub mod source;
pub mod text;
