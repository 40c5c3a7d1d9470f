//! What a relay is held to: each figure becomes one row of the table. All goals are for a relay without a record.

use super::cases::CrowdResults;
use crate::contender::ContenderKind;
use crate::load::Measurement;
use crate::report::{GoalRow, GoalVerdict};
use crate::rounds::{CaseResults, FigureReader};

pub const ONE_BY_ONE: &str = "relay-c64";
pub const PIPELINED: &str = "relay-c64-pipelined";
pub const HALF_LOAD: &str = "relay-half-load";
pub const IDLE: &str = "relay-10000-extensions";
pub const PAIRS: &str = "relay-5000-pairs";
pub const TLS: &str = "relay-10000-tls";
pub const LARGE: &str = "relay-93mb";
/// All cases, in the order in which they are measured.
pub const ALL: [&str; 7] = [ONE_BY_ONE, PIPELINED, HALF_LOAD, IDLE, PAIRS, TLS, LARGE];

const RATE_OF_ECHO: f64 = 0.5;
const PER_CORE: f64 = 100_000.0;
const ADDED_P50_US: f64 = 60.0;
const ADDED_P99_US: f64 = 500.0;
const SOCKET_KIB: f64 = 12.0;
const TLS_SOCKET_KIB: f64 = 40.0;
const IDLE_PERCENT: f64 = 1.0;
const BACK_SECONDS: f64 = 10.0;
const LARGE_EXTRA_MIB: f64 = 1.0;

const RATE: FigureReader = |sample| sample.per_second;
/// Messages for each second that the process computed.
const CORE_RATE: FigureReader = |sample| sample.cpu_us.map(|spent| 1e6 / spent);
const CORES: FigureReader = |sample| cores(sample.cpu_us, sample);
const DRIVER_CORES: FigureReader = |sample| cores(sample.driver_cpu_us, sample);
const EXTRA_MIB: FigureReader = |sample| {
    let (peak, idle) = sample.peak_mb.zip(sample.idle_mb)?;
    Some((peak - idle) * 1e6 / f64::from(1 << 20))
};

fn cores(spent_us: Option<f64>, sample: &Measurement) -> Option<f64> {
    Some(spent_us? * sample.per_second? / 1e6)
}

pub fn of_rates(case: &str, results: &CaseResults) -> Vec<GoalRow> {
    let echo = ContenderKind::Floor;
    let against = |reading| GoalRow {
        reference: "bare echo".to_owned(),
        reference_value: results.median(echo, reading),
        ratio: results.paired(ContenderKind::Proxy, echo, reading, |own, other| {
            own / other
        }),
        ..GoalRow::default()
    };
    let rate = against(RATE);
    let core_rate = against(CORE_RATE);
    let own = results.median(ContenderKind::Proxy, CORE_RATE);
    let mut rows = vec![
        GoalRow {
            goal: format!("≥ {RATE_OF_ECHO:.2} of the echo"),
            verdict: verdict(rate.ratio, |ratio| ratio >= RATE_OF_ECHO),
            ..named(
                case,
                "relayed messages",
                "/s",
                results,
                ContenderKind::Proxy,
                RATE,
                rate,
            )
        },
        GoalRow {
            goal: "≥ 100,000".to_owned(),
            verdict: verdict(own, |own| own >= PER_CORE),
            ..named(
                case,
                "messages for a second of CPU",
                "",
                results,
                ContenderKind::Proxy,
                CORE_RATE,
                core_rate,
            )
        },
    ];
    let others = [
        (ContenderKind::Recording, "with a record"),
        (ContenderKind::TwoThreads, "with two threads"),
    ];
    for (who, what) in others {
        let own = GoalRow {
            reference: "one thread, no record".to_owned(),
            reference_value: results.median(ContenderKind::Proxy, RATE),
            ratio: results.paired(who, ContenderKind::Proxy, RATE, |with, own| with / own),
            ..GoalRow::default()
        };
        let what = format!("relayed messages {what}");
        rows.push(named(case, &what, "/s", results, who, RATE, own));
    }
    let users = [
        (ContenderKind::Floor, "the echo"),
        (ContenderKind::Proxy, "the relay"),
        (ContenderKind::TwoThreads, "the relay with two threads"),
    ];
    for (who, name) in users {
        let load = GoalRow {
            reference: "load generator".to_owned(),
            reference_value: results.median(who, DRIVER_CORES),
            ..GoalRow::default()
        };
        let what = format!("cores used by {name}");
        rows.push(named(case, &what, "", results, who, CORES, load));
    }
    rows
}

pub fn of_latencies(case: &str, results: &CaseResults) -> Vec<GoalRow> {
    let (own, echo) = (ContenderKind::Proxy, ContenderKind::Floor);
    let figures: [(&str, FigureReader, f64); 2] = [
        ("p50", |sample| sample.p50_us, ADDED_P50_US),
        ("p99", |sample| sample.p99_us, ADDED_P99_US),
    ];
    let rows = figures.into_iter().map(|(name, reading, most)| {
        let added = results.paired(own, echo, reading, |own, other| own - other);
        let compared = GoalRow {
            reference: format!("{name} of the bare echo"),
            reference_value: results.median(echo, reading),
            ..GoalRow::default()
        };
        GoalRow {
            value: added,
            goal: format!("≤ {most:.0} µs"),
            verdict: verdict(added, |added| added <= most),
            ..named(
                case,
                &format!("added {name}"),
                "µs",
                results,
                own,
                reading,
                compared,
            )
        }
    });
    let mut rows: Vec<GoalRow> = rows.collect();
    let rate = GoalRow::default();
    rows.push(named(case, "commands", "/s", results, own, RATE, rate));
    rows
}

pub fn of_crowd(case: &str, results: &CrowdResults) -> Vec<GoalRow> {
    let most = match case {
        TLS => TLS_SOCKET_KIB,
        _ => SOCKET_KIB,
    };
    let row = |what: &str, unit, value, most: f64| GoalRow {
        case: case.to_owned(),
        what: what.to_owned(),
        unit,
        value,
        goal: format!("≤ {most:.0} {unit}"),
        verdict: verdict(value, |value| value <= most),
        ..GoalRow::default()
    };
    let mut rows = vec![row(
        "memory of an idle socket",
        "KiB",
        results.socket_kib,
        most,
    )];
    if case == IDLE {
        rows.push(row(
            "keep-alives, share of a core",
            "%",
            results.idle_percent,
            IDLE_PERCENT,
        ));
    }
    let back = row(
        "all back after a restart",
        "s",
        results.back_seconds,
        BACK_SECONDS,
    );
    match case {
        IDLE => rows.push(back),
        // The handshakes of both sides are on one machine here.
        TLS => rows.push(GoalRow {
            goal: String::new(),
            verdict: GoalVerdict::NoGoal,
            ..back
        }),
        _ => {}
    }
    rows
}

pub fn of_large(case: &str, results: &CaseResults) -> Vec<GoalRow> {
    let own = ContenderKind::Proxy;
    let extra = results.median(own, EXTRA_MIB);
    let plain = GoalRow::default;
    vec![
        GoalRow {
            goal: format!("≤ {LARGE_EXTRA_MIB:.0} MiB"),
            verdict: verdict(extra, |extra| extra <= LARGE_EXTRA_MIB),
            ..named(
                case,
                "peak memory over idle",
                "MiB",
                results,
                own,
                EXTRA_MIB,
                plain(),
            )
        },
        named(
            case,
            "from command to answer",
            "MB/s",
            results,
            own,
            |sample| sample.megabytes_per_second,
            plain(),
        ),
    ]
}

/// A figure without a goal, next to what `compared` says about others.
fn named(
    case: &str,
    what: &str,
    unit: &'static str,
    results: &CaseResults,
    who: ContenderKind,
    reading: FigureReader,
    compared: GoalRow,
) -> GoalRow {
    GoalRow {
        case: case.to_owned(),
        what: what.to_owned(),
        unit,
        value: results.median(who, reading),
        verdict: GoalVerdict::NoGoal,
        note: results.failure(who).map(str::to_owned),
        ..compared
    }
}

/// A figure that nobody could measure is missed.
fn verdict(value: Option<f64>, holds: impl FnOnce(f64) -> bool) -> GoalVerdict {
    GoalVerdict::from(value.is_some_and(holds))
}
