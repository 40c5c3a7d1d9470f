//! `hub`: what `mcp-proxy serve` costs in front of ten servers, next to no proxy, the bare copy and the crate of its name.
//!
//! As in `carry`, contenders are measured in interleaved rounds, ratios are made inside a round, and their median counts.

mod cases;
mod goals;
mod setup;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;

use crate::machine::Machine;
use crate::processes::ProcessRegister;
use crate::report::BenchReport;
use setup::HubSetup;

#[derive(Args)]
pub struct HubArgs {
    /// The mcp-proxy binary to measure; this binary itself stands in for it
    #[arg(long)]
    proxy: PathBuf,
    /// The binary of the crate mcp-proxy 0.6.0 from crates.io
    #[arg(long)]
    peer: Option<PathBuf>,
    /// Measure only this case (may be repeated)
    #[arg(long = "case", value_parser = goals::ALL)]
    cases: Vec<String>,
    /// Rounds of each case [default: 20 of calls and lists, 5 of starts and memory]
    #[arg(long)]
    rounds: Option<usize>,
    /// Seconds of each measurement [default: 0.4]
    #[arg(long)]
    seconds: Option<f64>,
    /// One short round: does it run, not how fast
    #[arg(long)]
    quick: bool,
    /// Write everything measured as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// Write the tables as markdown
    #[arg(long)]
    markdown: Option<PathBuf>,
}

/// How often and how long.
struct HubPlan {
    /// Rounds of what has a duration.
    rounds: usize,
    /// Rounds of what only starts and is weighed.
    starts: usize,
    warm_up: Duration,
    time: Duration,
}

impl HubPlan {
    fn new(args: &HubArgs) -> Result<HubPlan> {
        let seconds = args.seconds.unwrap_or(if args.quick { 0.25 } else { 0.4 });
        let time =
            Duration::try_from_secs_f64(seconds).context("--seconds is a positive number")?;
        let rounds = |default| args.rounds.unwrap_or(if args.quick { 1 } else { default });
        Ok(HubPlan {
            rounds: rounds(20),
            starts: rounds(5),
            warm_up: time / 2,
            time,
        })
    }
}

pub fn run(args: &HubArgs) -> Result<()> {
    let plan = HubPlan::new(args)?;
    let register = Arc::new(ProcessRegister::default());
    register.close_on_signals()?;
    let setup = HubSetup::new(&register, &args.proxy, args.peer.as_deref())?;
    if args.peer.is_none() {
        eprintln!("without the crate mcp-proxy of crates.io: --peer is not given");
    }
    let folder = setup.folder();
    let mut report = BenchReport::new(Machine::read(folder, folder)?);
    let wanted = |name: &str| args.cases.is_empty() || args.cases.iter().any(|case| case == name);
    cases::measure_all(&setup, &plan, wanted, &mut report);
    println!("{}", report.text());
    if let Some(path) = &args.markdown {
        fs::write(path, report.markdown())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&report)?;
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
