//! `completions` and the man pages: both made from the one list of commands.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;

use crate::cli::{Args, CompletionsArgs};
use crate::printer;

/// Prints a completion script.
pub fn run(args: &CompletionsArgs) -> Result<ExitCode> {
    let mut out = printer::stdout_writer();
    clap_complete::generate(args.shell, &mut Args::command(), "mcp-proxy", &mut out);
    Ok(ExitCode::SUCCESS)
}

/// Writes `mcp-proxy.1` and a page for each command.
pub fn man(folder: &Path) -> Result<ExitCode> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    clap_mangen::generate_to(Args::command(), folder)
        .with_context(|| format!("cannot write man pages into {}", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
