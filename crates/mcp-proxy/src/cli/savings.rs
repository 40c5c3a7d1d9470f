//! The flags of `savings`: what each exposure costs.

use std::time::Duration;

use super::serve::ServerSourceArgs;
use super::time::time;

const SAVINGS: &str = "\
Examples:
  mcp-proxy savings --config ~/.cursor/mcp.json    what the tools of these servers cost
  mcp-proxy savings --server git='uvx mcp-server-git'
  mcp-proxy savings --config mcp.json --json

The servers are started as `serve` starts them, asked for their lists, and stopped. Without servers,
they are those of `serve` without flags. Nothing is recorded.
A token is estimated as four characters.
Exit code: 0 a server answered, 1 no server answered, 2 wrong usage.";

/// Show what each exposure costs.
#[derive(Debug, clap::Args)]
#[command(after_help = SAVINGS)]
pub struct SavingsArgs {
    #[command(flatten)]
    pub source: ServerSourceArgs,

    /// How long the servers have to start and to answer, all together
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "30s", help_heading = "Servers")]
    pub timeout: Duration,

    /// One JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}
