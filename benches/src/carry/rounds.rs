//! The rounds of one case: who gave what, round by round.

use anyhow::{Context, Result, bail};

use super::MeasurePlan;
use crate::canned::AnswerSize;
use crate::cases::BenchCase;
use crate::contender::{BenchSetup, ContenderKind};
use crate::load::{self, LoadPlan, Measurement};
use crate::machine;
use crate::report::ContenderFigures;

/// Samples of each contender by round; a round that failed is `None`.
pub struct CaseResults {
    all: Vec<(ContenderKind, Vec<Option<Measurement>>)>,
    /// The last failure of each, for the report.
    failures: Vec<(ContenderKind, String)>,
}

/// What a figure is read from a sample by.
pub type FigureReader = fn(&Measurement) -> Option<f64>;

pub fn measure(setup: &BenchSetup, plan: &MeasurePlan, case: &BenchCase) -> CaseResults {
    let before = case.who.iter().filter_map(|who| who.before());
    let installed = case
        .who
        .iter()
        .copied()
        .chain(before)
        .filter(|who| setup.has(*who, case.shape, case.era));
    let mut results = CaseResults {
        all: installed.map(|who| (who, Vec::new())).collect(),
        failures: Vec::new(),
    };
    let rounds = plan.rounds(case.size);
    for round in 0..rounds {
        let count = results.all.len();
        for turn in 0..count {
            let (who, samples) = &mut results.all[(turn + round) % count];
            let outcome = measure_once(setup, plan, case, *who);
            match &outcome {
                Ok(sample) => progress(case, round, rounds, *who, sample),
                Err(error) => {
                    eprintln!(
                        "{} {}/{rounds} {}: {error:#}",
                        case.name,
                        round + 1,
                        who.name()
                    );
                    results.failures.push((*who, format!("{error:#}")));
                }
            }
            samples.push(outcome.ok());
        }
    }
    results
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

fn progress(
    case: &BenchCase,
    round: usize,
    rounds: usize,
    who: ContenderKind,
    sample: &Measurement,
) {
    let shown =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
    eprintln!(
        "{} {}/{rounds} {}: {}/s, p50 {} us, cpu {} us",
        case.name,
        round + 1,
        who.name(),
        shown(sample.per_second),
        shown(sample.p50_us),
        shown(sample.cpu_us)
    );
}

impl CaseResults {
    fn of(&self, who: ContenderKind) -> &[Option<Measurement>] {
        self.all
            .iter()
            .find(|(own, _)| *own == who)
            .map_or(&[], |(_, samples)| samples)
    }

    pub fn failure(&self, who: ContenderKind) -> Option<&str> {
        self.failures
            .iter()
            .rev()
            .find(|(own, _)| *own == who)
            .map(|(_, text)| text.as_str())
    }

    /// Median of one contender's figure.
    pub fn median(&self, who: ContenderKind, reading: FigureReader) -> Option<f64> {
        median(self.of(who).iter().flatten().filter_map(reading).collect())
    }

    /// Median over the rounds of `combine(who's figure, other's figure)`, both of the same round.
    pub fn paired(
        &self,
        who: ContenderKind,
        other: ContenderKind,
        reading: FigureReader,
        combine: fn(f64, f64) -> f64,
    ) -> Option<f64> {
        let rounds = self.of(who).iter().zip(self.of(other));
        let pairs = rounds.filter_map(|(own, other)| {
            let (own, other) = (own.as_ref()?, other.as_ref()?);
            Some(combine(reading(own)?, reading(other)?))
        });
        median(pairs.collect())
    }

    /// One line for each contender.
    pub fn figures(&self, case: &BenchCase) -> Vec<ContenderFigures> {
        let lines = self.all.iter().map(|(who, samples)| {
            let taken: Vec<Measurement> = samples.iter().flatten().copied().collect();
            ContenderFigures {
                case: case.name.to_owned(),
                who: who.name(),
                of_direct: self.paired(
                    *who,
                    ContenderKind::Direct,
                    |sample| sample.per_second,
                    |own, other| own / other,
                ),
                median: medians(&taken),
                failure: self.failure(*who).map(str::to_owned),
                samples: taken,
            }
        });
        lines.collect()
    }
}

/// The median of each field on its own.
pub fn medians(samples: &[Measurement]) -> Measurement {
    let of = |reading: FigureReader| median(samples.iter().filter_map(reading).collect());
    Measurement {
        per_second: of(|sample| sample.per_second),
        megabytes_per_second: of(|sample| sample.megabytes_per_second),
        p50_us: of(|sample| sample.p50_us),
        p99_us: of(|sample| sample.p99_us),
        cpu_us: of(|sample| sample.cpu_us),
        guard_cpu_us: of(|sample| sample.guard_cpu_us),
        idle_mb: of(|sample| sample.idle_mb),
        peak_mb: of(|sample| sample.peak_mb),
        guard_private_mb: of(|sample| sample.guard_private_mb),
        start_ms: of(|sample| sample.start_ms),
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        return values.get(middle).copied();
    }
    Some((values.get(middle.checked_sub(1)?)? + values.get(middle)?) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn median_of_odd_even_and_no_values() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }
}
