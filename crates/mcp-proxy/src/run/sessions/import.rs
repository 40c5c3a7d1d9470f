//! `import`.

use std::process::ExitCode;

use anyhow::Result;

use crate::cli::sessions::ImportArgs;

/// Runs it.
pub fn run(_args: &ImportArgs) -> Result<ExitCode> {
    anyhow::bail!("not built yet")
}
