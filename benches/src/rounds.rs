//! Interleaved rounds: each contender is measured once in each round, in an order that turns, so that whatever else the
//! machine does meets all of them. Ratios are made inside a round, and their median counts.

use anyhow::Result;

use crate::load::Sample;

/// Who is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contender {
    /// A client and a server with nothing in between.
    Direct,
    Nginx,
    Npm,
    Pypi,
    /// The crate of the same name.
    Crate,
    Ours(Variant),
    /// The build that `--before` names.
    Before(Variant),
}

/// How mcp-proxy is started or called in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    /// Without a record.
    Plain,
    Recording,
    /// A hub that is called through its tool `proxy`.
    ProxyTool,
    /// A hub that is called through its tool `proxy-dispatch`.
    Dispatch,
}

impl Contender {
    pub fn name(self) -> &'static str {
        match self {
            Contender::Direct => "direct",
            Contender::Nginx => "nginx",
            Contender::Npm => "npm",
            Contender::Pypi => "PyPI",
            Contender::Crate => "crates.io",
            Contender::Ours(_) => "ours",
            Contender::Before(_) => "before",
        }
    }

    /// Whether this is another program that does the same job.
    pub fn is_peer(self) -> bool {
        !matches!(
            self,
            Contender::Direct | Contender::Ours(_) | Contender::Before(_)
        )
    }

    pub fn variant(self) -> Variant {
        match self {
            Contender::Ours(variant) | Contender::Before(variant) => variant,
            _ => Variant::Plain,
        }
    }
}

/// What is read from a sample.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Figure {
    /// How often a second the work was done.
    Rate,
    /// The same in megabytes, for work of this many megabytes.
    MegabyteRate(f64),
    P50,
    /// What is added to the median latency of a client and a server alone.
    AddedP50,
    P99,
    IdleMemory,
    /// The most memory during the load, less that before it.
    PeakOverIdle,
    StartTime,
    SessionMemory,
}

impl Figure {
    fn of(self, sample: &Sample) -> Option<f64> {
        match self {
            Figure::Rate => sample.per_second,
            Figure::MegabyteRate(megabytes) => Some(sample.per_second? * megabytes),
            Figure::P50 | Figure::AddedP50 => sample.p50_us,
            Figure::P99 => sample.p99_us,
            Figure::IdleMemory => sample.idle_mb,
            Figure::PeakOverIdle => Some(sample.peak_mb? - sample.idle_mb?),
            Figure::StartTime => sample.start_ms,
            Figure::SessionMemory => sample.session_kb,
        }
    }
}

/// The samples of each contender by round; a round that failed is `None`.
#[derive(Default)]
pub struct CaseResults {
    samples: Vec<(Contender, Vec<Option<Sample>>)>,
    /// The failures, for the report.
    pub failures: Vec<String>,
}

/// Measures every contender once in each round.
pub async fn measure(
    case: &str,
    rounds: usize,
    contenders: Vec<Contender>,
    mut measure_once: impl AsyncFnMut(Contender) -> Result<Sample>,
) -> CaseResults {
    let mut results = CaseResults::default();
    let count = contenders.len();
    results
        .samples
        .extend(contenders.into_iter().map(|who| (who, Vec::new())));
    for round in 0..rounds {
        for turn in 0..count {
            let (who, samples) = &mut results.samples[(turn + round) % count];
            let outcome = measure_once(*who).await;
            let line = format!("{case} {}/{rounds} {who:?}", round + 1);
            match &outcome {
                Ok(sample) => eprintln!("{line}: {sample}"),
                Err(error) => {
                    eprintln!("{line}: {error:#}");
                    results
                        .failures
                        .push(format!("{case}, {}: {error:#}", who.name()));
                }
            }
            samples.push(outcome.ok());
        }
    }
    results
}

impl CaseResults {
    /// The contenders that gave anything, in the order of the case.
    pub fn contenders(&self) -> impl Iterator<Item = Contender> {
        let measured = |samples: &[Option<Sample>]| samples.iter().any(Option::is_some);
        self.samples
            .iter()
            .filter(move |(_, samples)| measured(samples))
            .map(|(who, _)| *who)
    }

    /// The median of one contender's figure.
    pub fn median(&self, who: Contender, figure: Figure) -> Option<f64> {
        let samples = self.of(who).iter().flatten();
        median(samples.filter_map(|sample| figure.of(sample)).collect())
    }

    /// The median over the rounds of `combine(own figure, other's figure)`.
    pub fn paired(
        &self,
        own: Contender,
        other: Contender,
        figure: Figure,
        combine: fn(f64, f64) -> f64,
    ) -> Option<f64> {
        let rounds = self.of(own).iter().zip(self.of(other));
        let pairs = rounds.filter_map(|(own, other)| {
            let (own, other) = (figure.of(own.as_ref()?)?, figure.of(other.as_ref()?)?);
            Some(combine(own, other))
        });
        median(pairs.collect())
    }

    fn of(&self, who: Contender) -> &[Option<Sample>] {
        self.samples
            .iter()
            .find(|(own, _)| *own == who)
            .map_or(&[], |(_, samples)| samples)
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
