//! `logout`: the tokens of a server are revoked where that is possible, and forgotten.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use mcp_proxy_auth::{Revocation, SignOut};
use mcp_proxy_wire::terminal_text::sanitize;

use super::server::find;
use crate::cli::sign_in::LogoutArgs;
use crate::printer;
use crate::run::runtime;

/// Signs out.
pub fn run(args: &LogoutArgs) -> Result<ExitCode> {
    let sign_in = find(&args.server)?.sign_in;
    let runtime = runtime().context("cannot start")?;
    let done = runtime.block_on(sign_in.sign_out())?;
    let mut out = printer::stdout_writer();
    writeln!(out, "{}", told(&sanitize(sign_in.server()), &done))?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn told(server: &str, done: &SignOut) -> String {
    match (done.was_signed_in, &done.revocation) {
        (false, _) => format!("you were not signed in to {server}"),
        (true, Revocation::Revoked) => {
            format!("signed out of {server}; the tokens were revoked and removed")
        }
        (true, Revocation::NotOffered) => format!(
            "signed out of {server}; the tokens were removed, but the server cannot revoke them: they stay valid until they expire"
        ),
        (true, Revocation::Failed(error)) => {
            format!("signed out of {server}; the tokens were removed, but not revoked: {error}")
        }
    }
}
