//! The flags of `rules`.

use std::path::PathBuf;

const RULES: &str = "\
Examples:
  mcp-proxy rules check rules.toml          what is wrong with it, or what its rules are
  mcp-proxy rules check rules.toml LAST     what it would have done to the newest session

docs/rules.md explains the file.";

/// Check a file of rules.
#[derive(Debug, clap::Args)]
#[command(after_help = RULES)]
pub struct RulesArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub command: RulesCommand,
}

/// What can be done with a file of rules.
#[derive(Debug, clap::Subcommand)]
pub enum RulesCommand {
    /// Read it, say what is wrong, and show what it would have done to a record
    Check(CheckArgs),
}

const CHECK: &str = "\
Examples:
  mcp-proxy rules check rules.toml                the rules, one a line
  mcp-proxy rules check rules.toml LAST           the messages that match, and what becomes of them
  mcp-proxy rules check rules.toml LAST --json    one JSON object a message

Nothing is sent and nothing is changed. The exit code is 1 if the file is wrong or a rule failed on
a message.";

/// `rules check`
#[derive(Debug, clap::Args)]
#[command(after_help = CHECK)]
pub struct CheckArgs {
    /// The file of rules
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    #[arg(value_name = "RECORD", help = super::sessions::RECORD)]
    pub record: Option<String>,

    /// The name of the server, for rules that have `server`; without it, what the record names
    #[arg(long, value_name = "NAME", requires = "record")]
    pub server: Option<String>,

    /// Also list messages that no rule matches
    #[arg(short, long, requires = "record")]
    pub all: bool,

    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}
