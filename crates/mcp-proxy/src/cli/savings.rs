//! The flags of `savings`: what each exposure costs.

use std::time::Duration;

use super::serve::ServerSourceArgs;
use super::sessions::RECORD;
use super::time::time;

const SAVINGS: &str = "\
Examples:
  mcp-proxy savings --config ~/.cursor/mcp.json    what the tools of these servers cost
  mcp-proxy savings --server git='uvx mcp-server-git'
  mcp-proxy savings LAST                           from a record, with what its results cost
  mcp-proxy savings --config mcp.json LAST --json

The servers are started as `serve` starts them, asked for their lists, and stopped. Without servers
and without a record, they are those of `serve` without flags. Nothing is recorded.
A token is estimated as four characters.
Exit code: 0 a server answered or a record was read, 1 no server answered, 2 wrong usage.";

/// Show what each exposure costs.
#[derive(Debug, clap::Args)]
#[command(after_help = SAVINGS)]
pub struct SavingsArgs {
    #[arg(value_name = "RECORD", help = RECORD)]
    pub record: Option<String>,

    #[command(flatten)]
    pub source: ServerSourceArgs,

    /// How long the servers have to start and to answer, all together
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "30s", help_heading = "Servers")]
    pub timeout: Duration,

    /// One JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}
