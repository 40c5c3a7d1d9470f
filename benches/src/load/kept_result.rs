//! A result in a file of the hub, of which parts are read. Only the session that made it can read it.

use std::time::Instant;

use anyhow::{Context, Result};
use tokio::runtime::Runtime;

use super::http::{HttpLoadClient, LoadSession};
use super::{LoadCall, LoadPlan, LoadTarget, MeasuredWindow, Measurement, patience};
use crate::canned::{self, ABSENT_PATTERN, AnswerSize, BenchEra, SCARCE_PATTERN};
use crate::usage;

/// Lines of a slice.
const LINES: usize = 50;

/// The part of a result that is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultPart {
    /// Some lines in the middle.
    Slice,
    /// The lines that match a pattern, which are few.
    ScarceMatches,
    /// The lines that match another, of which there are none.
    NoMatches,
}

/// An open session with a result in a file.
pub struct KeptResult {
    runtime: Runtime,
    target: LoadTarget,
    client: HttpLoadClient,
    file: String,
    size: AnswerSize,
}

impl KeptResult {
    /// Makes `call`, whose result of `size` goes to a file.
    pub fn make(target: &LoadTarget, call: &LoadCall, size: AnswerSize) -> Result<KeptResult> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let making = async {
            let session = LoadSession::open(target, BenchEra::Legacy).await?;
            let mut client = HttpLoadClient::of_session(session, target, BenchEra::Legacy, call)?;
            client.repeat(Instant::now() + patience(size), 1).await?;
            anyhow::Ok(client)
        };
        let mut client = runtime
            .block_on(async { tokio::time::timeout(patience(size), making).await })
            .context("the result does not come")??;
        let answer = client.session.connection.body.take_whole();
        let file = file_of(&String::from_utf8_lossy(&answer))
            .context("the answer does not say where the result is")?;
        Ok(KeptResult {
            runtime,
            target: target.clone(),
            client,
            file,
            size,
        })
    }

    /// Reads `part` again and again.
    pub fn measure(&mut self, part: ResultPart, load: &LoadPlan) -> Result<Measurement> {
        let process = self.target.process;
        let read_usage = || process.map(usage::of_tree).unwrap_or_default();
        let call = part.call(&self.file, self.size);
        let client = &mut self.client;
        client.set_call(&self.target, BenchEra::Legacy, &call)?;
        let reading = async {
            let warm_until = Instant::now() + load.warm_up;
            client.repeat(warm_until, u64::MAX).await?;
            let before = read_usage();
            let start = Instant::now();
            let latencies = client.repeat(start + load.time, u64::MAX).await?;
            let elapsed = start.elapsed();
            let window = MeasuredWindow { latencies, elapsed };
            anyhow::Ok(window.sample(AnswerSize::Small, &before, &read_usage(), true))
        };
        let limit = patience(self.size);
        self.runtime
            .block_on(async { tokio::time::timeout(limit, reading).await })
            .context("a part of the result does not come")?
    }
}

impl ResultPart {
    pub const ALL: [ResultPart; 3] = [
        ResultPart::Slice,
        ResultPart::ScarceMatches,
        ResultPart::NoMatches,
    ];

    fn call(self, file: &str, size: AnswerSize) -> LoadCall {
        let middle = canned::record_count(size.bytes()) / 2;
        let (part, expected) = match self {
            // The first line of the file is the bracket, and lines are counted from 1.
            ResultPart::Slice => (
                format!(
                    r#""op":"slice","fromLine":{},"toLine":{}"#,
                    middle + 2,
                    middle + 1 + LINES
                ),
                canned::record_id(middle),
            ),
            ResultPart::ScarceMatches => (
                format!(r#""op":"grep","pattern":"{SCARCE_PATTERN}""#),
                format!(r#""matchCount":{},"#, canned::scarce_count(size.bytes())),
            ),
            ResultPart::NoMatches => (
                format!(r#""op":"grep","pattern":"{ABSENT_PATTERN}""#),
                r#""matchCount":0,"#.to_owned(),
            ),
        };
        LoadCall::of_dispatcher(canned::read_result(file, &part), expected)
    }
}

fn file_of(answer: &str) -> Option<String> {
    let (_, rest) = answer.split_once(canned::IN_A_FILE)?;
    let (handle, _) = rest.split_once('"')?;
    Some(format!("spill:{handle}"))
}
