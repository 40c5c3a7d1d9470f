//! `relay`: what `mcp-proxy relay` costs between clients and browser extensions.
//!
//! This process plays all clients and extensions, each pair a user of its own.

mod peer;

use std::cell::{Cell, RefCell};
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use mcp_proxy_token::{SigningKey, TokenRequest, create_secret, issue};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::Bench;
use crate::load::{Sample, Window, milliseconds_since};
use crate::machine;
use crate::process::BenchProcess;
use crate::rounds::Contender;
use crate::rounds::Figure;
use crate::rounds::Variant::{Plain, Recording};
use crate::table::{BenchRow, BenchTable};
use peer::{Peer, RelayUser};

/// Pairs of the load with many, and those that are only weighed.
const PAIRS: usize = 64;
const IDLE_PAIRS: usize = 1_000;
/// Far more than a load sends.
const UNLIMITED: &str = "1000000";
const START_WITHIN: Duration = Duration::from_secs(60);

/// Commands in flight and the length of their answers.
#[derive(Clone, Copy)]
struct RelayLoad {
    pairs: usize,
    /// Commands that each client has in flight.
    in_flight: usize,
    answer_bytes: usize,
}

const SCREENSHOT: RelayLoad = RelayLoad {
    pairs: 4,
    in_flight: 1,
    answer_bytes: 1_000_000,
};

struct RelayBench<'a> {
    bench: &'a Bench,
    key: SigningKey,
}

struct RunningRelay {
    // Dropped in this order: the process, then its folder.
    process: BenchProcess,
    address: std::net::SocketAddr,
    _files: TempDir,
}

pub async fn measure(bench: &Bench) -> Result<BenchTable> {
    machine::raise_file_limit()?;
    let secret = bench.folder.path().join("secret");
    create_secret(&secret)?;
    let key = SigningKey::from_file(&secret)?;
    let relay = RelayBench { bench, key };
    let mut table = bench.table();
    let rate = |name, variant| BenchRow::new(name, "commands/s", variant, Figure::Rate);
    let commands = |pairs, in_flight| RelayLoad {
        pairs,
        in_flight,
        answer_bytes: 1_000,
    };

    let rows = [
        rate("64 clients, one command at a time", Plain),
        rate("64 clients, one command at a time, recorded", Recording),
    ];
    relay.case(&mut table, &rows, commands(PAIRS, 1)).await;

    let rows = [rate("64 clients, 16 commands in flight each", Plain)];
    relay.case(&mut table, &rows, commands(PAIRS, 16)).await;

    let rows = [
        BenchRow::new(
            "one client, from command to answer",
            "µs p50",
            Plain,
            Figure::P50,
        ),
        BenchRow::new("the same, recorded", "µs p50", Recording, Figure::P50),
    ];
    relay.case(&mut table, &rows, commands(1, 1)).await;

    let rows = [
        BenchRow::new("screenshot of 1 MB", "MB/s", Plain, Figure::Rate),
        BenchRow::new(
            "four screenshots of 1 MB, peak over idle",
            "MB",
            Plain,
            Figure::PeakOverIdle,
        ),
    ];
    relay.case(&mut table, &rows, SCREENSHOT).await;

    let rows = [
        BenchRow::new("idle memory", "MB", Plain, Figure::IdleMemory),
        BenchRow::new(
            "memory of a client and its extension",
            "KB",
            Plain,
            Figure::SessionMemory,
        ),
        BenchRow::new(
            "1,000 clients and extensions join",
            "ms",
            Plain,
            Figure::StartTime,
        ),
    ];
    let crowd = async |who| relay.measure_crowd(who).await;
    bench.case(&mut table, &rows, &[], crowd).await;
    Ok(table)
}

impl RelayBench<'_> {
    async fn case(&self, table: &mut BenchTable, rows: &[BenchRow], load: RelayLoad) {
        let measure = async |who| self.measure_load(who, load).await;
        self.bench.case(table, rows, &[], measure).await;
    }

    async fn measure_load(&self, who: Contender, load: RelayLoad) -> Result<Sample> {
        let relay = self.start(who)?;
        let idle_mb = machine::resident_mb(relay.process.id());
        let work = self.run(&relay, load);
        let outcome = tokio::time::timeout(START_WITHIN, work)
            .await
            .context("stuck")
            .flatten();
        let window =
            outcome.with_context(|| format!("measurement failed{}", relay.process.last_lines()))?;
        Ok(Sample {
            idle_mb,
            peak_mb: machine::peak_mb(relay.process.id()),
            ..window.sample()
        })
    }

    async fn run(&self, relay: &RunningRelay, load: RelayLoad) -> Result<Window> {
        let latencies = Rc::new(RefCell::new(Vec::new()));
        let is_counting = Rc::new(Cell::new(false));
        let mut tasks = JoinSet::new();
        for number in 0..load.pairs {
            let user = self.user(number)?;
            let mut extension = Peer::join_as_extension(relay.address, &user).await?;
            tasks.spawn_local(async move { extension.answer_commands(load.answer_bytes).await });
            let mut client = Peer::join_as_client(relay.address, &user).await?;
            client.open_tab().await?;
            let (latencies, is_counting) = (Rc::clone(&latencies), Rc::clone(&is_counting));
            let count = move |latency: Duration| {
                if is_counting.get() {
                    latencies.borrow_mut().push(latency);
                }
            };
            tasks.spawn_local(async move { client.send_commands(load.in_flight, count).await });
        }
        tokio::time::sleep(self.bench.time / 2).await;
        is_counting.set(true);
        let start = Instant::now();
        tokio::time::sleep(self.bench.time).await;
        let elapsed = start.elapsed();
        if let Some(ended) = tasks.try_join_next() {
            bail!("a peer has ended: {ended:?}");
        }
        let latencies = latencies.take();
        Ok(Window { latencies, elapsed })
    }

    async fn measure_crowd(&self, who: Contender) -> Result<Sample> {
        let relay = self.start(who)?;
        let resident = || machine::resident_mb(relay.process.id()).context("the relay has ended");
        let idle_mb = resident()?;
        let start = Instant::now();
        let mut open = Vec::new();
        let mut tasks = JoinSet::new();
        for number in 0..IDLE_PAIRS {
            let user = self.user(number)?;
            let mut extension = Peer::join_as_extension(relay.address, &user).await?;
            tasks.spawn_local(async move { extension.answer_commands(0).await });
            open.push(Peer::join_as_client(relay.address, &user).await?);
        }
        let start_ms = milliseconds_since(start);
        let grown_kb = (resident()? - idle_mb) * 1000.0;
        Ok(Sample {
            idle_mb: Some(idle_mb),
            session_kb: Some(grown_kb / IDLE_PAIRS as f64),
            start_ms: Some(start_ms),
            ..Sample::default()
        })
    }

    fn start(&self, who: Contender) -> Result<RunningRelay> {
        let files = TempDir::new_in(&self.bench.folder)?;
        let program = self
            .bench
            .program(who)
            .context("the program is not given")?;
        let shared = self.bench.folder.path();
        let mut command = Command::new(program);
        command
            .args(["relay", "--headless", "-q", "--listen-port", "0"])
            .args(["--threads", "1"])
            .args(["--user-rate", UNLIMITED, "--connection-rate", UNLIMITED])
            .arg("--jwt-secret-file")
            .arg(shared.join("secret"))
            .arg("--revoked-file")
            .arg(shared.join("revoked"))
            .env("XDG_RUNTIME_DIR", files.path());
        if who.variant() == Recording {
            let record = files.path().join("record.jsonl");
            command.arg("--session-file").arg(record);
        } else {
            command.args(["--no-record", "--no-control"]);
        }
        let process = BenchProcess::start_listener(command)?;
        let (address, _) = process.listening_on()?;
        Ok(RunningRelay {
            process,
            address,
            _files: files,
        })
    }

    fn user(&self, number: usize) -> Result<RelayUser> {
        let name = format!("u{number}");
        let request = TokenRequest {
            user: name.clone(),
            lifetime: Duration::from_secs(3600),
            connection_url: None,
        };
        let token = issue(&self.key, &request, SystemTime::now())?.token;
        Ok(RelayUser { token, name })
    }
}
