//! The flags of `relay`: MCP clients and browser extensions.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use mcp_proxy_hub::config::MAX_THREADS;

use super::ProxyArgs;
use super::number::from_one_to;
use super::relay_protocol::RelayProtocolArgs;
use super::time::time_from;

/// Where clients and extensions connect unless told otherwise.
pub const RELAY_PORT: u16 = 8899;

/// The relay looks for commands that are overdue four times a second.
const SHORTEST_COMMAND: Duration = Duration::from_millis(100);
/// The largest number of commands a second that can be allowed.
const MAX_RATE: u64 = 1_000_000;
/// The largest number of connections of a user that can be allowed.
const MAX_CONNECTIONS: u64 = 65_536;

/// What `relay --help` ends with.
pub const RELAY_AFTER: &str = "\
Examples:
  mcp-proxy relay init                      create a secret, and print what to do next
  mcp-proxy relay                           extensions at /extension, MCP clients at /mcp, both at /
  mcp-proxy token issue --user ada          a token for Ada's browser and for her clients
  mcp-proxy relay pair --user ada           a code to type into Ada's browser instead
  mcp-proxy relay --direct                  without tokens, for you on this machine
  mcp-proxy relay --jwks keys.json --tls-cert cert.pem --tls-key key.pem --listen-host 0.0.0.0
                                            for others, with the keys of an identity provider

A client reaches the browsers of its own user, and the tabs that it opened or selected itself.
docs/relay.md explains the protocol, the limits and how to run it for others.";

/// Let MCP clients drive people's browsers through an extension.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct RelayArgs {
    #[command(subcommand)]
    pub command: Option<RelayCommand>,

    /// Do not require tokens: one user, on this machine only
    #[arg(
        long,
        conflicts_with_all = ["jwt_secret_file", "jwt_public_key", "jwks", "revoked_file"],
        help_heading = "Tokens"
    )]
    pub direct: bool,

    /// Check tokens with the secret in this file (HS256) [default: the one that `relay init` created]
    #[arg(long, value_name = "FILE", help_heading = "Tokens")]
    pub jwt_secret_file: Option<PathBuf>,

    /// Check tokens with this public key (PEM): RS256, ES256 or EdDSA, whichever the key is for
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "jwt_secret_file",
        help_heading = "Tokens"
    )]
    pub jwt_public_key: Option<PathBuf>,

    /// Check tokens with the keys in this JSON Web Key Set; an https URL is fetched again every 10 minutes, and for a key that is not known
    #[arg(long, value_name = "FILE|URL", conflicts_with_all = ["jwt_secret_file", "jwt_public_key"], help_heading = "Tokens")]
    pub jwks: Option<PathBuf>,

    /// File that lists revoked tokens; read again when it changes [default: that of `token revoke`]
    #[arg(long, value_name = "FILE", help_heading = "Tokens")]
    pub revoked_file: Option<PathBuf>,

    /// Allow these commands only, such as `createTab`; `*` matches any characters (repeatable)
    #[arg(long, value_name = "METHOD", help_heading = "What clients may do")]
    pub allow_method: Vec<String>,

    /// Deny these commands, in addition to `get_debug_storage` (repeatable)
    #[arg(long, value_name = "METHOD", help_heading = "What clients may do")]
    pub deny_method: Vec<String>,

    /// Allow these methods of the Chrome DevTools Protocol only, such as `Page.*` (repeatable)
    #[arg(long, value_name = "METHOD", help_heading = "What clients may do")]
    pub allow_cdp: Vec<String>,

    /// Deny these instead of the default, which is cookies, files and other targets (repeatable)
    #[arg(long, value_name = "METHOD", help_heading = "What clients may do")]
    pub deny_cdp: Vec<String>,

    /// Allow tabs to be opened with, or sent to, these URLs only, such as `https://*.example.com/*` (repeatable)
    #[arg(long, value_name = "URL", help_heading = "What clients may do")]
    pub allow_url: Vec<String>,

    /// Deny these URLs (repeatable)
    #[arg(long, value_name = "URL", help_heading = "What clients may do")]
    pub deny_url: Vec<String>,

    /// How long an extension may take for a command
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time_from(SHORTEST_COMMAND), help_heading = "Limits")]
    pub command_timeout: Duration,

    /// How long a lost client or extension can come back to its connections and tabs
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time_from(Duration::ZERO), help_heading = "Limits")]
    pub resume_window: Duration,

    /// Maximum number of commands a second of all clients of a user together
    #[arg(long, value_name = "N", default_value = "500", value_parser = from_one_to::<NonZeroU32>(MAX_RATE), help_heading = "Limits")]
    pub user_rate: NonZeroU32,

    /// Maximum number of commands a second of one connection
    #[arg(long, value_name = "N", default_value = "200", value_parser = from_one_to::<NonZeroU32>(MAX_RATE), help_heading = "Limits")]
    pub connection_rate: NonZeroU32,

    /// Maximum number of connections of one user
    #[arg(long, value_name = "N", default_value = "64", value_parser = from_one_to::<NonZeroUsize>(MAX_CONNECTIONS), help_heading = "Limits")]
    pub max_connections: NonZeroUsize,

    /// Threads of the program [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = from_one_to::<NonZeroUsize>(MAX_THREADS.into()), help_heading = "Limits")]
    pub threads: Option<NonZeroUsize>,

    #[command(flatten)]
    pub protocol: RelayProtocolArgs,

    #[command(flatten)]
    pub proxy: ProxyArgs,

    /// The id of an extension that may connect; without it every extension may (repeatable)
    #[arg(long, value_name = "ID", value_parser = extension_id, help_heading = "Client side")]
    pub extension_id: Vec<PinnedExtension>,

    /// Append a JSON line to this file for each token, connection and command, without parameters
    #[arg(long, value_name = "FILE", help_heading = "Record")]
    pub audit_log: Option<PathBuf>,
}

/// An extension that may connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedExtension {
    /// What its browser sends as the Origin.
    pub origin: String,
}

/// An id as browsers show it: 32 letters in Chromium, a UUID in Firefox.
fn extension_id(text: &str) -> Result<PinnedExtension, String> {
    let is_chromium = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'a'..=b'p'));
    let scheme = match text {
        _ if is_chromium => "chrome-extension",
        _ if is_uuid(text) => "moz-extension",
        // Firefox does not tell a server this one.
        _ if text.contains('@') => {
            return Err(
                "Firefox sends another id: give the Internal UUID that about:debugging shows"
                    .to_owned(),
            );
        }
        _ => {
            return Err(
                "give the 32 letters from a to p that chrome://extensions shows, or the Internal UUID that Firefox \
                 shows in about:debugging"
                    .to_owned(),
            );
        }
    };
    Ok(PinnedExtension {
        origin: format!("{scheme}://{}", text.to_ascii_lowercase()),
    })
}

fn is_uuid(text: &str) -> bool {
    let groups = text.split('-').map(str::len);
    groups.eq([8, 4, 4, 4, 12])
        && text
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// What `relay` can do besides running.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum RelayCommand {
    /// Create the secret that tokens are signed with, and print what to do next
    Init(RelayInitArgs),
    /// Print a code that gives a browser a token of a user, so that nobody has to copy one
    Pair(RelayPairArgs),
}

/// Where the secret goes.
#[derive(Clone, Debug, clap::Args)]
pub struct RelayInitArgs {
    /// The file to create [default: mcp-proxy/relay/secret in your config folder]
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
}

const PAIR: &str = "\
Examples:
  mcp-proxy relay pair --user ada
  mcp-proxy relay pair --user ada --ttl 12h --connection-url wss://relay.example.com

The code is for the newest relay that runs here, works once and ends after five minutes.";

/// `relay pair`
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = PAIR)]
pub struct RelayPairArgs {
    /// The user that the browser belongs to
    #[arg(long, value_name = "NAME")]
    pub user: String,

    /// How long its token is valid: 12h, 30d, 8w
    #[arg(long, value_name = "TIME", value_parser = super::time::age, default_value = "21d")]
    pub ttl: Duration,

    /// Write this ws:// or wss:// URL into its token, for browsers that connect where their token says [default: where it
    /// sends the code]
    #[arg(long, value_name = "URL")]
    pub connection_url: Option<String>,

    /// The relay, by the beginning of its id in `mcp-proxy ls`
    #[arg(long, value_name = "ID")]
    pub relay: Option<String>,
}

/// Flags about one MCP server, and about HTTP sessions, mean nothing here; some others mean something else.
pub fn adapt_flags(arg: clap::Arg) -> clap::Arg {
    const HIDDEN: [&str; 7] = [
        "listen",
        "env_mode",
        "auth_token_file",
        "max_sessions",
        "stateless",
        "idle_timeout",
        "stall_timeout",
    ];
    let arg = super::serve::hide_server_flags(arg);
    match arg.get_id().as_str() {
        "listen_port" => {
            arg.help("Port; 0 picks one, the first line on stderr names it [default: 8899]")
        }
        "listen_host" => arg.help(
            "Address to listen on; anything but loopback requires TLS or --behind-tls-proxy [default: 127.0.0.1]",
        ),
        "ca_file" => arg
            .hide(false)
            .help_heading("Tokens")
            .help("Certificate authorities for the server of a --jwks URL, in addition to the system's (PEM)"),
        "allow_origin" => arg.help(
            "A web origin whose pages may connect, such as `https://app.example` (repeatable)",
        ),
        "max_message" => arg.help("The largest command or answer, in bytes or with K, M, G"),
        "tls_cert" => arg.help("Certificate chain for clients and browsers (PEM)"),
        hidden if HIDDEN.contains(&hidden) => arg.hide(true),
        _ => arg,
    }
}
