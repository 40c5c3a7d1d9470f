//! What a jq filter makes of a file.

use bytes::Bytes;
use mcp_proxy_session::{JqAnswer, JqRoom};

use super::{PartText, ReadableFile};
use crate::jq_worker::JqRunner;
use crate::{ReadFacts, ReadLimit, SpillError};

/// The most bytes of an output that is used as a value.
const LARGEST_VALUE: usize = 64 << 20;
/// A broken filter is quoted in its error, which should stay short.
const LONGEST_FILTER: usize = 4096;

impl ReadableFile {
    /// The outputs of `filter`, one on each line.
    pub(super) fn jq(
        &self,
        filter: &str,
        limit: ReadLimit,
        runner: &JqRunner,
    ) -> Result<PartText, SpillError> {
        let (_, json) = self.compact_json("op='jq'")?.ok_or(SpillError::NotJson)?;
        let room = JqRoom {
            bytes: limit.get(),
            values: usize::MAX,
        };
        let answer = run(filter, json.into(), room, runner)?;
        let mut text = answer.values.join("\n");
        if answer.truncated {
            let count = answer.values.len();
            text.push_str(&format!(
                "\n[TRUNCATED after {count} values. Use a filter that gives less, or a larger maxBytes.]"
            ));
        }
        Ok(PartText {
            text: text.into_bytes(),
            truncated: answer.truncated,
            facts: ReadFacts::Outputs {
                output_count: answer.values.len() as u64,
            },
        })
    }
}

/// The value that a filter makes of a document, if it is one.
pub(super) fn one_output(
    filter: &str,
    document: Bytes,
    runner: &JqRunner,
) -> Result<Bytes, SpillError> {
    let room = JqRoom {
        bytes: LARGEST_VALUE,
        values: 2,
    };
    let answer = run(filter, document, room, runner)?;
    let mut values = answer.values.into_iter();
    match (values.next(), values.next()) {
        (Some(value), None) if !answer.truncated => Ok(value.into()),
        (None, None) if answer.truncated => Err(SpillError::TooLarge {
            operation: "'$resultFile'",
            size: LARGEST_VALUE as u64 + 1,
            limit: LARGEST_VALUE as u64,
        }),
        (first, _) => Err(SpillError::NotOneValue {
            several: first.is_some(),
        }),
    }
}

fn run(
    filter: &str,
    document: Bytes,
    room: JqRoom,
    runner: &JqRunner,
) -> Result<JqAnswer, SpillError> {
    if filter.len() > LONGEST_FILTER {
        let text = format!("it is longer than {LONGEST_FILTER} bytes");
        return Err(SpillError::BadFilter(text));
    }
    runner.run(filter, document, room)
}
