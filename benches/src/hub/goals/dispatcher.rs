//! What the tool `proxy-dispatch` is held to.

use super::{HubFigure, READ_RESULT, SPILL, divide, stated_of, verdict};
use crate::canned::AnswerSize;
use crate::contender::ContenderKind;
use crate::load::{Measurement, ResultPart};
use crate::report::GoalRow;
use crate::rounds::{CaseResults, FigureReader};

const SPILLED_MB_PER_SECOND: f64 = 200.0;
const PEAK_OF_RESULT: f64 = 2.0;
const P99_DURING_SPILLS: f64 = 2.0;
const READING_MS: f64 = 200.0;

const SPILL_RATE: HubFigure = HubFigure {
    what: "result to a file, from request to answer",
    unit: "MB/s",
    reading: |sample| sample.megabytes_per_second,
};
/// Seconds from a request to the next, of one session.
const CALL_TIME: FigureReader = |sample| sample.per_second.map(|rate| 1.0 / rate);
const P99: HubFigure = HubFigure {
    what: "p99 of small calls of other sessions",
    unit: "µs",
    reading: |sample| sample.p99_us,
};
const OVER_IDLE: HubFigure = HubFigure {
    what: "peak memory over idle",
    unit: "MB",
    reading: |sample: &Measurement| Some(sample.peak_mb? - sample.idle_mb?),
};
const READING_TIME: HubFigure = HubFigure {
    what: "p50 of a part",
    unit: "ms",
    reading: |sample: &Measurement| sample.p50_us.map(|time| time / 1000.0),
};

pub fn of_spills(results: &CaseResults) -> Vec<GoalRow> {
    let megabytes = AnswerSize::TenMegabytesOfRecords.bytes() as f64 / 1e6;
    let (spilling, server) = (ContenderKind::Spilling, ContenderKind::ServerAlone);
    // The rate of the median time, not the median of rates: in one noisy round the server alone may be slower.
    let added = results.paired(spilling, server, CALL_TIME, |own, server| own - server);
    let net = added
        .filter(|seconds| *seconds > 0.0)
        .map(|seconds| megabytes / seconds);
    let peak = results.median(spilling, OVER_IDLE.reading);
    let of_result = peak.map(|peak| peak / megabytes);
    let (during, alone) = (ContenderKind::DuringSpills, ContenderKind::Proxy);
    let slowed = results.paired(during, alone, P99.reading, divide);
    let transfers = ContenderKind::DuringTransfers;
    vec![
        GoalRow {
            what: "result to a file, without the server's time".to_owned(),
            value: net,
            goal: format!("≥ {SPILLED_MB_PER_SECOND:.0} MB/s"),
            verdict: verdict(added, |seconds| {
                seconds <= megabytes / SPILLED_MB_PER_SECOND
            }),
            ..stated_of(spilling, SPILL, results, SPILL_RATE)
        },
        GoalRow {
            reference: "server alone".to_owned(),
            reference_value: results.median(server, SPILL_RATE.reading),
            ratio: results.paired(spilling, server, SPILL_RATE.reading, divide),
            ..stated_of(spilling, SPILL, results, SPILL_RATE)
        },
        GoalRow {
            reference: "the result".to_owned(),
            reference_value: Some(megabytes),
            ratio: of_result,
            goal: format!("≤ {PEAK_OF_RESULT:.0} × the result"),
            verdict: verdict(of_result, |ratio| ratio <= PEAK_OF_RESULT),
            ..stated_of(spilling, SPILL, results, OVER_IDLE)
        },
        GoalRow {
            reference: "undisturbed".to_owned(),
            reference_value: results.median(alone, P99.reading),
            ratio: slowed,
            goal: format!("≤ {P99_DURING_SPILLS:.0} × undisturbed"),
            verdict: verdict(slowed, |ratio| ratio <= P99_DURING_SPILLS),
            ..stated_of(during, SPILL, results, P99)
        },
        GoalRow {
            what: "the same, while a server next to the hub only sends such results".to_owned(),
            reference: "undisturbed".to_owned(),
            reference_value: results.median(alone, P99.reading),
            ratio: results.paired(transfers, alone, P99.reading, divide),
            ..stated_of(transfers, SPILL, results, P99)
        },
    ]
}

pub fn of_readings(results: &CaseResults) -> Vec<GoalRow> {
    let row = |part| {
        let row = stated_of(
            ContenderKind::Reading(part),
            READ_RESULT,
            results,
            READING_TIME,
        );
        let what = match part {
            ResultPart::Slice => "slice in the middle",
            ResultPart::ScarceMatches => "grep, few matches",
            ResultPart::NoMatches => "grep, no match",
        };
        GoalRow {
            what: format!("p50 of {what}"),
            goal: format!("< {READING_MS:.0} ms"),
            verdict: verdict(row.value, |time| time < READING_MS),
            ..row
        }
    };
    ResultPart::ALL.into_iter().map(row).collect()
}
