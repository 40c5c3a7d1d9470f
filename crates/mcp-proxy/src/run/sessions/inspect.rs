//! `inspect`.

use std::process::ExitCode;

use anyhow::Result;

use crate::cli::sessions::InspectArgs;

/// Runs it.
pub fn run(_args: &InspectArgs) -> Result<ExitCode> {
    anyhow::bail!("not built yet")
}
