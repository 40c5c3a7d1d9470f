//! From figures to verdicts: each goal of a case becomes one row.
//!
//! A goal that compares with no proxy at all, or is in microseconds, depends on the machine: where it is missed, three
//! quarters of the bare copy in the same run count. Goals against nginx or against ourselves get no such help, except that
//! the bare copy stands in where nginx is not installed.

use crate::canned::AnswerSize;
use crate::cases::{BenchCase, Goal};
use crate::contender::{ContenderKind, ViewerHabit};
use crate::load::Measurement;
use crate::report::{GoalRow, GoalVerdict};
use crate::rounds::{CaseResults, FigureReader};

/// The share of an earlier build's figure that still counts as unchanged.
const OF_BEFORE: f64 = 0.95;
/// The share of the bare copy that counts.
const OF_FLOOR: f64 = 0.75;

pub fn rows(case: &BenchCase, results: &CaseResults) -> Vec<GoalRow> {
    case.goals
        .iter()
        .map(|goal| row(case, results, *goal))
        .collect()
}

/// Throughput and median latency next to those of the build that `--before` names. None without it.
pub fn rows_of_before(case: &BenchCase, results: &CaseResults) -> Vec<GoalRow> {
    let latency = FigureSpec {
        what: "p50",
        unit: "µs",
        reading: median_latency,
    };
    let figures = [
        (rate(case), GoalBound::AtLeast(OF_BEFORE)),
        (latency, GoalBound::AtMost(1.0 / OF_BEFORE)),
    ];
    let mut rows = Vec::new();
    for who in case.who {
        let Some(before) = who.before() else { continue };
        for (figure, bound) in &figures {
            let Some(ratio) = results.paired(*who, before, figure.reading, divide) else {
                continue;
            };
            rows.push(GoalRow {
                value: results.median(*who, figure.reading),
                reference: before.name().to_owned(),
                reference_value: results.median(before, figure.reading),
                ratio: Some(ratio),
                goal: bound.text("of before"),
                verdict: GoalVerdict::from(bound.holds(ratio)),
                ..blank(case, results, *who, figure.what, figure.unit)
            });
        }
    }
    rows
}

fn row(case: &BenchCase, results: &CaseResults, goal: Goal) -> GoalRow {
    match goal {
        Goal::RateOfNginx(least) => {
            compare_with_nginx(case, results, rate(case), GoalBound::AtLeast(least))
        }
        Goal::CpuOfNginx(most) => {
            let cpu = FigureSpec {
                what: "CPU a request",
                unit: "µs",
                reading: |sample| sample.cpu_us,
            };
            compare_with_nginx(case, results, cpu, GoalBound::AtMost(most))
        }
        Goal::AddedOfNginx(most) => added_of_nginx(case, results, most),
        Goal::RateOfDirect(least) => compare_with_direct(case, results, least),
        Goal::AddedMicroseconds(most) => added_microseconds(case, results, most),
        Goal::PeakOverFlight(times) => peak(case, results, times),
        Goal::RateOfOwnUnrecorded(least) => {
            compare_with_own(case, results, ContenderKind::Recording, least)
        }
        Goal::RateOfOwnUnviewed(habit, least) => {
            compare_with_own(case, results, ContenderKind::Viewed(habit), least)
        }
        Goal::RateOfOwnUnruled(least) => {
            compare_with_own(case, results, ContenderKind::Ruled, least)
        }
        Goal::RateOfOwnLegacy(least) => {
            compare_with_own(case, results, ContenderKind::Modern, least)
        }
    }
}

/// A figure with its name and unit.
struct FigureSpec {
    what: &'static str,
    unit: &'static str,
    reading: FigureReader,
}

#[derive(Clone, Copy)]
enum GoalBound {
    AtLeast(f64),
    AtMost(f64),
}

impl GoalBound {
    fn holds(self, value: f64) -> bool {
        match self {
            GoalBound::AtLeast(least) => value >= least,
            GoalBound::AtMost(most) => value <= most,
        }
    }

    /// Whether `own` is within three quarters of the bare copy's `floor`.
    fn holds_by_floor(self, own: f64, floor: f64) -> bool {
        match self {
            GoalBound::AtLeast(_) => own >= OF_FLOOR * floor,
            GoalBound::AtMost(_) => own * OF_FLOOR <= floor,
        }
    }

    fn text(self, of: &str) -> String {
        match self {
            GoalBound::AtLeast(least) => format!("≥ {least:.2} {of}"),
            GoalBound::AtMost(most) => format!("≤ {most:.2} {of}"),
        }
    }
}

fn rate(case: &BenchCase) -> FigureSpec {
    if case.size == AnswerSize::Small {
        FigureSpec {
            what: "throughput",
            unit: "req/s",
            reading: |sample| sample.per_second,
        }
    } else {
        FigureSpec {
            what: "throughput",
            unit: "MB/s",
            reading: |sample| sample.megabytes_per_second,
        }
    }
}

fn compare_with_nginx(
    case: &BenchCase,
    results: &CaseResults,
    figure: FigureSpec,
    bound: GoalBound,
) -> GoalRow {
    let ratio = |who| results.paired(who, ContenderKind::Nginx, figure.reading, divide);
    let (own, floor) = (ratio(ContenderKind::Proxy), ratio(ContenderKind::Floor));
    let beside_floor = results.paired(
        ContenderKind::Proxy,
        ContenderKind::Floor,
        figure.reading,
        divide,
    );
    let verdict = match (own, beside_floor) {
        (Some(own), _) => GoalVerdict::from(bound.holds(own)),
        (None, Some(share)) if bound.holds_by_floor(share, 1.0) => GoalVerdict::ByFloor,
        _ => GoalVerdict::Miss,
    };
    GoalRow {
        value: results.median(ContenderKind::Proxy, figure.reading),
        reference: ContenderKind::Nginx.name().to_owned(),
        reference_value: results.median(ContenderKind::Nginx, figure.reading),
        ratio: own,
        goal: bound.text("× nginx"),
        floor: floor.map(|ratio| format!("{ratio:.2}")),
        verdict,
        ..blank(
            case,
            results,
            ContenderKind::Proxy,
            figure.what,
            figure.unit,
        )
    }
}

/// Added latency is small compared with the latency itself, so its median is made first and divided last.
fn added_of_nginx(case: &BenchCase, results: &CaseResults, most: f64) -> GoalRow {
    let added = |who| results.paired(who, ContenderKind::Direct, median_latency, subtract);
    let (own, nginx, floor) = (
        added(ContenderKind::Proxy),
        added(ContenderKind::Nginx),
        added(ContenderKind::Floor),
    );
    let ratio = |value: Option<f64>| Some(value? / nginx?);
    let bound = GoalBound::AtMost(most);
    let verdict = match (ratio(own), own, floor) {
        (Some(ratio), _, _) => GoalVerdict::from(bound.holds(ratio)),
        (None, Some(own), Some(floor)) if bound.holds_by_floor(own, floor) => GoalVerdict::ByFloor,
        _ => GoalVerdict::Miss,
    };
    GoalRow {
        value: own,
        reference: "nginx's added p50".to_owned(),
        reference_value: nginx,
        ratio: ratio(own),
        goal: bound.text("× nginx's"),
        floor: ratio(floor).map(|ratio| format!("{ratio:.2}")),
        verdict,
        ..blank(case, results, ContenderKind::Proxy, "added p50", "µs")
    }
}

fn compare_with_direct(case: &BenchCase, results: &CaseResults, least: f64) -> GoalRow {
    let figure = rate(case);
    let ratio = |who| results.paired(who, ContenderKind::Direct, figure.reading, divide);
    let (own, floor) = (ratio(ContenderKind::Proxy), ratio(ContenderKind::Floor));
    let bound = GoalBound::AtLeast(least);
    let share = results.paired(
        ContenderKind::Proxy,
        ContenderKind::Floor,
        figure.reading,
        divide,
    );
    GoalRow {
        value: results.median(ContenderKind::Proxy, figure.reading),
        reference: ContenderKind::Direct.name().to_owned(),
        reference_value: results.median(ContenderKind::Direct, figure.reading),
        ratio: own,
        goal: bound.text("of direct"),
        floor: floor.map(|ratio| format!("{ratio:.2}")),
        verdict: helped(bound, own, share, Some(1.0)),
        ..blank(
            case,
            results,
            ContenderKind::Proxy,
            figure.what,
            figure.unit,
        )
    }
}

fn added_microseconds(case: &BenchCase, results: &CaseResults, most: f64) -> GoalRow {
    let added = |who| results.paired(who, ContenderKind::Direct, median_latency, subtract);
    let (own, floor) = (added(ContenderKind::Proxy), added(ContenderKind::Floor));
    let bound = GoalBound::AtMost(most);
    GoalRow {
        value: own,
        reference: "direct p50".to_owned(),
        reference_value: results.median(ContenderKind::Direct, median_latency),
        goal: format!("≤ {most:.0} µs"),
        floor: floor.map(|added| format!("{added:.0} µs")),
        verdict: match own {
            Some(value) if bound.holds(value) => GoalVerdict::Ok,
            _ => helped(bound, own, own, floor),
        },
        ..blank(case, results, ContenderKind::Proxy, "added p50", "µs")
    }
}

fn peak(case: &BenchCase, results: &CaseResults, times: f64) -> GoalRow {
    let flight = times * (case.in_flight * case.size.bytes()) as f64 / 1e6;
    let peak = results.median(ContenderKind::Proxy, |sample| sample.peak_mb);
    let idle = results.median(ContenderKind::Proxy, |sample| sample.idle_mb);
    let allowed = idle.map(|idle| idle + flight);
    let fits = peak
        .zip(allowed)
        .is_some_and(|(peak, allowed)| peak <= allowed);
    GoalRow {
        value: peak,
        reference: "idle memory".to_owned(),
        reference_value: idle,
        goal: format!("≤ idle + {flight:.0} MB"),
        floor: results
            .median(ContenderKind::Floor, |sample| sample.peak_mb)
            .map(|peak| format!("{peak:.1} MB")),
        verdict: GoalVerdict::from(fits),
        ..blank(case, results, ContenderKind::Proxy, "peak memory", "MB")
    }
}

fn compare_with_own(
    case: &BenchCase,
    results: &CaseResults,
    who: ContenderKind,
    least: f64,
) -> GoalRow {
    let figure = rate(case);
    let bound = GoalBound::AtLeast(least);
    let (what, beside, reference) = match who {
        ContenderKind::Modern => (
            "2026-07-28 traffic",
            ContenderKind::Proxy,
            "own 2025 traffic",
        ),
        ContenderKind::Viewed(ViewerHabit::Reads) => (
            "viewer reading",
            ContenderKind::Recording,
            "own with record",
        ),
        ContenderKind::Viewed(ViewerHabit::Stops) => (
            "viewer stopped",
            ContenderKind::Recording,
            "own with record",
        ),
        ContenderKind::Ruled => ("1,000 rules", ContenderKind::Recording, "own with record"),
        _ if case.size == AnswerSize::Small => {
            ("record on", ContenderKind::Proxy, "own without record")
        }
        _ => (
            "record on tmpfs",
            ContenderKind::Proxy,
            "own without record",
        ),
    };
    let ratio = results.paired(who, beside, figure.reading, divide);
    // Longer requests cost more without a proxy too. Shown, not counted.
    let floor = (who == ContenderKind::Modern)
        .then(|| {
            results.paired(
                ContenderKind::FloorModern,
                ContenderKind::Floor,
                figure.reading,
                divide,
            )
        })
        .flatten();
    GoalRow {
        value: results.median(who, figure.reading),
        reference: reference.to_owned(),
        reference_value: results.median(beside, figure.reading),
        ratio,
        goal: bound.text("of own"),
        floor: floor.map(|ratio| format!("{ratio:.2}")),
        verdict: GoalVerdict::from(ratio.is_some_and(|ratio| bound.holds(ratio))),
        ..blank(case, results, who, what, figure.unit)
    }
}

fn helped(
    bound: GoalBound,
    own: Option<f64>,
    beside: Option<f64>,
    floor: Option<f64>,
) -> GoalVerdict {
    if own.is_some_and(|own| bound.holds(own)) {
        return GoalVerdict::Ok;
    }
    match beside.zip(floor) {
        Some((beside, floor)) if bound.holds_by_floor(beside, floor) => GoalVerdict::ByFloor,
        _ => GoalVerdict::Miss,
    }
}

fn blank(
    case: &BenchCase,
    results: &CaseResults,
    who: ContenderKind,
    what: &str,
    unit: &'static str,
) -> GoalRow {
    GoalRow {
        case: case.name.to_owned(),
        what: what.to_owned(),
        unit,
        note: results.failure(who).map(str::to_owned),
        ..GoalRow::default()
    }
}

fn median_latency(sample: &Measurement) -> Option<f64> {
    sample.p50_us
}

fn divide(own: f64, other: f64) -> f64 {
    own / other
}

fn subtract(own: f64, other: f64) -> f64 {
    own - other
}
