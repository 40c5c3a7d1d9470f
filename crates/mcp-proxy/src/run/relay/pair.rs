//! `relay pair`: asks a running relay for a code.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use mcp_proxy_control::RelayPairRequest;
use mcp_proxy_transport::control::{ControlClient, ControlClientError};

use crate::cli::relay::RelayPairArgs;
use crate::printer;
use crate::run::control::choose_relay;
use crate::run::{runtime, token};

/// Prints the code.
pub fn run(args: &RelayPairArgs) -> Result<ExitCode> {
    if let Some(url) = &args.connection_url {
        token::check_connection_url(url)?;
    }
    let running = choose_relay(args.relay.as_deref())?;
    let request = RelayPairRequest {
        user: args.user.clone(),
        lifetime_s: Some(args.ttl.as_secs()),
        connection_url: args.connection_url.clone(),
    };
    let made = runtime().context("cannot start")?.block_on(async {
        let mut client = ControlClient::connect(&running.socket).await?;
        client.call(&request).await
    });
    let made = made.map_err(|error| match error {
        ControlClientError::Refused { text, .. } => anyhow::anyhow!("{text}"),
        error => error.into(),
    })?;
    printer::say(&format!(
        "mcp-proxy: a code for a browser of {}; it works once, within {} minutes",
        args.user,
        made.expires_in_ms / 60_000
    ));
    let mut out = printer::stdout_writer();
    writeln!(out, "{}", made.code)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
