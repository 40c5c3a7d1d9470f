//! `list`.

use std::process::ExitCode;

use anyhow::Result;

use crate::cli::sessions::SessionsArgs;

/// Runs it.
pub fn run(_args: &SessionsArgs) -> Result<ExitCode> {
    anyhow::bail!("not built yet")
}
