//! The terminal UI: a viewer of the control protocol and of records, and nothing else.
//!
//! State ([`App`]), one table of [commands](command) with their keys, and panes that draw the state. It is given a
//! [`Port`](port::Port) to a proxy, wherever that runs, and reads records by itself; it forwards nothing, and writes no file:
//! the proxy does both when asked.

pub mod app;
pub mod area;
pub mod command;
pub mod editor;
pub mod input;
pub mod panes;
pub mod port;
pub mod proxy;
pub mod run;
pub mod screen;
pub mod source;
pub mod tab;
pub mod text;
pub mod theme;

pub use app::{App, Owner};
pub use run::{Edit, Options, RunError, run};
pub use tab::Tab;
pub use theme::{Colours, Theme};
