//! From figures to verdicts: each goal of a case becomes one row.
//!
//! A goal that compares with no proxy at all, or is in microseconds, depends on the machine: where it is missed, three
//! quarters of the bare copy in the same run count. Goals against nginx or against ourselves get no such help, except that
//! the bare copy stands in where nginx is not installed.

use super::rounds::{Reading, Results};
use crate::canned::Size;
use crate::cases::{Case, Goal};
use crate::contender::{Habit, Who};
use crate::load::Sample;
use crate::report::{Row, Verdict};

/// The share of the bare copy that counts.
const OF_FLOOR: f64 = 0.75;

pub fn rows(case: &Case, results: &Results) -> Vec<Row> {
    case.goals
        .iter()
        .map(|goal| row(case, results, *goal))
        .collect()
}

fn row(case: &Case, results: &Results, goal: Goal) -> Row {
    match goal {
        Goal::RateOfNginx(least) => of_nginx(case, results, rate(case), Bound::AtLeast(least)),
        Goal::CpuOfNginx(most) => {
            let cpu = Figure {
                what: "CPU a request",
                unit: "µs",
                reading: |sample| sample.cpu_us,
            };
            of_nginx(case, results, cpu, Bound::AtMost(most))
        }
        Goal::AddedOfNginx(most) => added_of_nginx(case, results, most),
        Goal::RateOfDirect(least) => of_direct(case, results, least),
        Goal::AddedMicroseconds(most) => added_microseconds(case, results, most),
        Goal::PeakOverFlight(times) => peak(case, results, times),
        Goal::RateOfOwnUnrecorded(least) => of_own(case, results, Who::Recording, least),
        Goal::RateOfOwnUnviewed(habit, least) => of_own(case, results, Who::Viewed(habit), least),
        Goal::RateOfOwnUnruled(least) => of_own(case, results, Who::Ruled, least),
        Goal::RateOfOwnLegacy(least) => of_own(case, results, Who::Modern, least),
    }
}

/// A figure with its name and unit.
struct Figure {
    what: &'static str,
    unit: &'static str,
    reading: Reading,
}

#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Bound::AtLeast(least) => value >= least,
            Bound::AtMost(most) => value <= most,
        }
    }

    /// Whether `own` is within three quarters of the bare copy's `floor`.
    fn holds_by_floor(self, own: f64, floor: f64) -> bool {
        match self {
            Bound::AtLeast(_) => own >= OF_FLOOR * floor,
            Bound::AtMost(_) => own * OF_FLOOR <= floor,
        }
    }

    fn text(self, of: &str) -> String {
        match self {
            Bound::AtLeast(least) => format!("≥ {least:.2} {of}"),
            Bound::AtMost(most) => format!("≤ {most:.2} {of}"),
        }
    }
}

fn rate(case: &Case) -> Figure {
    if case.size == Size::Small {
        Figure {
            what: "throughput",
            unit: "req/s",
            reading: |sample| sample.per_second,
        }
    } else {
        Figure {
            what: "throughput",
            unit: "MB/s",
            reading: |sample| sample.megabytes_per_second,
        }
    }
}

fn of_nginx(case: &Case, results: &Results, figure: Figure, bound: Bound) -> Row {
    let ratio = |who| results.paired(who, Who::Nginx, figure.reading, divide);
    let (own, floor) = (ratio(Who::Proxy), ratio(Who::Floor));
    let beside_floor = results.paired(Who::Proxy, Who::Floor, figure.reading, divide);
    let verdict = match (own, beside_floor) {
        (Some(own), _) => Verdict::from(bound.holds(own)),
        (None, Some(share)) if bound.holds_by_floor(share, 1.0) => Verdict::ByFloor,
        _ => Verdict::Miss,
    };
    Row {
        value: results.median(Who::Proxy, figure.reading),
        reference: Who::Nginx.name().to_owned(),
        reference_value: results.median(Who::Nginx, figure.reading),
        ratio: own,
        goal: bound.text("× nginx"),
        floor: floor.map(|ratio| format!("{ratio:.2}")),
        verdict,
        ..blank(case, results, Who::Proxy, figure.what, figure.unit)
    }
}

/// Added latency is small beside the latency itself, so its median is made first and divided last.
fn added_of_nginx(case: &Case, results: &Results, most: f64) -> Row {
    let added = |who| results.paired(who, Who::Direct, median_latency, subtract);
    let (own, nginx, floor) = (added(Who::Proxy), added(Who::Nginx), added(Who::Floor));
    let ratio = |value: Option<f64>| Some(value? / nginx?);
    let bound = Bound::AtMost(most);
    let verdict = match (ratio(own), own, floor) {
        (Some(ratio), _, _) => Verdict::from(bound.holds(ratio)),
        (None, Some(own), Some(floor)) if bound.holds_by_floor(own, floor) => Verdict::ByFloor,
        _ => Verdict::Miss,
    };
    Row {
        value: own,
        reference: "nginx's added p50".to_owned(),
        reference_value: nginx,
        ratio: ratio(own),
        goal: bound.text("× nginx's"),
        floor: ratio(floor).map(|ratio| format!("{ratio:.2}")),
        verdict,
        ..blank(case, results, Who::Proxy, "added p50", "µs")
    }
}

fn of_direct(case: &Case, results: &Results, least: f64) -> Row {
    let figure = rate(case);
    let ratio = |who| results.paired(who, Who::Direct, figure.reading, divide);
    let (own, floor) = (ratio(Who::Proxy), ratio(Who::Floor));
    let bound = Bound::AtLeast(least);
    let share = results.paired(Who::Proxy, Who::Floor, figure.reading, divide);
    Row {
        value: results.median(Who::Proxy, figure.reading),
        reference: Who::Direct.name().to_owned(),
        reference_value: results.median(Who::Direct, figure.reading),
        ratio: own,
        goal: bound.text("of direct"),
        floor: floor.map(|ratio| format!("{ratio:.2}")),
        verdict: helped(bound, own, share, Some(1.0)),
        ..blank(case, results, Who::Proxy, figure.what, figure.unit)
    }
}

fn added_microseconds(case: &Case, results: &Results, most: f64) -> Row {
    let added = |who| results.paired(who, Who::Direct, median_latency, subtract);
    let (own, floor) = (added(Who::Proxy), added(Who::Floor));
    let bound = Bound::AtMost(most);
    Row {
        value: own,
        reference: "direct p50".to_owned(),
        reference_value: results.median(Who::Direct, median_latency),
        goal: format!("≤ {most:.0} µs"),
        floor: floor.map(|added| format!("{added:.0} µs")),
        verdict: match own {
            Some(value) if bound.holds(value) => Verdict::Ok,
            _ => helped(bound, own, own, floor),
        },
        ..blank(case, results, Who::Proxy, "added p50", "µs")
    }
}

fn peak(case: &Case, results: &Results, times: f64) -> Row {
    let flight = times * (case.in_flight * case.size.bytes()) as f64 / 1e6;
    let peak = results.median(Who::Proxy, |sample| sample.peak_mb);
    let idle = results.median(Who::Proxy, |sample| sample.idle_mb);
    let allowed = idle.map(|idle| idle + flight);
    let fits = peak
        .zip(allowed)
        .is_some_and(|(peak, allowed)| peak <= allowed);
    Row {
        value: peak,
        reference: "idle memory".to_owned(),
        reference_value: idle,
        goal: format!("≤ idle + {flight:.0} MB"),
        floor: results
            .median(Who::Floor, |sample| sample.peak_mb)
            .map(|peak| format!("{peak:.1} MB")),
        verdict: Verdict::from(fits),
        ..blank(case, results, Who::Proxy, "peak memory", "MB")
    }
}

fn of_own(case: &Case, results: &Results, who: Who, least: f64) -> Row {
    let figure = rate(case);
    let bound = Bound::AtLeast(least);
    let (what, beside, reference) = match who {
        Who::Modern => ("2026-07-28 traffic", Who::Proxy, "own 2025 traffic"),
        Who::Viewed(Habit::Reads) => ("viewer reading", Who::Recording, "own with record"),
        Who::Viewed(Habit::Stops) => ("viewer stopped", Who::Recording, "own with record"),
        Who::Ruled => ("1,000 rules", Who::Recording, "own with record"),
        _ if case.size == Size::Small => ("record on", Who::Proxy, "own without record"),
        _ => ("record on tmpfs", Who::Proxy, "own without record"),
    };
    let ratio = results.paired(who, beside, figure.reading, divide);
    // Longer requests cost more without a proxy too. Shown, not counted.
    let floor = (who == Who::Modern)
        .then(|| results.paired(Who::FloorModern, Who::Floor, figure.reading, divide))
        .flatten();
    Row {
        value: results.median(who, figure.reading),
        reference: reference.to_owned(),
        reference_value: results.median(beside, figure.reading),
        ratio,
        goal: bound.text("of own"),
        floor: floor.map(|ratio| format!("{ratio:.2}")),
        verdict: Verdict::from(ratio.is_some_and(|ratio| bound.holds(ratio))),
        ..blank(case, results, who, what, figure.unit)
    }
}

fn helped(bound: Bound, own: Option<f64>, beside: Option<f64>, floor: Option<f64>) -> Verdict {
    if own.is_some_and(|own| bound.holds(own)) {
        return Verdict::Ok;
    }
    match beside.zip(floor) {
        Some((beside, floor)) if bound.holds_by_floor(beside, floor) => Verdict::ByFloor,
        _ => Verdict::Miss,
    }
}

fn blank(case: &Case, results: &Results, who: Who, what: &str, unit: &'static str) -> Row {
    Row {
        case: case.name.to_owned(),
        what: what.to_owned(),
        unit,
        note: results.failure(who).map(str::to_owned),
        ..Row::default()
    }
}

fn median_latency(sample: &Sample) -> Option<f64> {
    sample.p50_us
}

fn divide(own: f64, other: f64) -> f64 {
    own / other
}

fn subtract(own: f64, other: f64) -> f64 {
    own - other
}
