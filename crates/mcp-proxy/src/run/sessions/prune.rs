//! `prune`.

use std::process::ExitCode;

use anyhow::Result;

use crate::cli::sessions::PruneArgs;

/// Runs it.
pub fn run(_args: &PruneArgs) -> Result<ExitCode> {
    anyhow::bail!("not built yet")
}
