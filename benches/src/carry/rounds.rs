//! The rounds of one case of `carry`.

use anyhow::{Context, Result, bail};

use super::MeasurePlan;
use crate::canned::AnswerSize;
use crate::cases::BenchCase;
use crate::contender::{BenchSetup, ContenderKind};
use crate::load::{self, LoadPlan, Measurement};
use crate::machine;
use crate::rounds::{CaseResults, in_rounds};

pub fn measure(setup: &BenchSetup, plan: &MeasurePlan, case: &BenchCase) -> CaseResults {
    let before = case.who.iter().filter_map(|who| who.before());
    let installed = case
        .who
        .iter()
        .copied()
        .chain(before)
        .filter(|who| setup.has(*who, case.shape, case.era));
    in_rounds(case.name, plan.rounds(case.size), installed, |who| {
        measure_once(setup, plan, case, who)
    })
}

fn measure_once(
    setup: &BenchSetup,
    plan: &MeasurePlan,
    case: &BenchCase,
    who: ContenderKind,
) -> Result<Measurement> {
    let load = LoadPlan {
        era: who.era(case.era),
        size: case.size,
        in_flight: case.in_flight,
        warm_up: plan.warm_up,
        time: plan.time(case.size),
        most_requests: most_requests(setup, case, who)?,
    };
    let mut contender = setup.start(who, case.shape, case.size)?;
    let outcome = match (&contender.target, &mut contender.running) {
        (Some(target), _) => load::measure_http(target, &load),
        (None, Some(running)) => load::measure_stdio(running, &load, who != ContenderKind::Direct),
        (None, None) => bail!("neither an address nor a process to measure"),
    };
    let words = || {
        contender
            .running
            .as_ref()
            .map_or_else(String::new, |running| running.last_words())
    };
    outcome.with_context(|| format!("measurement failed{}", words()))
}

/// A recording contender writes at most a third of what the place has room for, each of the two phases counted.
fn most_requests(setup: &BenchSetup, case: &BenchCase, who: ContenderKind) -> Result<u64> {
    if !who.records() {
        return Ok(u64::MAX);
    }
    let (folder, message) = match case.size {
        // The record's line of a small message, generously.
        AnswerSize::Small => (setup.folder.path(), 4096),
        size => (setup.memory.path(), size.bytes() as u64),
    };
    Ok((machine::free_bytes(folder)? / 6 / message).max(case.in_flight as u64))
}
