//! The answer to `readresult`.

use bytes::Bytes;
use mcp_proxy_spill::PatternReading;

use super::own_result::{OwnOutcome, estimated_tokens, own_result, push_text_item};
use super::{DispatchAction, ReadResultOperation};
use crate::proxy_tool::ToolWord;
use crate::wording::counted;
use mcp_proxy_wire::json::ObjectWriter;

/// A part of a stored result.
#[derive(Clone, Copy, Debug)]
pub struct ReadResultView<'a> {
    /// The handle, as the caller wrote it.
    pub file: &'a str,
    /// The part, with a note if something was left out. [`ReadResultFacts::Stat`] has none.
    pub text: &'a str,
    /// What is known about it.
    pub facts: ReadResultFacts<'a>,
    /// Whether something was left out.
    pub truncated: bool,
}

/// What is known about a part, for each operation.
#[derive(Clone, Copy, Debug)]
pub enum ReadResultFacts<'a> {
    /// Of `stat`.
    Stat {
        /// The size of the file.
        byte_size: u64,
        /// Its number of lines.
        line_count: u64,
    },
    /// Of `head`.
    Head {
        /// How many lines were asked for.
        lines: u64,
        /// How many the file has.
        total_lines: u64,
    },
    /// Of `tail`.
    Tail {
        /// How many lines were asked for.
        lines: u64,
        /// How many the file has.
        total_lines: u64,
    },
    /// Of `slice`.
    Slice {
        /// The first line that is shown.
        from_line: u64,
        /// The last line that is shown.
        to_line: u64,
        /// How many the file has.
        total_lines: u64,
    },
    /// Of `grep`.
    Grep {
        /// The expression.
        pattern: &'a str,
        /// How many lines match.
        match_count: u64,
        /// How many matches they have in all.
        occurrence_count: u64,
        /// How many of them are shown.
        returned_matches: u64,
        /// How many the file has.
        total_lines: u64,
        /// How the expression was understood.
        reading: PatternReading,
    },
    /// Of `read`.
    Read {
        /// The size of the file.
        byte_size: u64,
        /// Its number of lines.
        total_lines: u64,
    },
    /// Of `jq`.
    Jq {
        /// The filter.
        filter: &'a str,
        /// How many values it gave that are in the text.
        output_count: u64,
        /// The size of the file.
        byte_size: u64,
    },
}

/// The result of a `readresult`.
pub fn render_read_result(view: &ReadResultView<'_>) -> Bytes {
    let mut facts = ObjectWriter::new();
    facts.text("action", DispatchAction::ReadResult.as_str());
    facts.text("op", view.facts.operation().as_str());
    facts.text("resultFile", view.file);
    view.facts.write(&mut facts);
    let mut content = vec![b'['];
    if let ReadResultFacts::Stat { byte_size, .. } = view.facts {
        facts.number("estimatedTokens", estimated_tokens(byte_size));
        let mut text = ObjectWriter::new();
        view.facts.write(&mut text);
        text.number("estimatedTokens", estimated_tokens(byte_size));
        push_text_item(&mut content, &text.finish());
    } else {
        let nothing = view.facts.nothing().filter(|_| view.text.is_empty());
        let text = nothing.as_deref().unwrap_or(view.text);
        facts.number("estimatedTokens", estimated_tokens(text.len() as u64));
        push_text_item(&mut content, text.as_bytes());
    }
    if let Some(note) = view.facts.note() {
        content.push(b',');
        push_text_item(&mut content, note.as_bytes());
    }
    if view.truncated {
        facts.raw("truncated", b"true");
    }
    content.push(b']');
    own_result(&content, facts, OwnOutcome::Done)
}

impl ReadResultFacts<'_> {
    /// What a model has to know to understand the text. Programs compare the text itself, so it is not part of that.
    fn note(&self) -> Option<&'static str> {
        match self {
            ReadResultFacts::Grep {
                reading: PatternReading::Literal,
                ..
            } => Some("The pattern was read literally: it is not a valid regular expression."),
            _ => None,
        }
    }

    /// What stands in place of an empty text, in which a model would see a failure.
    fn nothing(&self) -> Option<String> {
        match *self {
            ReadResultFacts::Jq {
                output_count: 0, ..
            } => Some("(no output)".to_owned()),
            ReadResultFacts::Slice {
                from_line,
                total_lines,
                ..
            } if from_line > total_lines => {
                let lines = usize::try_from(total_lines).unwrap_or(usize::MAX);
                Some(format!(
                    "(no lines: the file has {})",
                    counted(lines, "line")
                ))
            }
            _ => None,
        }
    }

    fn operation(&self) -> ReadResultOperation {
        match self {
            ReadResultFacts::Stat { .. } => ReadResultOperation::Stat,
            ReadResultFacts::Head { .. } => ReadResultOperation::Head,
            ReadResultFacts::Tail { .. } => ReadResultOperation::Tail,
            ReadResultFacts::Slice { .. } => ReadResultOperation::Slice,
            ReadResultFacts::Grep { .. } => ReadResultOperation::Grep,
            ReadResultFacts::Read { .. } => ReadResultOperation::Read,
            ReadResultFacts::Jq { .. } => ReadResultOperation::Jq,
        }
    }

    fn write(&self, facts: &mut ObjectWriter) {
        match *self {
            ReadResultFacts::Stat {
                byte_size,
                line_count,
            } => {
                facts.number("byteSize", byte_size);
                facts.number("lineCount", line_count);
            }
            ReadResultFacts::Head { lines, total_lines }
            | ReadResultFacts::Tail { lines, total_lines } => {
                facts.number("lines", lines);
                facts.number("totalLines", total_lines);
            }
            ReadResultFacts::Slice {
                from_line,
                to_line,
                total_lines,
            } => {
                facts.number("fromLine", from_line);
                facts.number("toLine", to_line);
                facts.number("totalLines", total_lines);
            }
            ReadResultFacts::Grep {
                pattern,
                match_count,
                occurrence_count,
                returned_matches,
                total_lines,
                reading,
            } => {
                facts.text("pattern", pattern);
                facts.number("matchCount", match_count);
                if occurrence_count > match_count {
                    facts.number("occurrenceCount", occurrence_count);
                }
                facts.number("returnedMatches", returned_matches);
                facts.number("totalLines", total_lines);
                if reading == PatternReading::Literal {
                    facts.raw("readLiterally", b"true");
                }
            }
            ReadResultFacts::Read {
                byte_size,
                total_lines,
            } => {
                facts.number("byteSize", byte_size);
                facts.number("totalLines", total_lines);
            }
            ReadResultFacts::Jq {
                filter,
                output_count,
                byte_size,
            } => {
                facts.text("filter", filter);
                facts.number("outputCount", output_count);
                facts.number("byteSize", byte_size);
            }
        }
    }
}
