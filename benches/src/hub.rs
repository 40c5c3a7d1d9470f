//! `hub`: what `mcp-proxy serve` costs in front of ten servers with a hundred tools each.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::Bench;
use crate::canned::{self, BenchEra, Request, ResultSize};
use crate::load::{
    self, HttpSession, HttpTarget, Load, LoadTarget, Sample, Work, milliseconds_since,
};
use crate::machine;
use crate::process::{self, BenchProcess};
use crate::rounds::Contender::{self, Crate, Direct};
use crate::rounds::Figure;
use crate::rounds::Variant::{self, Dispatch, Plain, ProxyTool, Recording};
use crate::table::{BenchRow, BenchTable};

const SERVERS: usize = 10;
const TOOLS_EACH: usize = 100;
/// The tools that are called: with a small result, and with one of 10 MB.
const SMALL_TOOL: usize = 0;
const LARGE_TOOL: usize = 2;
/// Sessions of loads.
const SESSIONS: usize = 16;
/// Sessions that are weighed.
const IDLE_SESSIONS: usize = 500;
/// How long a hub may take until it lists all tools.
const START_WITHIN: Duration = Duration::from_secs(20);

/// A hub with all tools listed, or one server with as many; its files go when it goes.
struct RunningHub {
    // Dropped in this order: the process, then its folder.
    process: BenchProcess,
    target: LoadTarget,
    start_ms: f64,
    _files: TempDir,
}

struct HubBench<'a> {
    bench: &'a Bench,
}

pub async fn measure(bench: &Bench) -> Result<BenchTable> {
    let hub = HubBench { bench };
    let mut table = bench.table();
    hub.measure_calls(&mut table).await;
    hub.measure_tools(&mut table).await;
    hub.measure_kept_results(&mut table).await;

    let rows = [BenchRow::new(
        "whole list of 1,000 tools",
        "lists/s",
        Plain,
        Figure::Rate,
    )];
    let lists = async |who| hub.load(who, vec![Work::WholeList], SESSIONS).await;
    bench.case(&mut table, &rows, &[Direct, Crate], lists).await;

    let rows = [
        BenchRow::new("start to the whole list", "ms", Plain, Figure::StartTime),
        BenchRow::new("idle memory", "MB", Plain, Figure::IdleMemory),
        BenchRow::new("memory of a session", "KB", Plain, Figure::SessionMemory),
    ];
    let sessions = async |who| hub.measure_sessions(who).await;
    bench.case(&mut table, &rows, &[Crate], sessions).await;
    Ok(table)
}

impl HubBench<'_> {
    /// Calls of tools by their own names.
    async fn measure_calls(&self, table: &mut BenchTable) {
        let rate = |name, variant| BenchRow::new(name, "calls/s", variant, Figure::Rate);
        let rows = [
            rate("small call", Plain),
            rate("small call, recorded", Recording),
        ];
        let calls: Vec<Work> = (0..SERVERS).map(native_call).collect();
        let measure = async |who| self.load(who, calls.clone(), SESSIONS).await;
        self.bench
            .case(table, &rows, &[Direct, Crate], measure)
            .await;
    }

    /// One tool, by its name and through the tools that call others.
    async fn measure_tools(&self, table: &mut BenchTable) {
        let p50 = |name, variant| BenchRow::new(name, "µs p50", variant, Figure::P50);
        let rows = [
            p50("one session, small call", Plain),
            p50("one session, through `proxy`", ProxyTool),
            p50("one session, through `proxy-dispatch`", Dispatch),
        ];
        let measure = async |who: Contender| {
            let work = match who.variant() {
                ProxyTool => through_proxy_tool(),
                Dispatch => through_dispatcher(&public_name(0, SMALL_TOOL), ""),
                Plain | Recording => native_call(0),
            };
            self.load(who, vec![work], 1).await
        };
        self.bench
            .case(table, &rows, &[Direct, Crate], measure)
            .await;
    }

    /// A large result that is kept in a file, and what other sessions feel of it.
    async fn measure_kept_results(&self, table: &mut BenchTable) {
        let large_tool = public_name(0, LARGE_TOOL);
        let keep = through_dispatcher(&large_tool, r#","resultToFile":true"#);
        let rows = [
            BenchRow::new(
                "result of 10 MB to a file",
                "MB/s",
                Dispatch,
                Figure::MegabyteRate(10.0),
            ),
            BenchRow::new(
                "result of 10 MB to a file, peak over idle",
                "MB",
                Dispatch,
                Figure::PeakOverIdle,
            ),
        ];
        let measure = async |who| self.load(who, vec![keep.clone()], 1).await;
        self.bench.case(table, &rows, &[], measure).await;

        let rows = [BenchRow::new(
            "small call of others meanwhile, p99",
            "µs",
            Dispatch,
            Figure::P99,
        )];
        let measure = async |who| {
            let mut hub = self.start(who).await?;
            let large = self.load_of(vec![keep.clone()], 1);
            let small = self.load_of((1..SERVERS).map(native_call).collect(), 4);
            let (large, small) = tokio::join!(
                load::measure(&hub.target, None, &large),
                load::measure(&hub.target, Some(&mut hub.process), &small),
            );
            large?;
            small
        };
        self.bench.case(table, &rows, &[], measure).await;
    }

    async fn measure_sessions(&self, who: Contender) -> Result<Sample> {
        let hub = self.start(who).await?;
        let resident = || machine::resident_mb(hub.process.id()).context("the hub has ended");
        let idle_mb = resident()?;
        let LoadTarget::Http(target) = &hub.target else {
            anyhow::bail!("a hub listens on HTTP");
        };
        let mut sessions = Vec::new();
        for _ in 0..IDLE_SESSIONS {
            let mut session = HttpSession::open(target, BenchEra::Legacy).await?;
            session.count_tools().await?;
            sessions.push(session);
        }
        let grown_kb = (resident()? - idle_mb) * 1000.0;
        for session in sessions {
            session.close().await?;
        }
        Ok(Sample {
            start_ms: Some(hub.start_ms),
            idle_mb: Some(idle_mb),
            session_kb: Some(grown_kb / IDLE_SESSIONS as f64),
            ..Sample::default()
        })
    }

    async fn load(&self, who: Contender, work: Vec<Work>, sessions: usize) -> Result<Sample> {
        let mut hub = self.start(who).await?;
        let load = self.load_of(work, sessions);
        let outcome = load::measure(&hub.target, Some(&mut hub.process), &load).await;
        outcome.with_context(|| format!("measurement failed{}", hub.process.last_lines()))
    }

    fn load_of(&self, work: Vec<Work>, in_flight: usize) -> Load {
        Load {
            era: BenchEra::Legacy,
            work,
            in_flight,
            time: self.bench.time,
        }
    }

    /// Starts a contender and waits until a client has all its tools.
    async fn start(&self, who: Contender) -> Result<RunningHub> {
        let files = TempDir::new_in(&self.bench.folder)?;
        let port = process::free_port()?;
        let mut command = self.command(who, files.path(), port)?;
        // A state directory of its own: no list of an earlier run may help.
        command
            .env("XDG_STATE_HOME", files.path())
            .env("XDG_RUNTIME_DIR", files.path());
        let start = Instant::now();
        let mut process = BenchProcess::start_listener(command)?;
        let (address, path) = if who == Crate {
            (process.wait_for_port(port)?, "/".to_owned())
        } else {
            process.listening_on()?
        };
        let target = HttpTarget { address, path };
        let listed = async {
            let mut session = HttpSession::open(&target, BenchEra::Legacy).await?;
            while session.count_tools().await? < SERVERS * TOOLS_EACH {}
            session.close().await
        };
        tokio::time::timeout(START_WITHIN, listed)
            .await
            .context("it does not list all tools")
            .flatten()
            .with_context(|| format!("it does not start{}", process.last_lines()))?;
        Ok(RunningHub {
            process,
            target: LoadTarget::Http(target),
            start_ms: milliseconds_since(start),
            _files: files,
        })
    }

    fn command(&self, who: Contender, files: &Path, port: u16) -> Result<Command> {
        let program = self
            .bench
            .program(who)
            .context("the program is not given")?;
        let mut command = Command::new(program);
        match who {
            Contender::Ours(variant) | Contender::Before(variant) => {
                self.add_serve_flags(&mut command, variant, files)?;
            }
            Contender::Crate => {
                let config = files.join("proxy.toml");
                fs::write(&config, self.crate_config(port)?)?;
                command.arg("--config").arg(config).env("RUST_LOG", "error");
            }
            // One server with a list of the same length. It answers a call under any name.
            _ => {
                let count = (SERVERS * TOOLS_EACH).to_string();
                command.args(["canned-server", "http", "--tools", &count]);
            }
        }
        Ok(command)
    }

    fn add_serve_flags(&self, command: &mut Command, variant: Variant, files: &Path) -> Result<()> {
        let own = self.bench.own.to_str().context("our path is UTF-8")?;
        command.args(["serve", "-q", "--listen", "http", "--listen-port", "0"]);
        for index in 0..SERVERS {
            let words = server_words(index).join(" ");
            command.args(["--server", &format!("{}={own} {words}", server_name(index))]);
        }
        let expose = match variant {
            Plain | Recording => "all",
            ProxyTool => "all,proxy",
            Dispatch => "all,dispatch",
        };
        command.args(["--expose", expose, "--max-sessions", "1100"]);
        if variant == Recording {
            command
                .arg("--session-file")
                .arg(files.join("record.jsonl"));
        } else {
            command.args(["--no-record", "--no-control"]);
        }
        Ok(())
    }

    fn crate_config(&self, port: u16) -> Result<String> {
        let mut text = format!(
            "[proxy]\nname = \"bench\"\nseparator = \"_\"\n\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n"
        );
        for index in 0..SERVERS {
            write!(
                text,
                "\n[[backends]]\nname = \"{}\"\ntransport = \"stdio\"\ncommand = {:?}\nargs = {:?}\n",
                server_name(index),
                self.bench.own,
                server_words(index)
            )?;
        }
        Ok(text)
    }
}

fn server_name(index: usize) -> String {
    format!("s{index}")
}

/// Tools of different servers have different names.
fn tool_prefix(index: usize) -> String {
    format!("t{index}-")
}

fn server_words(index: usize) -> Vec<String> {
    let (tools, prefix) = (TOOLS_EACH.to_string(), tool_prefix(index));
    let words = [
        "canned-server",
        "stdio",
        "--tools",
        &tools,
        "--prefix",
        &prefix,
    ];
    words.map(str::to_owned).to_vec()
}

/// A tool of a server, as a hub names it.
fn public_name(server: usize, tool: usize) -> String {
    let tool = canned::tool_name(&tool_prefix(server), tool);
    format!("{}_{tool}", server_name(server))
}

fn native_call(server: usize) -> Work {
    let small = ResultSize::Small.bytes();
    Work::Call(Request::call(
        BenchEra::Legacy,
        &public_name(server, SMALL_TOOL),
        small,
    ))
}

fn through_proxy_tool() -> Work {
    let path = public_name(0, SMALL_TOOL);
    Work::Call(Request::through(
        "proxy",
        &format!(r#"{{"action":"call","type":"tool","path":"{path}","args":{{"text":"hello"}}}}"#),
    ))
}

/// `more` are members to add.
fn through_dispatcher(tool: &str, more: &str) -> Work {
    Work::Call(Request::through(
        "proxy-dispatch",
        &format!(r#"{{"action":"call","tool":"{tool}","arguments":{{"text":"hello"}}{more}}}"#),
    ))
}
