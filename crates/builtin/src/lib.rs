//! The MCP servers that live in this process: `time` and `files`.
//!
//! A [`BuiltinServer`] is a function from a message to its answer. It keeps no session, so that any number of
//! connections can share one, and it answers clients of both eras.
//!
//! | module | knows |
//! |---|---|
//! | `protocol` | the methods of both eras, and which checks come first |
//! | `tool`, `arguments` | what a tool says about itself, what it is called with, what it returns |
//! | `time` | the current time and conversions between zones |
//! | `files` | reading and searching below configured roots, and writing if that is allowed |
//!
//! **It must not know** tokio, sockets, or any crate of this workspace but `wire`. File work blocks: callers run
//! [`BuiltinServer::answer`] on a thread that may.

#![warn(unreachable_pub)]

mod arguments;
mod error;
mod files;
mod protocol;
mod time;
mod tool;

use mcp_proxy_wire::Message;
use serde_json::{Map, Value};

pub use error::BuiltinError;
pub use files::{FilesOptions, FilesServer, Root, WriteAccess};
pub use time::TimeServer;

use arguments::Arguments;
use tool::{ToolDefinition, ToolResult};

/// A server in this process.
pub enum BuiltinServer {
    /// The current time, and conversions between zones.
    Time(TimeServer),
    /// Files below configured roots.
    Files(FilesServer),
}

impl BuiltinServer {
    /// The answer to a message, or `None` for notifications and answers.
    pub fn answer(&self, message: &Message) -> Option<Message> {
        protocol::answer(self, message)
    }

    /// The name that users know it by.
    pub fn name(&self) -> &'static str {
        match self {
            BuiltinServer::Time(_) => "time",
            BuiltinServer::Files(_) => "files",
        }
    }

    fn title(&self) -> &'static str {
        match self {
            BuiltinServer::Time(_) => "Time",
            BuiltinServer::Files(_) => "Files",
        }
    }

    fn instructions(&self) -> String {
        match self {
            BuiltinServer::Time(server) => server.instructions(),
            BuiltinServer::Files(server) => server.instructions(),
        }
    }

    fn tools(&self) -> &[ToolDefinition] {
        match self {
            BuiltinServer::Time(server) => server.tools(),
            BuiltinServer::Files(server) => server.tools(),
        }
    }

    /// Calls a tool that is in the list of tools.
    fn call(&self, tool: &ToolDefinition, arguments: &Map<String, Value>) -> ToolResult {
        let arguments = Arguments::check(tool, arguments)?;
        match self {
            BuiltinServer::Time(server) => server.call(tool.name, &arguments),
            BuiltinServer::Files(server) => server.call(tool.name, &arguments),
        }
    }
}
