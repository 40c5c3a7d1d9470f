//! The flags of `serve`: many servers behind one endpoint.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use super::ProxyArgs;

/// What `serve --help` ends with.
pub const SERVE_AFTER: &str = "\
Examples:
  mcp-proxy serve                                  the built-in servers: time, and the files in this folder
  mcp-proxy serve --config ~/.cursor/mcp.json      the servers of a client's config file, as it is
  mcp-proxy serve --server git='uvx mcp-server-git' --server docs=https://example.com/mcp
  mcp-proxy serve --expose all                     list every tool instead of the one tool `proxy`

In a client's config:
  {\"command\": \"mcp-proxy\", \"args\": [\"serve\", \"--config\", \"/path/to/mcp.json\"]}

Without --config and --server, the file mcp-proxy/config.json in your config folder is used, if there is one.
A file in the current folder is never used unless you name it: it could start any command.";

/// Requests of modern clients at once, if the user does not say. Each is a small conversation in memory with a connection of
/// its client, of which a listener takes four times as many.
pub const MAX_REQUESTS: usize = 1024;

/// Put many servers behind one endpoint.
#[derive(Clone, Debug, clap::Args)]
pub struct ServeArgs {
    /// A config file with `mcpServers`, such as that of Claude, Cursor or VS Code (repeatable; later files win)
    #[arg(long, value_name = "FILE", help_heading = "Servers")]
    pub config: Vec<PathBuf>,

    /// A server: its name, and its command or URL (repeatable)
    #[arg(long, value_name = "NAME=COMMAND|URL", help_heading = "Servers")]
    pub server: Vec<String>,

    /// Which tools clients see: `proxy` (one tool for everything), `all`, or both as `all,proxy` [default: proxy]
    #[arg(
        long,
        value_name = "WHAT",
        value_delimiter = ',',
        help_heading = "Servers"
    )]
    pub expose: Vec<ExposeArg>,

    /// The profile of the config file that clients get at /mcp and over stdio
    #[arg(long, value_name = "NAME", help_heading = "Servers")]
    pub profile: Option<String>,

    /// Threads of the program [default: the number of cores]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub threads: Option<NonZeroUsize>,

    /// Maximum number of concurrent requests of modern clients, with their open subscriptions
    #[arg(long, value_name = "N", default_value_t = MAX_REQUESTS, help_heading = "Client side")]
    pub max_requests: usize,

    #[command(flatten)]
    pub proxy: ProxyArgs,
}

/// Which tools clients see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExposeArg {
    /// One tool, `proxy`, that finds and calls all others
    Proxy,
    /// Every tool under its own name
    All,
}

/// Flags about one server mean nothing here.
pub fn hide_server_flags(arg: clap::Arg) -> clap::Arg {
    let is_about_one = arg.get_help_heading() == Some("Server side")
        || [
            "url",
            "command",
            "transport",
            "target_command",
            "target_url",
        ]
        .contains(&arg.get_id().as_str());
    if is_about_one { arg.hide(true) } else { arg }
}
