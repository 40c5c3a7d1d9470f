//! The load: closed loops that keep a number of requests in flight, over HTTP or stdio, and check each answer.
//!
//! Closed means that a request is sent when one is answered: throughput and latency are then two views of one
//! thing, and a slow contender is never buried in a queue.

mod http;
mod stdio;

use std::fmt::{self, Display, Formatter};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::canned::{BenchEra, Request};
use crate::machine;
use crate::process::BenchProcess;

pub use http::{HttpSession, HttpTarget};
pub use stdio::StdioSession;

/// How much longer than its time a measurement may take before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// What one client does again and again.
#[derive(Clone, Debug)]
pub enum Work {
    Call(Request),
    /// Reads all pages of `tools/list`.
    WholeList,
}

/// What to keep in flight and for how long.
#[derive(Clone, Debug)]
pub struct Load {
    pub era: BenchEra,
    /// What the clients do, in turn if they are more.
    pub work: Vec<Work>,
    pub in_flight: usize,
    pub time: Duration,
}

impl Load {
    /// Time before what is counted.
    fn warm_up(&self) -> Duration {
        self.time / 2
    }
}

/// The figures of one measurement. Absent is what does not apply.
#[derive(Clone, Copy, Default, Debug)]
pub struct Sample {
    pub per_second: Option<f64>,
    pub p50_us: Option<f64>,
    pub p99_us: Option<f64>,
    pub idle_mb: Option<f64>,
    pub peak_mb: Option<f64>,
    pub start_ms: Option<f64>,
    /// What each further session or socket adds to the memory.
    pub session_kb: Option<f64>,
}

impl Display for Sample {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let figures = [
            (self.per_second, "/s"),
            (self.p50_us, " us p50"),
            (self.idle_mb, " MB idle"),
            (self.peak_mb, " MB peak"),
            (self.start_ms, " ms to start"),
            (self.session_kb, " KB a session"),
        ];
        let known = figures
            .iter()
            .filter_map(|(value, unit)| Some(format!("{:.1}{unit}", (*value)?)));
        write!(f, "{}", known.collect::<Vec<_>>().join(", "))
    }
}

/// The latencies of one window.
pub struct Window {
    pub latencies: Vec<Duration>,
    pub elapsed: Duration,
}

impl Window {
    /// The rate and the latencies.
    pub fn sample(mut self) -> Sample {
        self.latencies.sort_unstable();
        let count = self.latencies.len();
        let at = |share: f64| {
            let index = ((count as f64 * share) as usize).min(count.saturating_sub(1));
            let latency = self.latencies.get(index)?;
            Some(latency.as_secs_f64() * 1e6)
        };
        Sample {
            per_second: Some(count as f64 / self.elapsed.as_secs_f64()),
            p50_us: at(0.50),
            p99_us: at(0.99),
            ..Sample::default()
        }
    }
}

/// What the clients of a measurement speak to.
pub enum LoadTarget {
    Http(HttpTarget),
    /// The pipes of the contender's own process.
    Pipes,
}

/// Measures a contender under load. Its memory counts if it is `process`.
pub async fn measure(
    target: &LoadTarget,
    process: Option<&mut BenchProcess>,
    load: &Load,
) -> Result<Sample> {
    let id = process.as_deref().map(BenchProcess::id);
    let idle = |sample: Sample| Sample {
        idle_mb: id.and_then(machine::resident_mb),
        ..sample
    };
    let work = async {
        match (target, process) {
            (LoadTarget::Http(target), _) => {
                let before = idle(Sample::default());
                let window = http::run(target, load).await?;
                anyhow::Ok((before, window))
            }
            (LoadTarget::Pipes, Some(process)) => {
                let mut session = StdioSession::open(process, load.era).await?;
                let before = idle(Sample::default());
                let load = load.clone();
                let window = tokio::task::spawn_blocking(move || session.run(&load)).await??;
                Ok((before, window))
            }
            (LoadTarget::Pipes, None) => anyhow::bail!("no process to measure"),
        }
    };
    let limit = load.time * 2 + PATIENCE;
    let (before, window) = tokio::time::timeout(limit, work)
        .await
        .with_context(|| format!("stuck: no end after {limit:?}"))??;
    Ok(Sample {
        idle_mb: before.idle_mb,
        peak_mb: id.and_then(machine::peak_mb),
        ..window.sample()
    })
}

/// Opens one legacy session and keeps it: the end of a start.
pub async fn open_once(target: &LoadTarget, process: &mut BenchProcess) -> Result<OpenSession> {
    let open = async {
        match target {
            LoadTarget::Http(target) => HttpSession::open(target, BenchEra::Legacy)
                .await
                .map(OpenSession::Http),
            LoadTarget::Pipes => StdioSession::open(process, BenchEra::Legacy)
                .await
                .map(OpenSession::Stdio),
        }
    };
    tokio::time::timeout(PATIENCE, open)
        .await
        .context("`initialize` is not answered")?
}

/// A session that is idle. A proxy over stdio ends with its only one.
pub enum OpenSession {
    Http(#[expect(dead_code, reason = "held open")] HttpSession),
    Stdio(#[expect(dead_code, reason = "held open")] StdioSession),
}

/// Milliseconds since `start`.
pub fn milliseconds_since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1000.0
}
