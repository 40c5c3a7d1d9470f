//! The flags of `login` and `logout`.

use std::path::PathBuf;
use std::time::Duration;

use super::time::time;

/// What `login --help` shows first.
pub const LOGIN_AFTER: &str = "\
Examples:
  mcp-proxy login https://mcp.linear.app/mcp            sign in to a server
  mcp-proxy login linear --config ~/.cursor/mcp.json    by its name in a config file
  mcp-proxy login linear                                by its name in a running hub
  mcp-proxy login linear --no-browser                   over SSH: paste where the browser ends

The tokens are kept in the system's keychain, or in a private file. Every command uses them:
`serve`, `tools`, `call`, and `mcp-proxy URL`. A running hub notices within seconds.";

/// What `logout --help` shows first.
pub const LOGOUT_AFTER: &str = "\
Examples:
  mcp-proxy logout https://mcp.linear.app/mcp
  mcp-proxy logout linear --config ~/.cursor/mcp.json";

/// The server that is signed in to.
#[derive(Debug, clap::Args)]
pub struct SignInServerArgs {
    /// The server: its URL, or its name in a config file or a running hub
    #[arg(value_name = "NAME|URL")]
    pub server: String,

    /// The config file that has the name (repeatable) [default: those of running hubs, and your own]
    #[arg(long, value_name = "FILE")]
    pub config: Vec<PathBuf>,

    /// Trust the certificate authorities in this PEM file, in addition to the system's
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
}

/// Sign in to a server.
#[derive(Debug, clap::Args)]
pub struct LoginArgs {
    #[command(flatten)]
    pub server: SignInServerArgs,

    /// Ask for these scopes too, such as 'read write' (repeatable)
    #[arg(long, value_name = "SCOPES")]
    pub scope: Vec<String>,

    /// Print the URL instead of opening a browser, and take the redirect or its URL pasted on stdin
    #[arg(long)]
    pub no_browser: bool,

    /// How long to wait for you to sign in
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10m")]
    pub timeout: Duration,
}

/// Sign out of a server.
#[derive(Debug, clap::Args)]
pub struct LogoutArgs {
    #[command(flatten)]
    pub server: SignInServerArgs,
}
