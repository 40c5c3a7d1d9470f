//! Interleaved rounds of one case: who gave what, round by round.

use anyhow::Result;

use crate::contender::ContenderKind;
use crate::load::Measurement;
use crate::report::ContenderFigures;

/// Samples of each contender by round; a round that failed is `None`.
pub struct CaseResults {
    all: Vec<(ContenderKind, Vec<Option<Measurement>>)>,
    /// The last failure of each, for the report.
    failures: Vec<(ContenderKind, String)>,
}

/// What a figure is read from a sample by.
pub type FigureReader = fn(&Measurement) -> Option<f64>;

/// Measures every contender once in each round, in an order that turns.
pub fn in_rounds(
    case: &str,
    rounds: usize,
    contenders: impl Iterator<Item = ContenderKind>,
    mut measure_once: impl FnMut(ContenderKind) -> Result<Measurement>,
) -> CaseResults {
    let mut results = CaseResults::of_nobody_yet(contenders);
    for round in 0..rounds {
        let count = results.all.len();
        for turn in 0..count {
            let at = (turn + round) % count;
            let outcome = measure_once(results.all[at].0);
            results.add(at, outcome, &format!("{case} {}/{rounds}", round + 1));
        }
    }
    results
}

/// Measures two contenders that take turns within each round.
pub fn in_shared_rounds(
    case: &str,
    rounds: usize,
    contenders: [ContenderKind; 2],
    mut measure_both: impl FnMut() -> Result<[Measurement; 2]>,
) -> CaseResults {
    let mut results = CaseResults::of_nobody_yet(contenders.into_iter());
    for round in 0..rounds {
        let round = format!("{case} {}/{rounds}", round + 1);
        match measure_both() {
            Ok([first, second]) => {
                results.add(0, Ok(first), &round);
                results.add(1, Ok(second), &round);
            }
            Err(error) => {
                results.add(0, Err(anyhow::anyhow!("{error:#}")), &round);
                results.add(1, Err(error), &round);
            }
        }
    }
    results
}

/// The figures of a sample that has them, for the line of progress.
fn shown(sample: &Measurement) -> String {
    let figures = [
        (sample.per_second, "/s"),
        (sample.p50_us, " us p50"),
        (sample.cpu_us, " us cpu"),
        (sample.start_ms, " ms to start"),
        (sample.session_kb, " KB a session"),
    ];
    let known = figures
        .iter()
        .filter_map(|(value, unit)| Some(format!("{:.1}{unit}", (*value)?)));
    known.collect::<Vec<_>>().join(", ")
}

impl CaseResults {
    fn of_nobody_yet(contenders: impl Iterator<Item = ContenderKind>) -> CaseResults {
        CaseResults {
            all: contenders.map(|who| (who, Vec::new())).collect(),
            failures: Vec::new(),
        }
    }

    /// Adds what the contender at a place gave in a round, and tells the person who waits.
    fn add(&mut self, at: usize, outcome: Result<Measurement>, round: &str) {
        let (who, samples) = &mut self.all[at];
        let line = format!("{round} {}", who.name());
        match &outcome {
            Ok(sample) => eprintln!("{line}: {}", shown(sample)),
            Err(error) => {
                eprintln!("{line}: {error:#}");
                self.failures.push((*who, format!("{error:#}")));
            }
        }
        samples.push(outcome.ok());
    }

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
    pub fn figures(&self, case: &str) -> Vec<ContenderFigures> {
        let lines = self.all.iter().map(|(who, samples)| {
            let taken: Vec<Measurement> = samples.iter().flatten().copied().collect();
            ContenderFigures {
                case: case.to_owned(),
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
        driver_cpu_us: of(|sample| sample.driver_cpu_us),
        idle_mb: of(|sample| sample.idle_mb),
        peak_mb: of(|sample| sample.peak_mb),
        guard_private_mb: of(|sample| sample.guard_private_mb),
        start_ms: of(|sample| sample.start_ms),
        session_kb: of(|sample| sample.session_kb),
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
