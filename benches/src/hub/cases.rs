//! The cases: what is measured of whom. What it is held to is in `goals.rs`.

mod dispatcher;

use anyhow::{Context, Result};

use super::HubPlan;
use super::setup::{self, HubSetup, RunningHub, ServerTools};
use super::{calls, goals};
use crate::canned::{AnswerSize, BenchEra};
use crate::contender::ContenderKind;
use crate::load::{self, ListPlan, LoadCall, LoadPlan, Measurement};
use crate::machine;
use crate::report::{BenchReport, GoalRow};
use crate::rounds::{CaseResults, in_rounds, in_shared_rounds};
use crate::usage;

/// Tools of each server, in most cases and in the largest.
const TOOLS: ServerTools = ServerTools::Long(100);
const MANY_TOOLS: usize = 1_000;
/// Sessions of calls and lists.
const SESSIONS: usize = 16;
/// Sessions that are weighed.
const IDLE_SESSIONS: usize = 1_000;
/// The record's lines of a call, generously: a call is in it twice.
const RECORDED_BYTES: u64 = 8192;

/// Measures the cases that are `wanted`.
pub fn measure_all(
    setup: &HubSetup,
    plan: &HubPlan,
    wanted: impl Fn(&str) -> bool,
    report: &mut BenchReport,
) {
    for case in goals::ALL.into_iter().filter(|case| wanted(case)) {
        let (results, rows) = match case {
            goals::CALLS => with_rows(measure_calls(setup, plan), goals::of_calls),
            goals::PROXY_TOOL => with_rows(measure_proxy_tool(setup, plan), goals::of_proxy_tool),
            goals::DISPATCHER => with_rows(
                dispatcher::measure_calls(setup, plan),
                goals::of_dispatched_calls,
            ),
            goals::SPILL => with_rows(dispatcher::measure_spills(setup, plan), goals::of_spills),
            goals::READ_RESULT => with_rows(
                dispatcher::measure_readings(setup, plan),
                goals::of_readings,
            ),
            goals::LISTS => with_rows(measure_lists(setup, plan), goals::of_lists),
            goals::START => with_rows(measure_starts(setup, plan, TOOLS), goals::of_starts),
            goals::SESSIONS => with_rows(measure_sessions(setup, plan), goals::of_sessions),
            _ => {
                let few = measure_starts(setup, plan, ServerTools::Long(1));
                let definitions = setup::definition_megabytes(MANY_TOOLS);
                with_rows(measure_many_tools(setup, plan), |results| {
                    goals::of_many_tools(results, &few, definitions)
                })
            }
        };
        report.rows.extend(rows);
        report.figures.extend(results.figures(case));
    }
}

fn with_rows(
    results: CaseResults,
    rows: impl FnOnce(&CaseResults) -> Vec<GoalRow>,
) -> (CaseResults, Vec<GoalRow>) {
    let rows = rows(&results);
    (results, rows)
}

fn installed(
    setup: &HubSetup,
    all: &'static [ContenderKind],
) -> impl Iterator<Item = ContenderKind> {
    all.iter().copied().filter(|who| setup.has(*who))
}

fn measure_calls(setup: &HubSetup, plan: &HubPlan) -> CaseResults {
    let who = installed(
        setup,
        &[
            ContenderKind::Direct,
            ContenderKind::Floor,
            ContenderKind::Proxy,
            ContenderKind::Recording,
            ContenderKind::Audited,
            ContenderKind::Crate,
        ],
    );
    let calls = calls::of_all_servers();
    in_rounds(goals::CALLS, plan.rounds, who, |who| {
        let hub = setup.start(who, TOOLS)?;
        let mut load = load_plan(plan, SESSIONS);
        if who.records() {
            // A third of the room there is, for each of the two phases.
            load.most_requests = machine::free_bytes(setup.folder())? / 6 / RECORDED_BYTES;
        }
        run_calls(&hub, &load, &calls)
    })
}

fn measure_proxy_tool(setup: &HubSetup, plan: &HubPlan) -> CaseResults {
    let call = calls::through_proxy_tool();
    measure_call_through(
        goals::PROXY_TOOL,
        setup,
        plan,
        ContenderKind::ProxyTool,
        &call,
    )
}

/// The first call through one tool, and by its own name, in turn. One hub for all rounds: what is compared is two calls, not
/// two starts.
fn measure_call_through(
    case: &str,
    setup: &HubSetup,
    plan: &HubPlan,
    through: ContenderKind,
    call: &LoadCall,
) -> CaseResults {
    let hub = setup.start(through, TOOLS);
    let load = load_plan(plan, 1);
    let plain = calls::of_all_servers().swap_remove(0);
    in_shared_rounds(case, plan.rounds, [ContenderKind::Proxy, through], || {
        let hub = hub.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"))?;
        load::measure_in_turn(&hub.target, &load, [&plain, call])
            .with_context(|| format!("measurement failed{}", hub.last_words()))
    })
}

fn measure_lists(setup: &HubSetup, plan: &HubPlan) -> CaseResults {
    let who = installed(
        setup,
        &[
            ContenderKind::Direct,
            ContenderKind::Floor,
            ContenderKind::Proxy,
            ContenderKind::Crate,
        ],
    );
    in_rounds(goals::LISTS, plan.rounds, who, |who| {
        run_lists(setup, plan, who, TOOLS, SESSIONS)
    })
}

/// Start and memory. `Direct` is the slowest server by itself.
fn measure_starts(setup: &HubSetup, plan: &HubPlan, tools: ServerTools) -> CaseResults {
    let who = installed(
        setup,
        &[
            ContenderKind::Direct,
            ContenderKind::Floor,
            ContenderKind::Proxy,
            ContenderKind::Crate,
        ],
    );
    in_rounds(goals::START, plan.starts, who, |who| {
        if who == ContenderKind::Direct {
            return Ok(Measurement {
                start_ms: Some(setup.start_servers_alone(tools)?),
                ..Measurement::default()
            });
        }
        Ok(weighed(&setup.start(who, tools)?))
    })
}

fn measure_sessions(setup: &HubSetup, plan: &HubPlan) -> CaseResults {
    let who = installed(
        setup,
        &[
            ContenderKind::Floor,
            ContenderKind::Proxy,
            ContenderKind::Crate,
        ],
    );
    in_rounds(goals::SESSIONS, plan.starts, who, |who| {
        let hub = setup.start(who, TOOLS)?;
        let before = weighed(&hub);
        let after = load::open_and_list(&hub.target, IDLE_SESSIONS, || weighed(&hub))
            .with_context(|| format!("measurement failed{}", hub.last_words()))?;
        let grown = after.idle_mb.unwrap_or(0.0) - before.idle_mb.unwrap_or(0.0);
        Ok(Measurement {
            session_kb: Some(grown * 1000.0 / IDLE_SESSIONS as f64),
            peak_mb: after.peak_mb,
            ..before
        })
    })
}

/// `Direct` is one server with a list of one page, as long as a page of the hub.
fn measure_many_tools(setup: &HubSetup, plan: &HubPlan) -> CaseResults {
    let who = installed(
        setup,
        &[
            ContenderKind::Direct,
            ContenderKind::Proxy,
            ContenderKind::Crate,
        ],
    );
    in_rounds(goals::MANY_TOOLS, plan.starts, who, |who| {
        run_lists(setup, plan, who, ServerTools::Long(MANY_TOOLS), 1)
    })
}

fn run_calls(hub: &RunningHub, load: &LoadPlan, calls: &[LoadCall]) -> Result<Measurement> {
    load::measure_calls(&hub.target, load, calls)
        .with_context(|| format!("measurement failed{}", hub.last_words()))
}

fn run_lists(
    setup: &HubSetup,
    plan: &HubPlan,
    who: ContenderKind,
    tools: ServerTools,
    sessions: usize,
) -> Result<Measurement> {
    // Without a hub one server has the whole page: the same bytes for the client.
    let of_each = match who {
        ContenderKind::Direct => ServerTools::Long(MANY_TOOLS),
        _ => tools,
    };
    let hub = setup.start(who, of_each)?;
    let idle = weighed(&hub);
    let plan = ListPlan {
        sessions,
        warm_up: plan.warm_up,
        time: plan.time,
    };
    let sample = load::measure_lists(&hub.target, &plan)
        .with_context(|| format!("measurement failed{}", hub.last_words()))?;
    Ok(Measurement {
        idle_mb: idle.idle_mb,
        guard_private_mb: idle.guard_private_mb,
        start_ms: idle.start_ms,
        ..sample
    })
}

/// What it took to start, and what it weighs now.
fn weighed(hub: &RunningHub) -> Measurement {
    let usage = hub.target.process.map(usage::of_tree);
    let guard = usage.and_then(|usage| usage.guard);
    Measurement {
        start_ms: Some(hub.start_ms),
        idle_mb: usage.map(|usage| usage.proxy.resident_megabytes),
        peak_mb: usage.map(|usage| usage.proxy.peak_megabytes),
        guard_private_mb: guard.map(|guard| guard.private_megabytes),
        ..Measurement::default()
    }
}

fn load_plan(plan: &HubPlan, in_flight: usize) -> LoadPlan {
    LoadPlan {
        era: BenchEra::Legacy,
        size: AnswerSize::Small,
        in_flight,
        warm_up: plan.warm_up,
        time: plan.time,
        most_requests: u64::MAX,
    }
}
