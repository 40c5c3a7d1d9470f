//! `relay`: what `mcp-proxy relay` costs between clients and extensions, next to a bare echo of WebSocket messages.
//!
//! This process plays all clients and extensions, on one thread and with frames of its own ([`frames`]), because a library would
//! take as long as the relay does. What it used is in the table: if it was the slower one, the rate is its own. A command and its
//! answer are two relayed messages; an echoed message is one. Each of them is read once and written once by either side.

mod cases;
mod crowd;
mod frames;
mod goals;
mod load;
mod peers;
mod setup;
mod socket;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;

use crate::bench_options::BenchOptions;
use crate::machine::Machine;
use crate::processes::ProcessRegister;
use crate::report::BenchReport;
use setup::RelaySetup;

#[derive(Args)]
pub struct RelayBenchArgs {
    #[command(flatten)]
    options: BenchOptions,
    /// Measure only this case (may be repeated)
    #[arg(long = "case", value_parser = goals::ALL)]
    cases: Vec<String>,
}

/// How often, how long and how many.
struct RelayPlan {
    rounds: usize,
    large_rounds: usize,
    warm_up: Duration,
    time: Duration,
    /// Sockets of a crowd.
    crowd: usize,
    /// How long a crowd is watched: whole intervals of its keep-alives.
    idle: Duration,
}

impl RelayPlan {
    fn new(options: &BenchOptions) -> Result<RelayPlan> {
        let quick = options.quick;
        let seconds = options.seconds.unwrap_or(if quick { 0.25 } else { 0.5 });
        let time =
            Duration::try_from_secs_f64(seconds).context("--seconds is a positive number")?;
        let rounds = |default| options.rounds.unwrap_or(if quick { 1 } else { default });
        Ok(RelayPlan {
            rounds: rounds(10),
            large_rounds: rounds(3),
            warm_up: time / 2,
            time,
            crowd: if quick { 500 } else { 10_000 },
            idle: Duration::from_secs(if quick { 1 } else { 40 }),
        })
    }
}

pub fn run(args: &RelayBenchArgs) -> Result<()> {
    let plan = RelayPlan::new(&args.options)?;
    let register = Arc::new(ProcessRegister::default());
    register.close_on_signals()?;
    let setup = RelaySetup::new(&register, &args.options.proxy)?;
    let mut report = BenchReport::new(Machine::read(setup.folder(), setup.folder())?);
    let wanted = |name: &str| args.cases.is_empty() || args.cases.iter().any(|case| case == name);
    for case in goals::ALL.into_iter().filter(|case| wanted(case)) {
        cases::measure(case, &setup, &plan, &mut report);
    }
    args.options.publish(&report)
}
