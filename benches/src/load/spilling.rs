//! Calls of some sessions next to another whose large results are kept in files.

use std::time::Instant;

use anyhow::{Result, bail};

use super::http::{self, HttpLoadClient, LoadSession};
use super::{LoadCall, LoadPlan, LoadTarget, Measurement, patience, within};
use crate::canned::AnswerSize;

/// A session next to those that are measured. It makes its call once before they begin, so that what only the first call
/// costs, at the server too, is not theirs.
#[derive(Clone, Copy)]
pub struct OtherSession<'a> {
    pub call: &'a LoadCall,
    /// How large the answers are when they leave the server.
    pub size: AnswerSize,
    pub habit: OtherHabit,
}

/// What the other session does during the measurement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OtherHabit {
    /// Nothing.
    Rests,
    /// It makes its call again and again.
    Calls,
}

/// Measures `calls` as `measure_calls` does, next to one more session.
pub fn measure_calls_next_to(
    other: OtherSession<'_>,
    target: &LoadTarget,
    load: &LoadPlan,
    calls: &[LoadCall],
) -> Result<Measurement> {
    let limit = load.limit() + patience(other.size);
    within(limit, async {
        let end = Instant::now() + limit;
        let session = LoadSession::open(target, load.era).await?;
        let mut client = HttpLoadClient::of_session(session, target, load.era, other.call)?;
        client.repeat(end, 1).await?;
        let measuring = http::run(target, load, calls);
        if other.habit == OtherHabit::Rests {
            return measuring.await;
        }
        tokio::select! {
            measured = measuring => measured,
            ended = client.repeat(end, u64::MAX) => match ended {
                Ok(_) => bail!("the other session ended before the measurement"),
                Err(error) => Err(error.context("the other session failed")),
            },
        }
    })
}
