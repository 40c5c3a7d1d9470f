//! The load: closed loops that keep a number of `tools/call` in flight, over HTTP or stdio, and check each answer.
//!
//! Closed means that a request is sent when one is answered: throughput and latency are then two views of one
//! thing, and a slow contender is never buried in a queue.

mod alternating;
mod connection;
mod http;
mod kept_result;
mod listing;
mod spilling;
mod stdio;

use std::time::Duration;

use anyhow::{Result, bail};
use serde::Serialize;

use crate::canned::{AnswerSize, BenchEra};
use crate::usage::TreeUsage;

pub use alternating::measure_in_turn;
pub use http::{
    ExpectedAnswer, LoadCall, LoadTarget, measure as measure_http, measure_calls, open_once,
};
pub use kept_result::{KeptResult, ResultPart};
pub use listing::{ListPlan, list_once, measure_lists, open_and_list};
pub use spilling::{OtherHabit, OtherSession, measure_calls_next_to};
pub use stdio::{
    PacedTransfers, list_once as list_once_stdio, measure as measure_stdio, measure_transfer,
    open_once as open_once_stdio,
};

/// What to keep in flight and for how long.
#[derive(Clone, Copy, Debug)]
pub struct LoadPlan {
    pub era: BenchEra,
    pub size: AnswerSize,
    pub in_flight: usize,
    pub warm_up: Duration,
    pub time: Duration,
    /// Ends a measurement early; bounds what a recording contender can write.
    pub most_requests: u64,
}

/// How much longer than its time a measurement may take before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(15);
/// The same for each megabyte of an answer: builds without optimization are measured too, if only to see that it runs.
const PATIENCE_PER_MEGABYTE: Duration = Duration::from_secs(5);

impl LoadPlan {
    /// Time after which the contender is given up.
    pub fn limit(&self) -> Duration {
        self.warm_up + self.time + patience(self.size)
    }
}

fn patience(size: AnswerSize) -> Duration {
    let megabytes = (size.bytes() / 1_000_000) as u32;
    PATIENCE + PATIENCE_PER_MEGABYTE * megabytes
}

/// What one measurement gave. Absent is what does not apply.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub struct Measurement {
    pub per_second: Option<f64>,
    pub megabytes_per_second: Option<f64>,
    pub p50_us: Option<f64>,
    pub p99_us: Option<f64>,
    pub cpu_us: Option<f64>,
    pub guard_cpu_us: Option<f64>,
    /// What the load generator itself used.
    pub driver_cpu_us: Option<f64>,
    pub idle_mb: Option<f64>,
    pub peak_mb: Option<f64>,
    pub guard_private_mb: Option<f64>,
    pub start_ms: Option<f64>,
    /// What one more idle session adds to the memory.
    pub session_kb: Option<f64>,
}

/// Answers counted in one window, with each one's latency in nanoseconds.
pub struct MeasuredWindow {
    pub latencies: Vec<u32>,
    pub elapsed: Duration,
}

impl MeasuredWindow {
    fn sample(
        mut self,
        size: AnswerSize,
        before: &TreeUsage,
        after: &TreeUsage,
        root_is_proxy: bool,
    ) -> Measurement {
        let count = self.latencies.len() as f64;
        let seconds = self.elapsed.as_secs_f64();
        self.latencies.sort_unstable();
        let at = |share: f64| {
            let index = ((count * share) as usize).min(self.latencies.len().saturating_sub(1));
            // The largest stands for all that have no room in 32 bits, 4.3 s and more: better no figure than a wrong one.
            let known = self
                .latencies
                .get(index)
                .filter(|latency| **latency < u32::MAX);
            known.map(|nanoseconds| f64::from(*nanoseconds) / 1000.0)
        };
        let mut sample = Measurement {
            per_second: Some(count / seconds),
            megabytes_per_second: Some(count * size.bytes() as f64 / 1e6 / seconds),
            p50_us: at(0.50),
            p99_us: at(0.99),
            ..Measurement::default()
        };
        if root_is_proxy {
            let spent = after.proxy.cpu_seconds - before.proxy.cpu_seconds;
            sample.cpu_us = Some(spent * 1e6 / count);
            sample.peak_mb = Some(after.proxy.peak_megabytes);
            if let Some(guard) = after.guard {
                let earlier = before.guard.map_or(0.0, |guard| guard.cpu_seconds);
                sample.guard_cpu_us = Some((guard.cpu_seconds - earlier) * 1e6 / count);
                sample.guard_private_mb = Some(guard.private_megabytes);
            }
        }
        sample
    }
}

/// The two ends of an answer: enough to see whose it is and that it is whole, without keeping megabytes.
#[derive(Default)]
pub struct AnswerEnds {
    front: Vec<u8>,
    back: Vec<u8>,
    length: usize,
    /// Everything, once somebody has asked for it.
    whole: Option<Vec<u8>>,
}

impl AnswerEnds {
    const KEPT: usize = 192;

    pub fn clear(&mut self) {
        self.front.clear();
        self.back.clear();
        self.length = 0;
        if let Some(whole) = &mut self.whole {
            whole.clear();
        }
    }

    /// Keeps all bytes of the answers from now on.
    pub fn keep_whole(&mut self) {
        self.whole.get_or_insert_default();
    }

    /// Stops doing so, and gives those of the last answer.
    pub fn take_whole(&mut self) -> Vec<u8> {
        self.whole.take().unwrap_or_default()
    }

    /// Whether the answer has `text` in it; never if it is not kept whole.
    pub fn holds(&self, text: &str) -> bool {
        let whole = self.whole.as_deref().unwrap_or_default();
        memchr::memmem::find(whole, text.as_bytes()).is_some()
    }

    pub fn length(&self) -> usize {
        self.length
    }

    /// Where the next page begins, still escaped. Lists end with it, or have it in front.
    pub fn next_cursor(&self) -> Option<String> {
        find_cursor(&self.back).or_else(|| find_cursor(&self.front))
    }

    pub fn push(&mut self, piece: &[u8]) {
        self.length += piece.len();
        if let Some(whole) = &mut self.whole {
            whole.extend_from_slice(piece);
        }
        let room = Self::KEPT - self.front.len();
        self.front
            .extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() >= Self::KEPT {
            self.back.clear();
        }
        self.back
            .extend_from_slice(&piece[piece.len().saturating_sub(Self::KEPT)..]);
        if self.back.len() > Self::KEPT {
            self.back.drain(..self.back.len() - Self::KEPT);
        }
    }

    /// The id, from whichever end has it: some servers write it last.
    pub fn id(&self) -> Option<u32> {
        find_id(&self.front).or_else(|| find_id(&self.back))
    }

    /// Whether this can be the answer of that size and no error.
    pub fn is_whole(&self, size: AnswerSize) -> bool {
        self.length > size.bytes() && memchr::memmem::find(&self.front, br#""result":"#).is_some()
    }

    /// The beginning, for a message about an odd answer.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.front).into_owned()
    }
}

/// Runs the work of a load on a runtime of its own, and gives it up after `limit`.
fn within<T>(limit: Duration, work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match tokio::time::timeout(limit, work).await {
            Ok(outcome) => outcome,
            Err(_) => bail!("stuck: no end after {limit:?}"),
        }
    })
}

fn find_cursor(text: &[u8]) -> Option<String> {
    const KEY: &[u8] = br#""nextCursor":""#;
    let start = memchr::memmem::find(text, KEY)? + KEY.len();
    let length = memchr::memchr(b'"', &text[start..])?;
    String::from_utf8(text[start..start + length].to_vec()).ok()
}

fn find_id(text: &[u8]) -> Option<u32> {
    let at = crate::canned::id_offset(text)?;
    std::str::from_utf8(text.get(at..at + 7)?)
        .ok()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_an_answer_in_pieces_show_an_id_at_either_end() {
        let long = "x".repeat(5_000);
        for text in [
            format!(r#"{{"id":1000007,"result":{{"text":"{long}"}}}}"#),
            format!(r#"{{"result":{{"text":"{long}"}},"id":1000007}}"#),
        ] {
            let mut ends = AnswerEnds::default();
            for piece in text.as_bytes().chunks(700) {
                ends.push(piece);
            }
            assert_eq!(ends.id(), Some(1_000_007));
            assert!(ends.is_whole(AnswerSize::Small));
        }
    }
}
