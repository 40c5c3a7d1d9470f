//! What a hub is held to: each figure becomes one row of the table.

mod dispatcher;

use crate::contender::ContenderKind;
use crate::load::Measurement;
use crate::report::{GoalRow, GoalVerdict};
use crate::rounds::{CaseResults, FigureReader};

pub use dispatcher::{of_readings, of_spills};

pub const CALLS: &str = "hub-small-c16";
pub const PROXY_TOOL: &str = "hub-proxy-tool";
pub const DISPATCHER: &str = "hub-dispatch-call";
pub const SPILL: &str = "hub-spill-10mb";
pub const READ_RESULT: &str = "hub-readresult-100mb";
pub const LISTS: &str = "hub-list-1000";
pub const START: &str = "hub-start";
pub const SESSIONS: &str = "hub-sessions-1000";
pub const MANY_TOOLS: &str = "hub-10000-tools";
/// All cases, in the order in which they are measured.
pub const ALL: [&str; 9] = [
    CALLS,
    PROXY_TOOL,
    DISPATCHER,
    SPILL,
    READ_RESULT,
    LISTS,
    START,
    SESSIONS,
    MANY_TOOLS,
];

const RATE_OF_DIRECT: f64 = 0.32;
const LISTS_OF_PEER: f64 = 30.0;
const START_OVER_SERVER_MS: f64 = 40.0;
const IDLE_MB: f64 = 20.0;
const GUARD_MB: f64 = 1.0;
const ONE_TOOL_ADDS_US: f64 = 15.0;
const SESSION_KB: f64 = 40.0;
const PAGE_P99_MS: f64 = 5.0;
const OF_DEFINITIONS: f64 = 3.0;

/// A figure with its name and unit.
#[derive(Clone, Copy)]
struct HubFigure {
    what: &'static str,
    unit: &'static str,
    reading: FigureReader,
}

const RATE: HubFigure = HubFigure {
    what: "throughput",
    unit: "req/s",
    reading: |sample| sample.per_second,
};
const P50: HubFigure = HubFigure {
    what: "p50",
    unit: "µs",
    reading: |sample| sample.p50_us,
};
const LIST_RATE: HubFigure = HubFigure {
    what: "whole lists",
    unit: "lists/s",
    reading: |sample| sample.per_second,
};
const START_TIME: HubFigure = HubFigure {
    what: "start to full list",
    unit: "ms",
    reading: |sample| sample.start_ms,
};
const IDLE: HubFigure = HubFigure {
    what: "idle memory",
    unit: "MB",
    reading: |sample| sample.idle_mb,
};
const GUARD: HubFigure = HubFigure {
    what: "guard's private memory",
    unit: "MB",
    reading: |sample| sample.guard_private_mb,
};
const SESSION: HubFigure = HubFigure {
    what: "memory of a session",
    unit: "KB",
    reading: |sample| sample.session_kb,
};
const PAGE_P99: HubFigure = HubFigure {
    what: "p99 of a page",
    unit: "ms",
    reading: |sample: &Measurement| sample.p99_us.map(|page| page / 1000.0),
};

pub fn of_calls(results: &CaseResults) -> Vec<GoalRow> {
    let ratio = |who| results.paired(who, ContenderKind::Direct, RATE.reading, divide);
    let own = ratio(ContenderKind::Proxy);
    let throughput = GoalRow {
        ratio: own,
        goal: format!("≥ {RATE_OF_DIRECT:.2} of direct"),
        floor: ratio(ContenderKind::Floor).map(|floor| format!("{floor:.2}")),
        verdict: verdict(own, |own| own >= RATE_OF_DIRECT),
        ..compared(CALLS, results, RATE, ContenderKind::Direct)
    };
    let with = |who, what| GoalRow {
        what,
        value: results.median(who, RATE.reading),
        reference: "own without".to_owned(),
        reference_value: results.median(ContenderKind::Proxy, RATE.reading),
        ratio: results.paired(who, ContenderKind::Proxy, RATE.reading, divide),
        ..stated(CALLS, results, RATE)
    };
    let mut rows = vec![throughput];
    rows.extend(noted(CALLS, results, RATE, ContenderKind::Crate));
    rows.extend(noted(CALLS, results, P50, ContenderKind::Direct));
    rows.extend(noted(CALLS, results, P50, ContenderKind::Crate));
    rows.push(with(ContenderKind::Recording, "record on".to_owned()));
    rows.push(with(ContenderKind::Audited, "audit lines on".to_owned()));
    rows
}

pub fn of_proxy_tool(results: &CaseResults) -> Vec<GoalRow> {
    vec![added_by(PROXY_TOOL, results, ContenderKind::ProxyTool)]
}

pub fn of_dispatched_calls(results: &CaseResults) -> Vec<GoalRow> {
    vec![added_by(DISPATCHER, results, ContenderKind::Dispatcher)]
}

/// What it adds to a call that it is made `through` one tool for all.
fn added_by(case: &str, results: &CaseResults, through: ContenderKind) -> GoalRow {
    let plain = ContenderKind::Proxy;
    let added = results.paired(through, plain, P50.reading, |own, other| own - other);
    GoalRow {
        case: case.to_owned(),
        what: "added p50".to_owned(),
        unit: P50.unit,
        value: added,
        reference: "p50 of the tool itself".to_owned(),
        reference_value: results.median(plain, P50.reading),
        goal: format!("≤ {ONE_TOOL_ADDS_US:.0} µs"),
        verdict: verdict(added, |added| added <= ONE_TOOL_ADDS_US),
        note: results.failure(through).map(str::to_owned),
        ..GoalRow::default()
    }
}

pub fn of_lists(results: &CaseResults) -> Vec<GoalRow> {
    let own = results.paired(
        ContenderKind::Proxy,
        ContenderKind::Crate,
        LIST_RATE.reading,
        divide,
    );
    let reached = match own {
        Some(own) => GoalVerdict::from(own >= LISTS_OF_PEER),
        // Without the crate there is nothing to hold it to.
        None => GoalVerdict::NoGoal,
    };
    let against_peer = GoalRow {
        ratio: own,
        goal: format!("≥ {LISTS_OF_PEER:.0} × the crate's"),
        verdict: reached,
        ..compared(LISTS, results, LIST_RATE, ContenderKind::Crate)
    };
    let mut rows = vec![against_peer];
    rows.extend(noted(LISTS, results, LIST_RATE, ContenderKind::Direct));
    rows.extend(noted(LISTS, results, LIST_RATE, ContenderKind::Floor));
    rows
}

pub fn of_starts(results: &CaseResults) -> Vec<GoalRow> {
    let over = |who| {
        let server = ContenderKind::Direct;
        results.paired(who, server, START_TIME.reading, |own, server| own - server)
    };
    let start = GoalRow {
        what: "start to full list, over one server's".to_owned(),
        value: over(ContenderKind::Proxy),
        goal: format!("≤ {START_OVER_SERVER_MS:.0} ms"),
        floor: over(ContenderKind::Floor).map(|floor| format!("{floor:.1} ms")),
        verdict: verdict(over(ContenderKind::Proxy), |own| {
            own <= START_OVER_SERVER_MS
        }),
        ..compared(START, results, START_TIME, ContenderKind::Direct)
    };
    let mut rows = vec![start];
    rows.extend(noted(START, results, START_TIME, ContenderKind::Crate));
    rows.push(at_most(START, results, IDLE, IDLE_MB));
    if results
        .median(ContenderKind::Proxy, GUARD.reading)
        .is_some()
    {
        rows.push(at_most(START, results, GUARD, GUARD_MB));
    }
    rows
}

pub fn of_sessions(results: &CaseResults) -> Vec<GoalRow> {
    vec![at_most(SESSIONS, results, SESSION, SESSION_KB)]
}

/// `few` is the hub with one tool of each server.
pub fn of_many_tools(
    results: &CaseResults,
    few: &CaseResults,
    definition_megabytes: f64,
) -> Vec<GoalRow> {
    let idle = |results: &CaseResults| results.median(ContenderKind::Proxy, IDLE.reading);
    let idle_with_few = idle(few);
    let over_idle = idle(results).zip(idle_with_few).map(|(all, few)| all - few);
    let ratio = over_idle.map(|over| over / definition_megabytes);
    let page = at_most(MANY_TOOLS, results, PAGE_P99, PAGE_P99_MS);
    let direct = results.median(ContenderKind::Direct, PAGE_P99.reading);
    vec![
        GoalRow {
            reference: "direct".to_owned(),
            reference_value: direct,
            ..page
        },
        GoalRow {
            what: "memory over that with 10 tools".to_owned(),
            value: over_idle,
            reference: "definitions".to_owned(),
            reference_value: Some(definition_megabytes),
            ratio,
            goal: format!("≤ {OF_DEFINITIONS:.0} × the definitions"),
            verdict: verdict(ratio, |ratio| ratio <= OF_DEFINITIONS),
            ..stated(MANY_TOOLS, results, IDLE)
        },
        GoalRow {
            reference: "with 10 tools".to_owned(),
            reference_value: idle_with_few,
            ..stated(MANY_TOOLS, results, IDLE)
        },
    ]
}

/// Our figure, with the crate's and the bare copy's next to it, and a bound.
fn at_most(case: &str, results: &CaseResults, figure: HubFigure, most: f64) -> GoalRow {
    let floor = results.median(ContenderKind::Floor, figure.reading);
    let row = compared(case, results, figure, ContenderKind::Crate);
    GoalRow {
        goal: format!("≤ {most:.0} {}", figure.unit),
        floor: floor.map(|floor| format!("{floor:.1} {}", figure.unit)),
        verdict: verdict(row.value, |value| value <= most),
        ..row
    }
}

/// A comparison without a goal; none with a contender that is not installed.
fn noted(
    case: &str,
    results: &CaseResults,
    figure: HubFigure,
    other: ContenderKind,
) -> Option<GoalRow> {
    let ratio = results.paired(ContenderKind::Proxy, other, figure.reading, divide)?;
    Some(GoalRow {
        ratio: Some(ratio),
        ..compared(case, results, figure, other)
    })
}

fn compared(case: &str, results: &CaseResults, figure: HubFigure, other: ContenderKind) -> GoalRow {
    let value = results.median(other, figure.reading);
    GoalRow {
        reference: value.map_or_else(String::new, |_| other.name().to_owned()),
        reference_value: value,
        ..stated(case, results, figure)
    }
}

fn stated(case: &str, results: &CaseResults, figure: HubFigure) -> GoalRow {
    stated_of(ContenderKind::Proxy, case, results, figure)
}

fn stated_of(who: ContenderKind, case: &str, results: &CaseResults, figure: HubFigure) -> GoalRow {
    GoalRow {
        case: case.to_owned(),
        what: figure.what.to_owned(),
        unit: figure.unit,
        value: results.median(who, figure.reading),
        verdict: GoalVerdict::NoGoal,
        note: results.failure(who).map(str::to_owned),
        ..GoalRow::default()
    }
}

/// A figure that nobody could measure is missed.
fn verdict(value: Option<f64>, holds: impl FnOnce(f64) -> bool) -> GoalVerdict {
    GoalVerdict::from(value.is_some_and(holds))
}

fn divide(own: f64, other: f64) -> f64 {
    own / other
}
