//! `cargo xtask man`: the man pages, written by the binary itself from its own command line.

use anyhow::{Context, Result};

use crate::process::{self, cargo, target_dir};

pub fn run() -> Result<()> {
    let directory = target_dir()?.join("man");
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("creating {}", directory.display()))?;
    process::run(
        "man pages",
        cargo("run --quiet --package mcp-proxy -- man").arg(&directory),
    )?;
    eprintln!("man pages: {}", directory.display());
    Ok(())
}
