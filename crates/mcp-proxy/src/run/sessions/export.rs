//! `export`.

use std::process::ExitCode;

use anyhow::Result;

use crate::cli::sessions::ExportArgs;

/// Runs it.
pub fn run(_args: &ExportArgs) -> Result<ExitCode> {
    anyhow::bail!("not built yet")
}
