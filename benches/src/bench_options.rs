//! The options that every benchmark takes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::report::BenchReport;

/// What is measured, how long, and where the report goes.
#[derive(Args)]
pub struct BenchOptions {
    /// The mcp-proxy binary to measure; this binary itself stands in for it (its bare copies take the same flags)
    #[arg(long)]
    pub proxy: PathBuf,
    /// Rounds of each case [default: 20, and 5 for starts, memory and large messages of `carry`]
    #[arg(long)]
    pub rounds: Option<usize>,
    /// Seconds of each measurement [default: 0.4, and 1 for large messages of `carry`]
    #[arg(long)]
    pub seconds: Option<f64>,
    /// One short round: does it run, not how fast
    #[arg(long)]
    pub quick: bool,
    /// Write everything measured as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// Write the tables as markdown
    #[arg(long)]
    markdown: Option<PathBuf>,
}

impl BenchOptions {
    /// Prints the report, and writes it where else it is wanted.
    pub fn publish(&self, report: &BenchReport) -> Result<()> {
        println!("{}", report.text());
        if let Some(path) = &self.markdown {
            write(path, &report.markdown())?;
        }
        if let Some(path) = &self.json {
            write(path, &serde_json::to_string_pretty(report)?)?;
        }
        Ok(())
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
