//! What reading a part of a result gives.

use crate::spilled_result::estimated_tokens;

/// The answer to a [`crate::ReadRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadAnswer {
    /// The content, which `Stat` has none of.
    pub text: Option<String>,
    /// The size of the whole file.
    pub byte_size: u64,
    /// The number of lines of the whole file.
    pub total_lines: u64,
    /// Whether something that was asked for did not fit.
    pub truncated: bool,
    /// What else is known, which depends on the request.
    pub facts: ReadFacts,
}

/// What the answer to one kind of request tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFacts {
    /// Of `Stat` and `Read`: nothing else.
    File,
    /// Of `Head`, `Tail` and `Slice`: the lines in the text.
    Lines {
        /// The first one, counted from 1.
        from_line: u64,
        /// The last one. It is less than the first if there are none.
        to_line: u64,
    },
    /// Of `Grep`.
    Matches {
        /// How many lines of the file match.
        match_count: u64,
        /// How many matches they have in all.
        occurrence_count: u64,
        /// How many of the lines are in the text.
        returned_matches: u64,
        /// How the pattern was understood.
        reading: PatternReading,
    },
    /// Of `Jq`.
    Outputs {
        /// How many values are in the text, one on each line.
        output_count: u64,
    },
}

/// How the pattern of a search was understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternReading {
    /// As the regular expression that it is.
    Regex,
    /// As text, because it is not a valid regular expression.
    Literal,
}

impl ReadAnswer {
    /// About how many tokens the text has; without a text, the whole file.
    pub fn estimated_tokens(&self) -> u64 {
        match &self.text {
            Some(text) => estimated_tokens(text.len() as u64),
            None => estimated_tokens(self.byte_size),
        }
    }
}
