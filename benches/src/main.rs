//! The benchmarks behind `cargo xtask bench`: what mcp-proxy costs in each of its jobs.
//!
//! One binary holds the canned MCP server that everything is measured against, one load generator, and one table for each
//! job: `carry` (`mcp-proxy proxy`), `hub` (`mcp-proxy serve`), `relay`, and `search`, the hub's search for tools.
//! It prints markdown. Every other program is optional: what is not given is left out of the comparison.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a measuring tool prints its tables to stdout and its progress to stderr"
)]

mod canned;
mod canned_server;
mod carry;
mod hub;
mod load;
mod machine;
mod process;
mod relay;
mod rounds;
mod search;
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use tempfile::TempDir;
use tokio::task::LocalSet;

use rounds::Contender;
use table::{BenchRow, BenchTable};

#[derive(Parser)]
#[command(name = "mcp-proxy-benches", about = "Measure what mcp-proxy costs")]
struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand)]
enum BenchCommand {
    /// Measure `proxy`: one server behind the proxy
    Carry(BenchOptions),
    /// Measure `serve`: ten servers with a hundred tools each behind one endpoint
    Hub(BenchOptions),
    /// Measure `relay`: commands of clients to browser extensions
    Relay(BenchOptions),
    /// Measure the search for tools: what it finds, and how fast
    Search(search::SearchArgs),
    /// The canned MCP server that everything is measured against
    CannedServer(canned_server::CannedServerArgs),
}

/// What is measured, how long, and what it is compared with.
#[derive(Args)]
pub struct BenchOptions {
    /// The mcp-proxy binary to measure
    #[arg(long)]
    proxy: PathBuf,
    /// Another build of mcp-proxy, measured in the same rounds
    #[arg(long)]
    before: Option<PathBuf>,
    /// Rounds of each case
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 0.4)]
    seconds: f64,
    /// Measure only the rows whose names contain this text
    #[arg(long)]
    row: Option<String>,
    /// The program nginx
    #[arg(long)]
    nginx: Option<PathBuf>,
    /// The npm package's mcp-proxy
    #[arg(long)]
    npm: Option<PathBuf>,
    /// The PyPI package's mcp-proxy
    #[arg(long)]
    pypi: Option<PathBuf>,
    /// The binary of the crate mcp-proxy of crates.io
    #[arg(long = "crate")]
    crates_io: Option<PathBuf>,
}

/// Everything that a job needs to measure its cases.
pub struct Bench {
    options: BenchOptions,
    /// This binary, which is the canned server too.
    own: PathBuf,
    time: Duration,
    /// The files of contenders.
    folder: TempDir,
}

impl Bench {
    fn new(options: BenchOptions) -> Result<Bench> {
        let time = Duration::try_from_secs_f64(options.seconds)
            .context("--seconds is a positive number")?;
        Ok(Bench {
            options,
            own: std::env::current_exe().context("this binary has a path")?,
            time,
            folder: TempDir::new().context("cannot make a folder for records")?,
        })
    }

    /// The program of a contender, or `None` if it was not given.
    fn program(&self, who: Contender) -> Option<&Path> {
        let options = &self.options;
        match who {
            Contender::Direct => Some(&self.own),
            Contender::Ours(_) => Some(&options.proxy),
            Contender::Before(_) => options.before.as_deref(),
            Contender::Nginx => options.nginx.as_deref(),
            Contender::Npm => options.npm.as_deref(),
            Contender::Pypi => options.pypi.as_deref(),
            Contender::Crate => options.crates_io.as_deref(),
        }
    }

    fn table(&self) -> BenchTable {
        BenchTable::new(self.options.rounds, self.options.seconds)
    }

    /// The canned server with these arguments.
    fn canned_server<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new(&self.own);
        command.arg("canned-server").args(arguments);
        command
    }

    /// Measures a case in interleaved rounds and adds its rows, unless none of them is wanted.
    async fn case(
        &self,
        table: &mut BenchTable,
        rows: &[BenchRow],
        peers: &[Contender],
        measure: impl AsyncFnMut(Contender) -> Result<load::Sample>,
    ) {
        let wanted: Vec<&BenchRow> = rows
            .iter()
            .filter(|row| {
                let part = self.options.row.as_deref().unwrap_or_default();
                row.name.contains(part)
            })
            .collect();
        let Some(first) = wanted.first() else {
            return;
        };
        let mut contenders = peers.to_vec();
        for row in &wanted {
            for who in [Contender::Ours(row.variant), Contender::Before(row.variant)] {
                if !contenders.contains(&who) {
                    contenders.push(who);
                }
            }
        }
        contenders.retain(|who| self.program(*who).is_some());
        let results = rounds::measure(first.name, self.options.rounds, contenders, measure).await;
        for row in wanted {
            table.add(row, &results);
        }
    }
}

fn main() -> Result<()> {
    match BenchArgs::parse().command {
        BenchCommand::Carry(options) => run(options, carry::measure),
        BenchCommand::Hub(options) => run(options, hub::measure),
        BenchCommand::Relay(options) => run(options, relay::measure),
        BenchCommand::Search(args) => search::run(&args),
        BenchCommand::CannedServer(args) => canned_server::run(&args),
    }
}

/// Measures one job and prints its table.
fn run(options: BenchOptions, job: impl AsyncFnOnce(&Bench) -> Result<BenchTable>) -> Result<()> {
    let bench = Bench::new(options)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let table = LocalSet::new().block_on(&runtime, async {
        // An interrupted run drops its processes and folders like one that is done.
        tokio::select! {
            table = job(&bench) => table,
            _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        }
    })?;
    println!("{table}");
    Ok(())
}
