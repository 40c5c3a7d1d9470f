//! The flags of `serve`: many servers behind one endpoint.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use mcp_proxy_hub::config::MAX_THREADS;

use super::ProxyArgs;
use super::number::from_one_to;
use super::size::size;
use super::time::time;

/// What `serve --help` ends with.
pub const SERVE_AFTER: &str = "\
Examples:
  mcp-proxy serve                                  the built-in servers: time and files
  mcp-proxy serve --config ~/.cursor/mcp.json      the servers of a client's config file, as it is
  mcp-proxy serve --server git='uvx mcp-server-git' --server docs=https://example.com/mcp
  mcp-proxy serve --expose all                     list every tool instead of the one tool `proxy`
  mcp-proxy serve --expose dispatch                search and call; large results stay in files

In a client's config:
  {\"command\": \"mcp-proxy\", \"args\": [\"serve\", \"--config\", \"/path/to/mcp.json\"]}

Without --config and --server, the file mcp-proxy/config.json in your config folder is used, if it
exists. A file in the current folder is used only if you name it: it could start any command.";

/// Requests of modern clients at once, if the user does not say. Each is a small conversation in memory with a connection of
/// its client, of which a listener takes four times as many.
pub const MAX_REQUESTS: usize = 1024;

/// Where servers come from: what `serve` and `savings` share.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ServerSourceArgs {
    /// A config file with `mcpServers`, such as that of Claude, Cursor or VS Code (repeatable; later files win)
    #[arg(long, value_name = "FILE", help_heading = "Servers")]
    pub config: Vec<PathBuf>,

    /// A server: its name, and its command or URL (repeatable)
    #[arg(long, value_name = "NAME=COMMAND|URL", help_heading = "Servers")]
    pub server: Vec<String>,

    /// Add the built-in servers `time` and `files` to the configured ones
    #[arg(long, visible_alias = "useutils", help_heading = "Servers", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_name = "BOOL", hide_possible_values = true)]
    pub builtins: Option<bool>,

    /// The profile of the config file that clients get at /mcp and over stdio
    #[arg(long, value_name = "NAME", help_heading = "Servers")]
    pub profile: Option<String>,
}

/// Put many servers behind one endpoint.
#[derive(Clone, Debug, clap::Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub source: ServerSourceArgs,

    /// Which tools clients see: `proxy` or `dispatch` (one tool for everything), `read` (one tool for what only reads), `all`,
    /// or several as `proxy,read` [default: proxy]
    #[arg(
        long,
        value_name = "WHAT",
        value_delimiter = ',',
        help_heading = "Servers"
    )]
    pub expose: Vec<ExposeArg>,

    /// Start each server when it is first used, unless its config says otherwise
    #[arg(long, visible_alias = "mcplazy", help_heading = "Servers", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_name = "BOOL", hide_possible_values = true)]
    pub lazy: Option<bool>,

    /// Cache the results of read-only tools for this long, such as 30s, unless their server's config says otherwise
    #[arg(long, visible_alias = "toolcachettl", value_name = "TIME", value_parser = time, help_heading = "Servers")]
    pub cache_ttl: Option<Duration>,

    /// The same as `--expose dispatch`
    #[arg(long, help_heading = "Servers", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_name = "BOOL", hide_possible_values = true, conflicts_with = "expose")]
    pub mcpproxy: Option<bool>,

    /// Keep results of tools above this size, such as 50K, in a file and show a preview; 0 disables this [default: with
    /// proxy-dispatch what the client shows whole, 7K to 50K; otherwise 0]
    #[arg(long, visible_alias = "mcpproxythreshold", value_name = "SIZE", value_parser = size, help_heading = "Large results")]
    pub spill_threshold: Option<u64>,

    /// Keep objects and arrays as TOON where that is smaller than JSON
    #[arg(long, visible_alias = "mcpproxytoon", help_heading = "Large results", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_name = "BOOL", hide_possible_values = true)]
    pub spill_toon: Option<bool>,

    /// Maximum disk space for kept results [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Large results")]
    pub spill_quota: Option<u64>,

    /// How long a result is kept [default: 1h]
    #[arg(long, value_name = "TIME", value_parser = positive_time, help_heading = "Large results")]
    pub spill_ttl: Option<Duration>,

    /// Let clients use files in this folder as argumentsFile and resultFile (repeatable)
    #[arg(long, value_name = "DIR", help_heading = "Large results")]
    pub spill_root: Vec<PathBuf>,

    /// Threads of the program [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = from_one_to::<NonZeroUsize>(MAX_THREADS.into()), help_heading = "Limits")]
    pub threads: Option<NonZeroUsize>,

    /// Whether to offer clients protocol revision 2026-07-28 (`server/discover`): `auto` only while every server is known to
    /// speak it, `modern` always, `legacy` never [default: auto]
    #[arg(
        long,
        value_name = "WHICH",
        help_heading = "Client side",
        hide_possible_values = true
    )]
    pub era: Option<EraArg>,

    /// When told to stop, give open calls this long to finish; a second signal ends at once
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "5s", help_heading = "Limits")]
    pub drain_timeout: Duration,

    /// Maximum number of concurrent requests of modern clients, with their open subscriptions
    #[arg(long, value_name = "N", default_value_t = MAX_REQUESTS, help_heading = "Client side")]
    pub max_requests: usize,

    #[command(flatten)]
    pub proxy: ProxyArgs,
}

impl ServerSourceArgs {
    /// Whether the command line names any server or file.
    pub fn is_empty(&self) -> bool {
        self.config.is_empty()
            && self.server.is_empty()
            && self.builtins.is_none()
            && self.profile.is_none()
    }
}

impl ServeArgs {
    /// The flags of a `serve` that starts these servers for nobody: without a listener, a record, viewers or a UI.
    pub fn without_clients(source: &ServerSourceArgs) -> Result<ServeArgs, clap::Error> {
        use clap::{Args as _, FromArgMatches as _};

        let flags = "serve --listen stdio --no-record --no-control --headless --quiet";
        let command = ServeArgs::augment_args(clap::Command::new("serve"));
        let matches = command.try_get_matches_from(flags.split(' '))?;
        Ok(ServeArgs {
            source: source.clone(),
            ..ServeArgs::from_arg_matches(&matches)?
        })
    }
}

/// A time that is not zero.
fn positive_time(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("it must be longer than zero".to_owned()),
        time => Ok(time),
    }
}

/// Which tools clients see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExposeArg {
    /// One tool, `proxy`, that finds and calls all others
    Proxy,
    /// One tool, `proxy-dispatch`, that searches, calls, and keeps large results in files
    Dispatch,
    /// One tool, `proxy-read`, that finds everything and uses only what changes nothing
    Read,
    /// Every tool under its own name
    All,
}

/// The answer to `server/discover`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum EraArg {
    /// 2026-07-28, while every server is known to speak it
    Auto,
    /// 2026-07-28
    Modern,
    /// -32601, as a legacy server answers
    Legacy,
}

/// Flags about one server mean nothing here, and are refused.
pub fn hide_server_flags(arg: clap::Arg) -> clap::Arg {
    let is_about_one = match arg.get_id().as_str() {
        "url" | "command" | "transport" | "target_command" | "target_url" => true,
        // It is about all servers that do not say so themselves.
        "env_mode" => false,
        _ => arg.get_help_heading() == Some("Server side"),
    };
    if is_about_one { arg.hide(true) } else { arg }
}
