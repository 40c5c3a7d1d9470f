//! Which part of a result somebody wants to see.

use crate::read::{MAX_ANSWER, NOTE};

/// How much of a result an answer has. What was cut is said in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimit {
    /// Bytes of the result, if something is cut.
    content: usize,
    /// Bytes of an answer that has all of what was asked for.
    whole: usize,
}

impl ReadLimit {
    /// As much as any answer may have.
    pub const MOST: ReadLimit = ReadLimit::of(MAX_ANSWER - NOTE);

    const fn of(content: usize) -> ReadLimit {
        ReadLimit {
            content,
            whole: content,
        }
    }

    /// This many bytes of the result, if they are not more than [`ReadLimit::MOST`]. Notes about what was cut come on top.
    pub fn bytes(bytes: u64) -> ReadLimit {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        ReadLimit::of(bytes.min(ReadLimit::MOST.content))
    }

    /// This many bytes with all notes about what was cut.
    pub fn with_notes(bytes: u64) -> ReadLimit {
        let whole = ReadLimit::bytes(bytes).whole;
        ReadLimit {
            content: whole.saturating_sub(NOTE),
            whole,
        }
    }

    pub(crate) fn get(self) -> usize {
        self.content
    }

    /// The room for an answer without notes.
    pub(crate) fn whole(self) -> usize {
        self.whole
    }
}

/// One operation on a stored result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadRequest {
    /// Size, number of lines and estimated tokens; no content.
    Stat,
    /// The first lines.
    Head {
        /// How many.
        lines: u64,
    },
    /// The last lines.
    Tail {
        /// How many.
        lines: u64,
    },
    /// Lines from one to another, counted from 1, both included.
    Slice {
        /// The first line; 1 if it is not given.
        from_line: Option<u64>,
        /// The last line; that of the file if it is not given.
        to_line: Option<u64>,
        /// The byte of the first line, counted from 1, that the answer begins with; 1 if it is not given.
        from_column: Option<u64>,
    },
    /// The lines that match a regular expression, case-insensitive.
    Grep {
        /// The expression. One that is not valid is looked for as it is written.
        pattern: String,
        /// How many lines to show before and after each match.
        context: u64,
    },
    /// Everything, as far as it fits.
    Read,
    /// What a jq filter makes of the JSON value.
    Jq {
        /// The filter.
        filter: String,
    },
}
