//! `token`: creates the secret of a relay, and issues, shows and revokes access tokens.

mod show;

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};
use http::Uri;
use mcp_proxy_token::{
    DecodedToken, IssueError, RevocationEntry, RevocationList, SigningKey, TokenRequest,
    create_secret, issue,
};

use super::UsageError;
use super::sessions::{formatting, ignore_broken_pipe};
use crate::cli::token::{
    RevokedFileArgs, TokenCommand, TokenInitArgs, TokenIssueArgs, TokenRevokeArgs,
};
use crate::config::RelayFile;
use crate::printer;

/// Longer input on stdin is not a token.
const LONGEST_INPUT: u64 = 64 * 1024;

/// Runs one of the commands.
pub fn run(command: &TokenCommand) -> Result<ExitCode> {
    ignore_broken_pipe(match command {
        TokenCommand::Init(args) => init(args),
        TokenCommand::Issue(args) => issue_token(args),
        TokenCommand::Show(args) => show::run(args),
        TokenCommand::Revoke(args) => revoke(args),
    })
}

fn init(args: &TokenInitArgs) -> Result<ExitCode> {
    let path = secret_file(args.secret_file.as_deref())?;
    create_secret(&path)?;
    print(&format!("Created {}", path.display()))
}

fn issue_token(args: &TokenIssueArgs) -> Result<ExitCode> {
    if let Some(url) = &args.connection_url {
        check_connection_url(url)?;
    }
    let path = secret_file(args.secret_file.as_deref())?;
    if args.secret_file.is_none() && !path.exists() {
        bail!(
            "{} does not exist; `mcp-proxy token init` creates a secret there",
            path.display()
        );
    }
    let key = SigningKey::from_file(&path)?;
    let revoked_file = revoked_file(&args.revoked)?;
    let revoked = open_revoked(&revoked_file)?;
    // A token that is issued in the second of a revocation would be revoked with the older ones.
    let Some(start) = revoked.next_issue(&args.user, SystemTime::now()) else {
        bail!(
            "{} is revoked in {}; a new token would be refused",
            args.user,
            revoked_file.display()
        );
    };
    let request = TokenRequest {
        user: args.user.clone(),
        lifetime: args.ttl,
        connection_url: args.connection_url.clone(),
    };
    let issued = issue(&key, &request, start).map_err(explain)?;
    printer::say(&format!(
        "mcp-proxy: token {} of {}, valid until {} UTC",
        issued.token_id,
        args.user,
        formatting::day_and_time(issued.expires_at)
    ));
    print(&issued.token)
}

/// A name or a time that no token can have is a mistake on the command line.
fn explain(error: IssueError) -> anyhow::Error {
    match error {
        IssueError::Signing => error.into(),
        IssueError::UserName => UsageError(format!("--user: {error}")).into(),
        IssueError::Lifetime => UsageError(format!("--ttl: {error}")).into(),
    }
}

fn revoke(args: &TokenRevokeArgs) -> Result<ExitCode> {
    let target = read_argument(&args.target)?;
    let path = revoked_file(&args.revoked)?;
    let (entry, what) = match target.strip_prefix("user:") {
        Some(user) => (
            RevocationEntry::user_until(user, SystemTime::now()),
            format!("all tokens that {user} has"),
        ),
        None => {
            let token_id = token_id(&target)?;
            let what = format!("the token {token_id}");
            (RevocationEntry::Token(token_id), what)
        }
    };
    open_revoked(&path)?
        .append(entry)
        .with_context(|| format!("cannot revoke it in {}", path.display()))?;
    print(&format!("Revoked {what}, in {}", path.display()))
}

/// The id of a token, from the token itself or as it was typed.
fn token_id(target: &str) -> Result<String> {
    // Every token starts like this: it is `{"` in base64.
    let is_token = target.starts_with("eyJ") && target.contains('.');
    if !is_token {
        return typed_id(target);
    }
    let token = DecodedToken::decode(target)?;
    match token.claims.get("jti").and_then(|jti| jti.as_str()) {
        Some(token_id) => Ok(token_id.to_owned()),
        None => bail!("the token has no id (jti); revoke all tokens of its user with user:NAME"),
    }
}

/// An id of a token that we issued, or one of any form behind `jti:`. Anything else is more likely the name of a user, and a
/// token of that name would be revoked without effect.
fn typed_id(target: &str) -> Result<String> {
    if let Some(token_id) = target.strip_prefix("jti:") {
        return Ok(token_id.to_owned());
    }
    let is_own = target.len() == 32 && target.bytes().all(|byte| byte.is_ascii_hexdigit());
    match is_own {
        true => Ok(target.to_owned()),
        // Perhaps a piece of a token, which must not be repeated.
        false if target.is_empty() || target.starts_with("eyJ") => {
            bail!(UsageError(
                "this is not a token, nor the id of one".to_owned()
            ))
        }
        false => bail!(UsageError(format!(
            "{target:?} is not a token, nor the id of one that was issued here; write user:{target} to revoke all tokens of a \
             user, or jti:{target} for the id of a token that was issued elsewhere"
        ))),
    }
}

/// An argument that may be `-`: tokens on the command line are seen by other users of the machine.
fn read_argument(argument: &str) -> Result<String> {
    if argument != "-" {
        return Ok(argument.trim().to_owned());
    }
    let mut text = String::new();
    let stdin = std::io::stdin().lock();
    stdin
        .take(LONGEST_INPUT)
        .read_to_string(&mut text)
        .context("cannot read stdin")?;
    Ok(text.trim().to_owned())
}

/// Whether a browser or client can connect to it.
pub fn check_connection_url(url: &str) -> Result<()> {
    let uri: Option<Uri> = url.parse().ok();
    let is_web_socket = uri
        .is_some_and(|uri| matches!(uri.scheme_str(), Some("ws" | "wss")) && uri.host().is_some());
    match is_web_socket {
        true => Ok(()),
        false => bail!(UsageError(format!(
            "--connection-url: {url} is not a ws:// or wss:// URL"
        ))),
    }
}

fn secret_file(flag: Option<&Path>) -> Result<PathBuf> {
    token_file(RelayFile::Secret, flag)
}

fn revoked_file(args: &RevokedFileArgs) -> Result<PathBuf> {
    token_file(RelayFile::Revoked, args.revoked_file.as_deref())
}

fn token_file(file: RelayFile, flag: Option<&Path>) -> Result<PathBuf> {
    file.path(flag)
        .map_err(|error| UsageError(error.to_string()).into())
}

fn open_revoked(path: &Path) -> Result<RevocationList> {
    RevocationList::open(path).with_context(|| format!("cannot read {}", path.display()))
}

fn print(line: &str) -> Result<ExitCode> {
    let mut out = printer::stdout_writer();
    writeln!(out, "{}", mcp_proxy_wire::terminal_text::sanitize(line))?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
