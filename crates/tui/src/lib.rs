//! The terminal UI: a viewer of the control protocol and of records, and nothing else.
//!
//! State ([`App`]), one table of [`COMMANDS`] with their keys, and panes that draw the state. It is given a
//! [`ProxyPort`] to a proxy, wherever that runs, and reads records by itself; it forwards nothing, and writes no file:
//! the proxy does both when asked.

#![warn(unreachable_pub)]

mod app;
mod command;
mod editor;
mod input_history;
mod panes;
mod port;
mod proxy;
mod run;
mod screen;
mod source;
mod tab;
mod text;
mod text_area;
mod theme;

pub use app::{
    App, ClickTarget, DetailWidth, DiffScreenRow, DiffView, Effect, Focus, InputEvent, Overlay,
    PromptKind, ProxyOwner, ServersWindow, StatusTone,
};
pub use command::{COMMANDS, CommandEntry, UiCommand, keys_page};
pub use editor::{EditPurpose, Editor, HeadText};
pub use panes::draw;
pub use port::{ProxyEvent, ProxyPort, ProxyPortPeer, ProxyRequest};
pub use proxy::ProxyStatus;
pub use run::{ExternalEditor, UiError, UiOptions, run};
pub use screen::{MouseOwner, Screen, restore_terminal};
pub use source::{RowGrouping, SessionView, ViewState};
pub use tab::{BodyVersion, CarriedMessage, HeadFolding, Tab};
pub use text::{BodyLayout, DiffRow, LineDifference, TextRow, plain};
pub use theme::{Colours, Theme};
