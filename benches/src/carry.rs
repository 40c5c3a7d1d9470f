//! `carry`: what `mcp-proxy proxy` costs in front of one server, for each pairing of HTTP and stdio.

mod command;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::Bench;
use crate::canned::{BenchEra, Request, ResultSize};
use crate::load::{self, HttpTarget, Load, LoadTarget, Sample, Work, milliseconds_since};
use crate::machine;
use crate::process::{self, BenchProcess};
use crate::rounds::Contender::{self, Direct, Nginx, Npm, Pypi};
use crate::rounds::Figure;
use crate::rounds::Variant::{Plain, Recording};
use crate::table::{BenchRow, BenchTable};

/// The kinds of the client's and of the server's side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pairing {
    HttpToHttp,
    HttpToStdio,
    StdioToHttp,
    StdioToStdio,
}

impl Pairing {
    fn client_is_http(self) -> bool {
        matches!(self, Pairing::HttpToHttp | Pairing::HttpToStdio)
    }

    fn server_is_http(self) -> bool {
        matches!(self, Pairing::HttpToHttp | Pairing::StdioToHttp)
    }
}

/// One load, measured for several contenders.
struct CarryCase {
    pairing: Pairing,
    era: BenchEra,
    size: ResultSize,
    in_flight: usize,
}

impl CarryCase {
    fn small(pairing: Pairing, in_flight: usize) -> CarryCase {
        CarryCase {
            pairing,
            era: BenchEra::Legacy,
            size: ResultSize::Small,
            in_flight,
        }
    }
}

/// The HTTP server of the run and everything that contenders need.
struct CarryBench<'a> {
    bench: &'a Bench,
    server: HttpTarget,
    _server: BenchProcess,
}

/// A started contender; its files go when it goes.
struct StartedContender {
    // Dropped in this order: the process, then its folder.
    process: Option<BenchProcess>,
    target: LoadTarget,
    _files: TempDir,
}

pub async fn measure(bench: &Bench) -> Result<BenchTable> {
    let carry = CarryBench::new(bench)?;
    let mut table = bench.table();
    let rate = |name, variant| BenchRow::new(name, "calls/s", variant, Figure::Rate);

    let rows = [
        rate("HTTP→HTTP, small call", Plain),
        rate("HTTP→HTTP, small call, recorded", Recording),
    ];
    let case = CarryCase::small(Pairing::HttpToHttp, 16);
    carry.case(&mut table, &rows, &[Direct, Nginx], &case).await;

    let rows = [
        rate("HTTP→stdio, small call", Plain),
        rate("HTTP→stdio, small call, recorded", Recording),
    ];
    let case = CarryCase::small(Pairing::HttpToStdio, 16);
    let peers = [Direct, Npm, Pypi];
    carry.case(&mut table, &rows, &peers, &case).await;

    let rows = [rate("HTTP→stdio, small call of 2026-07-28", Plain)];
    let case = CarryCase {
        era: BenchEra::Modern,
        ..CarryCase::small(Pairing::HttpToStdio, 16)
    };
    // The PyPI proxy refuses requests without a session.
    carry.case(&mut table, &rows, &[Direct, Npm], &case).await;

    let rows = [
        rate("stdio→HTTP, small call", Plain),
        rate("stdio→HTTP, small call, recorded", Recording),
    ];
    let case = CarryCase::small(Pairing::StdioToHttp, 32);
    carry.case(&mut table, &rows, &[Direct, Pypi], &case).await;

    let rows = [
        rate("stdio→stdio, small call", Plain),
        rate("stdio→stdio, small call, recorded", Recording),
    ];
    let case = CarryCase::small(Pairing::StdioToStdio, 32);
    carry.case(&mut table, &rows, &[Direct], &case).await;

    carry.large_results(&mut table).await;

    let rows = [BenchRow::new(
        "HTTP→HTTP, added p50",
        "µs",
        Plain,
        Figure::AddedP50,
    )];
    let case = CarryCase::small(Pairing::HttpToHttp, 1);
    carry.case(&mut table, &rows, &[Direct, Nginx], &case).await;

    let rows = [
        BenchRow::new(
            "HTTP→stdio, start to first answer",
            "ms",
            Plain,
            Figure::StartTime,
        ),
        BenchRow::new("HTTP→stdio, idle memory", "MB", Plain, Figure::IdleMemory),
    ];
    let start = async |who| carry.measure_start(who, Pairing::HttpToStdio).await;
    bench.case(&mut table, &rows, &[Npm, Pypi], start).await;
    Ok(table)
}

impl<'a> CarryBench<'a> {
    fn new(bench: &'a Bench) -> Result<CarryBench<'a>> {
        let running = BenchProcess::start_listener(bench.canned_server(["http"]))?;
        let (address, path) = running.listening_on()?;
        Ok(CarryBench {
            bench,
            server: HttpTarget { address, path },
            _server: running,
        })
    }

    async fn case(
        &self,
        table: &mut BenchTable,
        rows: &[BenchRow],
        peers: &[Contender],
        case: &CarryCase,
    ) {
        let measure = async |who| self.measure_load(who, case).await;
        self.bench.case(table, rows, peers, measure).await;
    }

    async fn large_results(&self, table: &mut BenchTable) {
        let rows = [BenchRow::new(
            "HTTP→HTTP, result of 1 MB",
            "MB/s",
            Plain,
            Figure::MegabyteRate(1.0),
        )];
        let case = CarryCase {
            size: ResultSize::OneMegabyte,
            ..CarryCase::small(Pairing::HttpToHttp, 4)
        };
        self.case(table, &rows, &[Direct, Nginx], &case).await;

        let rows = [
            BenchRow::new(
                "stdio→stdio, result of 10 MB",
                "MB/s",
                Plain,
                Figure::MegabyteRate(10.0),
            ),
            BenchRow::new(
                "stdio→stdio, result of 10 MB, peak over idle",
                "MB",
                Plain,
                Figure::PeakOverIdle,
            ),
        ];
        let case = CarryCase {
            size: ResultSize::TenMegabytes,
            ..CarryCase::small(Pairing::StdioToStdio, 1)
        };
        self.case(table, &rows, &[Direct], &case).await;
    }

    async fn measure_load(&self, who: Contender, case: &CarryCase) -> Result<Sample> {
        let load = Load {
            era: case.era,
            work: vec![Work::Call(Request::call(
                case.era,
                case.size.tool(),
                case.size.bytes(),
            ))],
            in_flight: case.in_flight,
            time: self.bench.time,
        };
        let mut contender = self.start(who, case.pairing)?;
        let process = contender.process.as_mut();
        let outcome = load::measure(&contender.target, process, &load).await;
        outcome.with_context(|| {
            let process = contender.process.as_ref();
            let lines = process.map(BenchProcess::last_lines);
            format!("measurement failed{}", lines.unwrap_or_default())
        })
    }

    /// From starting a process to its first answered `initialize`, and its memory then.
    async fn measure_start(&self, who: Contender, pairing: Pairing) -> Result<Sample> {
        let start = Instant::now();
        let contender = self.start(who, pairing)?;
        let mut process = contender.process.context("a program that starts")?;
        let _session = load::open_once(&contender.target, &mut process).await?;
        Ok(Sample {
            start_ms: Some(milliseconds_since(start)),
            idle_mb: machine::resident_mb(process.id()),
            ..Sample::default()
        })
    }

    fn start(&self, who: Contender, pairing: Pairing) -> Result<StartedContender> {
        let files = TempDir::new_in(&self.bench.folder)?;
        if who == Direct && pairing.client_is_http() {
            return Ok(StartedContender {
                process: None,
                target: LoadTarget::Http(self.server.clone()),
                _files: files,
            });
        }
        let port = process::free_port()?;
        let command = self.command(who, pairing, files.path(), port)?;
        if !pairing.client_is_http() {
            return Ok(StartedContender {
                process: Some(BenchProcess::start_on_pipes(command)?),
                target: LoadTarget::Pipes,
                _files: files,
            });
        }
        let mut process = BenchProcess::start_listener(command)?;
        let (address, path) = if who.is_peer() {
            (process.wait_for_port(port)?, "/mcp".to_owned())
        } else {
            process.listening_on()?
        };
        Ok(StartedContender {
            process: Some(process),
            target: LoadTarget::Http(HttpTarget { address, path }),
            _files: files,
        })
    }

    fn program(&self, who: Contender) -> Result<PathBuf> {
        let program = self.bench.program(who);
        Ok(program.context("the program is not given")?.to_owned())
    }
}
