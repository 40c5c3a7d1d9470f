//! What a jq filter makes of a file.

use std::time::Duration;

use mcp_proxy_session::{Budget, JqQuery};

use super::{PartText, ReadableFile};
use crate::{ReadFacts, ReadLimit, SpillError};

/// To make values of a file of the largest size.
const LOADING: Budget = Budget {
    time: Duration::from_secs(10),
};
const BUDGET: Budget = Budget {
    time: Duration::from_secs(2),
};
/// A broken filter is quoted in its error, which should stay short.
const LONGEST_FILTER: usize = 4096;

impl ReadableFile {
    /// The outputs of `filter`, one on each line.
    pub(super) fn jq(&self, filter: &str, limit: ReadLimit) -> Result<PartText, SpillError> {
        let failed = |error: String| SpillError::BadFilter(error);
        if filter.len() > LONGEST_FILTER {
            let text = format!("it is longer than {LONGEST_FILTER} bytes");
            return Err(SpillError::BadFilter(text));
        }
        let query = JqQuery::parse(filter).map_err(|error| failed(error.to_string()))?;
        let (_, json) = self.compact_json("op='jq'")?.ok_or(SpillError::NotJson)?;
        let answer = query
            .run(json.into(), LOADING, BUDGET, limit.get())
            .map_err(|error| failed(error.to_string()))?;
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
