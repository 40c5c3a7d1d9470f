//! The cases: what is measured of whom. What it is held to is in `goals.rs`.

use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result};
use tokio::task::{JoinSet, spawn_blocking};

use super::RelayPlan;
use super::crowd::{Crowd, CrowdMember};
use super::load::{RelayLoad, on_one_thread};
use super::peers::{self, Dialogue};
use super::setup::{BenchTls, RelaySetup, RunningRelay};
use super::socket::PeerSocket;
use super::{frames, goals};
use crate::contender::ContenderKind;
use crate::load::Measurement;
use crate::report::{BenchReport, ContenderFigures};
use crate::rounds::{CaseResults, in_rounds};
use crate::usage;

/// Clients of a load, each a user with an extension of its own.
const CLIENTS: usize = 64;
/// Commands that a client of the pipelined load has in flight.
const PIPELINED: u64 = 16;
/// A large screenshot, and how Chromium cuts it.
const LARGE_BYTES: usize = 93_000_000;
const PIECE_BYTES: usize = 131_000;
/// Any free port.
const ANY: u16 = 0;

/// What a crowd cost.
#[derive(Default)]
pub struct CrowdResults {
    pub socket_kib: Option<f64>,
    /// Share of a core that an idle crowd takes, in percent.
    pub idle_percent: Option<f64>,
    /// Until the whole crowd was back after a restart.
    pub back_seconds: Option<f64>,
}

/// Measures a case and adds it to the report.
pub fn measure(case: &str, setup: &RelaySetup, plan: &RelayPlan, report: &mut BenchReport) {
    let crowd = |member, tls, report: &mut BenchReport| {
        let outcome = on_one_thread(measure_crowd(case, setup, plan, member, tls));
        let results = outcome.unwrap_or_else(|error| {
            report.figures.push(failed(case, &error));
            CrowdResults::default()
        });
        report.rows.extend(goals::of_crowd(case, &results));
    };
    let (results, rows) = match case {
        goals::ONE_BY_ONE => with_rows(case, measure_rate(case, setup, plan, 1), goals::of_rates),
        goals::PIPELINED => with_rows(
            case,
            measure_rate(case, setup, plan, PIPELINED),
            goals::of_rates,
        ),
        goals::HALF_LOAD => with_rows(case, measure_half_load(setup, plan), goals::of_latencies),
        goals::LARGE => with_rows(case, measure_large(setup, plan), goals::of_large),
        goals::PAIRS => return crowd(CrowdMember::Pair, BenchTls::Off, report),
        goals::TLS => return crowd(CrowdMember::Extension, BenchTls::On, report),
        _ => return crowd(CrowdMember::Extension, BenchTls::Off, report),
    };
    report.rows.extend(rows);
    report.figures.extend(results.figures(case));
}

fn with_rows<T>(
    case: &str,
    results: CaseResults,
    rows: impl FnOnce(&str, &CaseResults) -> T,
) -> (CaseResults, T) {
    let rows = rows(case, &results);
    (results, rows)
}

fn failed(case: &str, error: &anyhow::Error) -> ContenderFigures {
    ContenderFigures {
        case: case.to_owned(),
        who: ContenderKind::Proxy.name(),
        failure: Some(format!("{error:#}")),
        ..ContenderFigures::default()
    }
}

fn measure_rate(case: &str, setup: &RelaySetup, plan: &RelayPlan, in_flight: u64) -> CaseResults {
    let who = [
        ContenderKind::Floor,
        ContenderKind::Proxy,
        ContenderKind::Recording,
        ContenderKind::TwoThreads,
    ];
    in_rounds(case, plan.rounds, who.into_iter(), |who| {
        closed_load(setup, plan, who, in_flight)
    })
}

fn closed_load(
    setup: &RelaySetup,
    plan: &RelayPlan,
    who: ContenderKind,
    in_flight: u64,
) -> Result<Measurement> {
    let running = setup.start(who, BenchTls::Off, ANY)?;
    let load = load(setup, plan, &running, who)?;
    on_one_thread(load.measure_closed(in_flight)).with_context(|| running.process.last_words())
}

/// Both contenders get as many requests a second: half of what the relay can do with one in flight for each client.
fn measure_half_load(setup: &RelaySetup, plan: &RelayPlan) -> CaseResults {
    let full = closed_load(setup, plan, ContenderKind::Proxy, 1).map(|sample| sample.per_second);
    let who = [ContenderKind::Floor, ContenderKind::Proxy];
    in_rounds(goals::HALF_LOAD, plan.rounds, who.into_iter(), |who| {
        let full = full
            .as_ref()
            .map_err(|error| anyhow::anyhow!("{error:#}"))?;
        let commands = full.context("no rate")? / 2.0 / 2.0;
        let running = setup.start(who, BenchTls::Off, ANY)?;
        let load = load(setup, plan, &running, who)?;
        on_one_thread(load.measure_paced(commands)).with_context(|| running.process.last_words())
    })
}

fn load(
    setup: &RelaySetup,
    plan: &RelayPlan,
    running: &RunningRelay,
    who: ContenderKind,
) -> Result<RelayLoad> {
    let dialogue = match who {
        ContenderKind::Floor => Dialogue::with_echo(),
        _ => Dialogue::with_relay(),
    };
    Ok(RelayLoad {
        target: running.target.clone(),
        dialogue: Rc::new(dialogue),
        users: setup.users(CLIENTS)?,
        process: running.process.child.id(),
        warm_up: plan.warm_up,
        time: plan.time,
    })
}

async fn measure_crowd(
    case: &str,
    setup: &RelaySetup,
    plan: &RelayPlan,
    member: CrowdMember,
    tls: BenchTls,
) -> Result<CrowdResults> {
    let who = ContenderKind::Proxy;
    let running = setup.start(who, tls, ANY)?;
    let process = running.process.child.id();
    let users = match member {
        CrowdMember::Extension => plan.crowd,
        CrowdMember::Pair => plan.crowd / 2,
    };
    let empty = usage::of_process(process);
    let started = Instant::now();
    let crowd = Crowd::gather(&running.target, setup.users(users)?, member);
    crowd.until(plan.crowd).await?;
    eprintln!("{case}: all are in after {:.1?}", started.elapsed());
    let full = usage::of_process(process);
    let grown = full.resident_megabytes - empty.resident_megabytes;
    let mut results = CrowdResults {
        socket_kib: Some(grown * 1e6 / 1024.0 / plan.crowd as f64),
        ..CrowdResults::default()
    };
    match case {
        goals::PAIRS => return Ok(results),
        goals::IDLE => {
            tokio::time::sleep(plan.idle).await;
            let idle = usage::of_process(process).cpu_seconds - full.cpu_seconds;
            results.idle_percent = Some(idle * 100.0 / plan.idle.as_secs_f64());
        }
        _ => {}
    }
    let port = running.target.address.port();
    // While this thread waits, the crowd could not take its leave.
    spawn_blocking(move || drop(running)).await?;
    crowd.until(0).await?;
    crowd.stop_queueing();
    let _running = setup.start(who, tls, port)?;
    let restarted = Instant::now();
    crowd.until(plan.crowd).await?;
    results.back_seconds = Some(restarted.elapsed().as_secs_f64());
    Ok(results)
}

/// One answer as long as a large screenshot.
fn measure_large(setup: &RelaySetup, plan: &RelayPlan) -> CaseResults {
    let who = [ContenderKind::Proxy];
    in_rounds(goals::LARGE, plan.large_rounds, who.into_iter(), |who| {
        let running = setup.start(who, BenchTls::Off, ANY)?;
        on_one_thread(large_answer(setup, &running)).with_context(|| running.process.last_words())
    })
}

async fn large_answer(setup: &RelaySetup, running: &RunningRelay) -> Result<Measurement> {
    let user = setup.users(1)?.swap_remove(0);
    let process = running.process.child.id();
    let picture = "x".repeat(LARGE_BYTES);
    let socket = PeerSocket::open(&running.target, "/extension").await?;
    let mut extension = peers::join_extension(socket, &user).await?;
    let mut tasks = JoinSet::new();
    tasks.spawn_local(async move {
        extension
            .serve(|command, out| {
                let Some(id) = peers::command_id(command) else {
                    return;
                };
                let id = String::from_utf8_lossy(id);
                let text = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tab":{{"id":1}},"data":"{picture}"}}}}"#
                );
                frames::push_in_pieces(out, text.as_bytes(), PIECE_BYTES);
            })
            .await
    });
    let mut client = peers::join_client(&running.target, &user).await?;
    let idle = usage::of_process(process);
    let start = Instant::now();
    client
        .say(r#"{"jsonrpc":"2.0","id":1,"method":"listExtensions","params":{}}"#)
        .await?;
    while client.reader.length().await? < LARGE_BYTES {}
    let seconds = start.elapsed().as_secs_f64();
    let after = usage::of_process(process);
    Ok(Measurement {
        per_second: Some(1.0 / seconds),
        megabytes_per_second: Some(LARGE_BYTES as f64 / 1e6 / seconds),
        idle_mb: Some(idle.resident_megabytes),
        peak_mb: Some(after.peak_megabytes),
        ..Measurement::default()
    })
}
