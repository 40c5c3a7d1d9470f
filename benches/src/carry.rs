//! `carry`: every case in interleaved rounds, then the table of goals and the table of all figures.
//!
//! Interleaved: in each round every contender is measured once, in an order that turns, so that whatever else the
//! machine does meets all of them; ratios are made inside a round and their median is reported.

mod rounds;
mod start;
mod verdict;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use tempfile::TempDir;

use crate::bench_options::BenchOptions;
use crate::canned::AnswerSize;
use crate::cases::{CASES, START};
use crate::contender::{BenchSetup, nginx};
use crate::floor::split_url;
use crate::machine::Machine;
use crate::processes::{BenchProcess, ProcessRegister};
use crate::report::BenchReport;

#[derive(Args)]
pub struct CarryArgs {
    #[command(flatten)]
    options: BenchOptions,
    /// Another build of mcp-proxy, measured in the same rounds; each figure of ours must then be within 5 % of its own
    #[arg(long)]
    before: Option<PathBuf>,
    /// Measure only this case (may be repeated); an unknown name lists them all
    #[arg(long = "case")]
    cases: Vec<String>,
    /// nginx, if it is not found by itself
    #[arg(long)]
    nginx: Option<PathBuf>,
    /// The npm package's mcp-proxy
    #[arg(long)]
    npm_mcp_proxy: Option<PathBuf>,
    /// The PyPI package's mcp-proxy
    #[arg(long)]
    pypi_mcp_proxy: Option<PathBuf>,
    /// Where records of small messages go; a folder on the disk that users would have
    #[arg(long)]
    record_dir: Option<PathBuf>,
}

/// How often and how long.
pub struct MeasurePlan {
    pub small_rounds: usize,
    pub large_rounds: usize,
    pub starts: usize,
    pub warm_up: Duration,
    small_time: Duration,
    large_time: Duration,
}

impl MeasurePlan {
    fn new(options: &BenchOptions) -> Result<MeasurePlan> {
        if options.quick {
            let (warm_up, time) = (Duration::from_millis(100), Duration::from_millis(500));
            return Ok(MeasurePlan {
                small_rounds: 1,
                large_rounds: 1,
                starts: 2,
                warm_up,
                small_time: time,
                large_time: time,
            });
        }
        // Many short rounds: the machine's pace changes by the second, and a ratio is made inside a round.
        let time = |default| {
            let seconds = options.seconds.unwrap_or(default);
            Duration::try_from_secs_f64(seconds).context("--seconds is a positive number")
        };
        Ok(MeasurePlan {
            small_rounds: options.rounds.unwrap_or(20),
            large_rounds: options.rounds.unwrap_or(5),
            starts: 2 * options.rounds.unwrap_or(5),
            warm_up: Duration::from_millis(200),
            small_time: time(0.4)?,
            large_time: time(1.0)?,
        })
    }

    pub fn time(&self, size: AnswerSize) -> Duration {
        if size == AnswerSize::Small {
            self.small_time
        } else {
            self.large_time
        }
    }

    pub fn rounds(&self, size: AnswerSize) -> usize {
        if size == AnswerSize::Small {
            self.small_rounds
        } else {
            self.large_rounds
        }
    }
}

pub fn run(args: &CarryArgs) -> Result<()> {
    check_names(&args.cases)?;
    let plan = MeasurePlan::new(&args.options)?;
    let register = Arc::new(ProcessRegister::default());
    register.close_on_signals()?;
    let own = std::env::current_exe().context("this binary has a path")?;
    let (_server, setup) = set_up(args, own, &register)?;
    let machine = Machine::read(setup.folder.path(), setup.memory.path())?;
    let mut report = BenchReport::new(machine);
    let wanted = |name: &str| args.cases.is_empty() || args.cases.iter().any(|case| case == name);
    for case in CASES.iter().filter(|case| wanted(case.name)) {
        let results = rounds::measure(&setup, &plan, case);
        report.rows.extend(verdict::rows(case, &results));
        report.rows.extend(verdict::rows_of_before(case, &results));
        report.figures.extend(results.figures(case.name));
    }
    if wanted(START) {
        start::measure(&setup, &plan, &mut report);
    }
    args.options.publish(&report)
}

fn check_names(names: &[String]) -> Result<()> {
    let known: Vec<&str> = CASES.iter().map(|case| case.name).chain([START]).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("no case {name}; there are {}", known.join(", "));
    }
    Ok(())
}

/// The one HTTP server of the run, and everything that contenders need.
fn set_up(
    args: &CarryArgs,
    own: PathBuf,
    register: &Arc<ProcessRegister>,
) -> Result<(BenchProcess, BenchSetup)> {
    let binary = |path: &PathBuf| {
        path.canonicalize()
            .with_context(|| format!("no proxy at {}", path.display()))
    };
    let proxy = binary(&args.options.proxy)?;
    let before = args.before.as_ref().map(binary).transpose()?;
    let folder = match &args.record_dir {
        Some(folder) => TempDir::new_in(folder),
        None => TempDir::new(),
    };
    let folder = folder.context("cannot make a folder for records")?;
    let memory = TempDir::new_in("/dev/shm").context("records of large messages need /dev/shm")?;
    register.remember_folder(folder.path().to_owned());
    register.remember_folder(memory.path().to_owned());
    let mut command = Command::new(&own);
    command
        .args(["canned-server", "http"])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let running = BenchProcess::start(register, command)?;
    let (server, _) = split_url(&running.listening_on()?)?;
    let setup = BenchSetup {
        register: Arc::clone(register),
        own,
        proxy,
        before,
        nginx: args.nginx.clone().or_else(nginx::find),
        npm: args.npm_mcp_proxy.clone(),
        pypi: args.pypi_mcp_proxy.clone(),
        server,
        folder,
        memory,
    };
    Ok((running, setup))
}
