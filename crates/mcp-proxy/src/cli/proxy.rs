//! The flags of `proxy`. Names are the seed's; what is more than the seed is said in the help text.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueEnum;
use mcp_proxy_core::HoldTimeout;

/// Where clients connect unless told otherwise.
pub const DEFAULT_HOST: &str = "127.0.0.1";
/// The port of it.
pub const DEFAULT_PORT: u16 = 8888;

const AFTER: &str = "\
Examples:
  mcp-proxy proxy -- python server.py                 stdio on both sides, for a client's config
  mcp-proxy proxy http://localhost:8080/mcp           the transport of a URL is detected
  mcp-proxy proxy --transport sse --target-url http://localhost:8080/sse
  mcp-proxy proxy --listen http -- python server.py   a stdio server for HTTP clients
  mcp-proxy proxy --header 'Authorization: Bearer …' https://example.com/mcp

The word `proxy` may be left out. In a client's config:
  {\"command\": \"mcp-proxy\", \"args\": [\"--command\", \"python server.py\"]}

Use it with care:
  - Only proxy connections you own or have permission to test.
  - Nothing leaves this machine: no telemetry, no account, no update check.
  - A record contains every message in full: arguments, answers, tokens. Treat it as sensitive.
    Credentials in headers and --header/--env values are masked unless --keep-secrets.
    --redact-preset all and the other --redact-… flags also hide values in recorded messages;
    forwarded messages are not changed.
  - Listeners accept this machine only, unless --listen-host names another address.";

/// Stand between a client and one server; change nothing, record everything.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER)]
pub struct ProxyArgs {
    /// The server's URL (the same as --target-url)
    #[arg(value_name = "URL", groups = ["target", "remote"])]
    pub url: Option<String>,

    /// The server's command and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND", groups = ["target", "process"])]
    pub command: Vec<OsString>,

    /// Transport of the server [default: stdio for a command, detected for a URL]
    #[arg(long, value_enum, value_name = "KIND")]
    pub transport: Option<ServerKind>,

    /// The server's command, split like shell words (no shell is run)
    #[arg(
        long,
        visible_alias = "command",
        value_name = "COMMAND",
        groups = ["target", "process"]
    )]
    pub target_command: Option<String>,

    /// The server's URL
    #[arg(long, value_name = "URL", groups = ["target", "remote"])]
    pub target_url: Option<String>,

    /// Start in intercept mode: hold every message until a viewer releases it
    #[arg(long, help_heading = "Holding messages")]
    pub intercept: bool,

    /// Hold the messages that match (see `mcp-proxy help filters`); may be repeated
    #[arg(
        long = "break",
        value_name = "FILTER",
        help_heading = "Holding messages"
    )]
    pub breakpoints: Vec<String>,

    /// How long a message may be held, or `never` for no limit; most clients give up after 60 s
    #[arg(
        long,
        value_name = "TIME",
        value_parser = crate::cli::time::hold_timeout,
        default_value = "55s",
        help_heading = "Holding messages"
    )]
    pub hold_timeout: HoldTimeout,

    /// What to do with a held message when the time is up
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        default_value_t = OnHoldTimeout::Forward,
        help_heading = "Holding messages"
    )]
    pub on_hold_timeout: OnHoldTimeout,

    /// Send progress every 10 s while a request is held, if the client asked for progress, so that it does not time out; over HTTP the answer then becomes an event stream
    #[arg(long, help_heading = "Holding messages")]
    pub hold_progress: bool,

    /// Do not start the hold timeout until a viewer has attached
    #[arg(long, help_heading = "Holding messages")]
    pub require_viewer: bool,

    /// Change, delay, answer, drop or redirect messages by the rules in this file (see `mcp-proxy help rules`); it is read again when it changes
    #[arg(long, value_name = "FILE", help_heading = "Changing messages")]
    pub rules: Option<PathBuf>,

    /// Transport of the client [default: that of --transport if given, else stdio if stdin is a pipe, else http]
    #[arg(long, value_enum, value_name = "KIND", help_heading = "Client side")]
    pub listen: Option<ClientKind>,

    /// Port for HTTP and SSE clients; 0 picks one, the first line on stderr names it [default: 8888]
    #[arg(long, value_name = "PORT", help_heading = "Client side")]
    pub listen_port: Option<u16>,

    /// Address to listen on; anything but loopback requires TLS (or --behind-tls-proxy) and --auth-token-file [default:
    /// 127.0.0.1]
    #[arg(long, value_name = "HOST", help_heading = "Client side")]
    pub listen_host: Option<String>,

    /// Clients must send the token in this file as `Authorization: Bearer …`
    #[arg(long, value_name = "FILE", help_heading = "Client side")]
    pub auth_token_file: Option<PathBuf>,

    /// Certificate chain for HTTPS clients (PEM)
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_key",
        help_heading = "Client side"
    )]
    pub tls_cert: Option<PathBuf>,

    /// Its private key (PEM)
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_cert",
        help_heading = "Client side"
    )]
    pub tls_key: Option<PathBuf>,

    /// TLS is terminated by a reverse proxy in front of this one
    #[arg(long, help_heading = "Client side")]
    pub behind_tls_proxy: bool,

    /// Another Host name that clients may use (repeatable)
    #[arg(long, value_name = "HOST", value_parser = host_name, help_heading = "Client side")]
    pub allow_host: Vec<String>,

    /// A web origin whose pages may connect, such as `https://app.example` (repeatable); browsers get the CORS headers they need
    #[arg(long, value_name = "ORIGIN", help_heading = "Client side")]
    pub allow_origin: Vec<String>,

    /// Maximum number of concurrent sessions and of server processes; when it is reached, the session that has been idle for longest makes room
    #[arg(
        long,
        value_name = "N",
        default_value_t = 64,
        help_heading = "Client side"
    )]
    pub max_sessions: usize,

    /// Serve legacy HTTP clients without sessions: each request gets a server process of its own, initialized by the proxy if the request is not `initialize`
    #[arg(long, help_heading = "Client side")]
    pub stateless: bool,

    /// End a session after this many idle minutes
    #[arg(
        long,
        value_name = "MINUTES",
        default_value_t = 30,
        help_heading = "Client side"
    )]
    pub idle_timeout: u64,

    /// A header for every request to the server, `Name: value` (repeatable; wins over the client's). `${VAR}` and
    /// `${VAR:-default}` in the value read the environment, `Name: @FILE` reads the value from a file, and `@FILE` alone
    /// reads lines of headers
    #[arg(
        long,
        value_name = "HEADER",
        help_heading = "Server side",
        conflicts_with = "process"
    )]
    pub header: Vec<String>,

    /// A variable for the server's process, `NAME=value` (repeatable)
    #[arg(
        long,
        value_name = "VAR",
        help_heading = "Server side",
        conflicts_with = "remote"
    )]
    pub env: Vec<String>,

    /// Which variables of the proxy's own environment the server's process gets, besides those of --env
    #[arg(
        long,
        value_enum,
        value_name = "MODE",
        help_heading = "Server side",
        conflicts_with = "remote"
    )]
    pub env_mode: Option<EnvMode>,

    /// The folder the server's process runs in
    #[arg(
        long,
        value_name = "DIR",
        help_heading = "Server side",
        conflicts_with = "remote"
    )]
    pub cwd: Option<PathBuf>,

    /// Additional certificate authorities for https servers (PEM)
    #[arg(long, value_name = "FILE", help_heading = "Server side")]
    pub ca_file: Option<PathBuf>,

    /// End when an HTTP server has lost the session of a stdio or SSE client, instead of opening it again
    #[arg(long, help_heading = "Server side")]
    pub no_reconnect: bool,

    /// Also forward lines from the server's stdout that are not messages (they are recorded either way)
    #[arg(long, help_heading = "Server side")]
    pub pass_noise: bool,

    /// Write the record to this file instead of the state directory; for x.json the record is x.jsonl, and x.json is exported when the run ends
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "no_record",
        help_heading = "Record"
    )]
    pub session_file: Option<PathBuf>,

    /// When the run ends, also export the session in this format, next to the record
    #[arg(long, value_name = "FORMAT", conflicts_with = "no_record", help_heading = "Record",
          value_parser = super::sessions::format_names())]
    pub output_format: Option<String>,

    /// Record nothing
    #[arg(long, help_heading = "Record")]
    pub no_record: bool,

    /// Continue the record in another file when one has this size: bytes, or with K, M, G
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "2G",
        value_parser = super::size::size_above_zero,
        conflicts_with = "no_record",
        help_heading = "Record"
    )]
    pub max_record_size: u64,

    /// When to sync the record to disk; no mode loses data if only the proxy is killed
    #[arg(long, value_name = "WHEN", default_value = "interval", value_parser = ["none", "interval", "fsync"],
          help_heading = "Record")]
    pub durability: String,

    /// What to do if the record cannot be created or written: warn once and continue, or stop
    #[arg(long, value_name = "WHAT", default_value = "warn", value_parser = ["warn", "stop"],
          help_heading = "Record")]
    pub on_record_error: String,

    /// Record credentials in headers, --header and --env values as they are
    #[arg(long, help_heading = "Record")]
    pub keep_secrets: bool,

    #[command(flatten)]
    pub redact: super::redact::RedactArgs,

    /// The largest message, in bytes or with K, M, G
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "64M",
        value_parser = super::size::size_above_zero,
        help_heading = "Limits"
    )]
    pub max_message: u64,

    /// Memory for all messages that wait or are being read, in bytes or with K, M, G [default: 512M]
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = super::size::size_above_zero,
        help_heading = "Limits"
    )]
    pub memory_budget: Option<u64>,

    /// Give up on a peer that reads nothing for this many seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 120,
        help_heading = "Limits"
    )]
    pub stall_timeout: u64,

    /// Do not open the terminal UI on this terminal; `mcp-proxy attach` opens it on another
    #[arg(long, help_heading = "Terminal UI")]
    pub headless: bool,

    #[command(flatten)]
    pub tui: super::tui::TuiArgs,

    /// Create no control socket, so `attach` and `ctl` cannot reach this run
    #[arg(long)]
    pub no_control: bool,

    /// Print only errors and `listening on URL` on stderr
    #[arg(short, long)]
    pub quiet: bool,
}

impl ProxyArgs {
    /// The flags of a `proxy` whose client is this program itself: without a listener, a record, viewers or a UI.
    pub fn without_client() -> Result<ProxyArgs, clap::Error> {
        use clap::{Args as _, FromArgMatches as _};

        let flags = "proxy --listen stdio --no-record --no-control --headless --quiet";
        let command = ProxyArgs::augment_args(clap::Command::new("proxy"));
        let matches = command.try_get_matches_from(flags.split(' '))?;
        ProxyArgs::from_arg_matches(&matches)
    }

    /// Whether a server is given.
    pub fn names_server(&self) -> bool {
        self.url.is_some()
            || self.target_url.is_some()
            || self.target_command.is_some()
            || !self.command.is_empty()
    }
}

/// What happens to a message that was held for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OnHoldTimeout {
    /// Forward it
    Forward,
    /// Drop it
    Drop,
    /// Drop it and answer a request with an error
    Error,
}

/// What a server's process gets of the proxy's own environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EnvMode {
    /// All of them (default)
    Inherit,
    /// PATH, HOME and a few more that hold no secrets (docs/transports.md)
    Minimal,
}

/// How a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ServerKind {
    /// A child process, over its stdin and stdout.
    Stdio,
    /// HTTP+SSE of 2024-11-05.
    Sse,
    /// Streamable HTTP.
    StreamableHttp,
}

/// How a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClientKind {
    /// Over our own stdin and stdout.
    Stdio,
    /// Streamable HTTP at /mcp, and HTTP+SSE at /sse on the same port.
    Http,
    /// The same, but the URL that is printed is that of /sse.
    Sse,
}

/// A host as a `Host` header names it, without the port, which does not matter.
fn host_name(text: &str) -> Result<String, String> {
    let name = match text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            let is_part =
                |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
            !text.is_empty() && text.bytes().all(is_part)
        }
    };
    match name {
        true => Ok(text.to_owned()),
        false => Err(
            "give the name alone, without scheme, port and path: relay.example.com or [2001:db8::1]"
                .to_owned(),
        ),
    }
}
