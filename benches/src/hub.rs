//! `hub`: what `mcp-proxy serve` costs in front of ten servers, next to no proxy, the bare copy and the crate of its name.
//!
//! As in `carry`, contenders are measured in interleaved rounds, ratios are made inside a round, and their median counts.

mod calls;
mod cases;
mod goals;
mod setup;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;

use crate::bench_options::BenchOptions;
use crate::machine::Machine;
use crate::processes::ProcessRegister;
use crate::report::BenchReport;
use setup::HubSetup;

#[derive(Args)]
pub struct HubArgs {
    #[command(flatten)]
    options: BenchOptions,
    /// The binary of the crate mcp-proxy 0.6.0 from crates.io
    #[arg(long)]
    peer: Option<PathBuf>,
    /// Measure only this case (may be repeated)
    #[arg(long = "case", value_parser = goals::ALL)]
    cases: Vec<String>,
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
    fn new(options: &BenchOptions) -> Result<HubPlan> {
        let seconds = options
            .seconds
            .unwrap_or(if options.quick { 0.25 } else { 0.4 });
        let time =
            Duration::try_from_secs_f64(seconds).context("--seconds is a positive number")?;
        let rounds = |default| {
            options
                .rounds
                .unwrap_or(if options.quick { 1 } else { default })
        };
        Ok(HubPlan {
            rounds: rounds(20),
            starts: rounds(5),
            warm_up: time / 2,
            time,
        })
    }
}

pub fn run(args: &HubArgs) -> Result<()> {
    let plan = HubPlan::new(&args.options)?;
    let register = Arc::new(ProcessRegister::default());
    register.close_on_signals()?;
    let setup = HubSetup::new(&register, &args.options.proxy, args.peer.as_deref())?;
    if args.peer.is_none() {
        eprintln!("without the crate mcp-proxy of crates.io: --peer is not given");
    }
    let folder = setup.folder();
    let mut report = BenchReport::new(Machine::read(folder, folder)?);
    let wanted = |name: &str| args.cases.is_empty() || args.cases.iter().any(|case| case == name);
    cases::measure_all(&setup, &plan, wanted, &mut report);
    args.options.publish(&report)
}
