//! The flags of `token`.

use std::path::PathBuf;
use std::time::Duration;

use super::time::age;

const TOKEN: &str = "\
Examples:
  mcp-proxy token init                      create the secret, once
  mcp-proxy token issue --user alice        a token for the browser and the clients of alice
  mcp-proxy token show -                    look at a token, read from stdin
  mcp-proxy token revoke user:alice         refuse all tokens that alice has

docs/tokens.md explains tokens, keys and the file of revoked tokens.";

/// Issue, show and revoke tokens.
#[derive(Debug, clap::Args)]
#[command(after_help = TOKEN)]
pub struct TokenArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: TokenCommand,
}

/// What can be done with tokens.
#[derive(Debug, clap::Subcommand)]
pub enum TokenCommand {
    /// Create a secret to sign tokens with; an existing one is kept
    Init(TokenInitArgs),
    /// Print a new token
    Issue(TokenIssueArgs),
    /// Print what a token says, and whether it is good
    Show(TokenShowArgs),
    /// Revoke a token, or all tokens that a user has
    Revoke(TokenRevokeArgs),
}

const INIT: &str = "\
Examples:
  mcp-proxy token init
  mcp-proxy token init --secret-file /etc/relay/secret

The file holds 32 random bytes as text. Only its owner can read it.";

/// `token init`
#[derive(Debug, clap::Args)]
#[command(after_help = INIT)]
pub struct TokenInitArgs {
    /// Create this file instead of relay/secret in the config folder
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
}

const ISSUE: &str = "\
Examples:
  mcp-proxy token issue --user alice
  mcp-proxy token issue --user alice --ttl 12h --connection-url wss://relay.example.com
  mcp-proxy token issue --user alice --secret-file relay.key    sign with a private key

The token is printed on stdout, its id and its end on stderr. Anyone who has the token acts as the
user: treat it like a password.";

/// `token issue`
#[derive(Debug, clap::Args)]
#[command(after_help = ISSUE)]
pub struct TokenIssueArgs {
    /// The user that the token belongs to
    #[arg(long, value_name = "NAME")]
    pub user: String,

    /// How long it is valid: 12h, 30d, 8w
    #[arg(long, value_name = "TIME", value_parser = age, default_value = "21d")]
    pub ttl: Duration,

    /// Write this ws:// or wss:// URL into the token, for browsers and clients that connect where their token says
    #[arg(long, value_name = "URL")]
    pub connection_url: Option<String>,

    /// Sign with this secret, or with this private key in PEM form [default: relay/secret in the config folder]
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,

    #[command(flatten)]
    pub revoked: RevokedFileArgs,
}

const SHOW: &str = "\
Examples:
  mcp-proxy token show eyJhbGciOiJIUzI1NiJ9…
  mcp-proxy token show - < token.txt
  mcp-proxy token show - --public-key relay.pub < token.txt
  mcp-proxy token show - --jwks keys.json --json < token.txt

Exit code: 0 the token is good, 1 it is not or no key was found, 2 wrong usage.";

/// `token show`
#[derive(Debug, clap::Args)]
#[command(after_help = SHOW)]
pub struct TokenShowArgs {
    /// The token, or - to read it from stdin
    #[arg(value_name = "TOKEN")]
    pub token: String,

    /// Verify with this secret [default: relay/secret in the config folder]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["public_key", "jwks"])]
    pub secret_file: Option<PathBuf>,

    /// Verify with this public key in PEM form: RSA, EC P-256 or Ed25519
    #[arg(long, value_name = "FILE", conflicts_with = "jwks")]
    pub public_key: Option<PathBuf>,

    /// Verify with the public keys of this JSON Web Key Set
    #[arg(long, value_name = "FILE")]
    pub jwks: Option<PathBuf>,

    #[command(flatten)]
    pub revoked: RevokedFileArgs,

    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

const REVOKE: &str = "\
Examples:
  mcp-proxy token revoke 5f0c2a94b7e1d3f6a8c0e2b4d6f8a1c3    one token, by its id
  mcp-proxy token revoke - < token.txt                       one token
  mcp-proxy token revoke user:alice                          all tokens that alice has by now
  mcp-proxy token revoke jti:ab-12                           a token of another issuer, by its id

Tokens that are issued to the user later are good.";

/// `token revoke`
#[derive(Debug, clap::Args)]
#[command(after_help = REVOKE)]
pub struct TokenRevokeArgs {
    /// A token, the id of a token, user:NAME, or jti:ID; - reads it from stdin
    #[arg(value_name = "TOKEN|ID|user:NAME|jti:ID")]
    pub target: String,

    #[command(flatten)]
    pub revoked: RevokedFileArgs,
}

/// Where revoked tokens are listed.
#[derive(Debug, clap::Args)]
pub struct RevokedFileArgs {
    /// The file of revoked tokens [default: relay/revoked in the config folder]
    #[arg(long, value_name = "FILE")]
    pub revoked_file: Option<PathBuf>,
}
