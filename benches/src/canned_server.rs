//! The canned MCP server, over HTTP and over stdio: the other end of every measurement.
//!
//! It does the least a real server does (reads the envelope, keeps sessions, copies the id) so that what is
//! measured is the way to it.

mod http;
mod stdio;

use anyhow::Result;
use clap::Subcommand;

use crate::canned::ToolSet;

#[derive(Subcommand)]
pub enum CannedServerCommand {
    /// Listen on a free loopback port and print `listening on URL` to stderr
    Http(ToolSet),
    /// Answer on stdin and stdout
    Stdio(ToolSet),
}

pub fn run(command: &CannedServerCommand) -> Result<()> {
    match command {
        CannedServerCommand::Http(tools) => http::serve(tools),
        CannedServerCommand::Stdio(tools) => stdio::serve(tools),
    }
}
