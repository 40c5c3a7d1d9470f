//! Reading parts of a file. Every answer is cut at a fixed size, and only what is needed for it is read.

mod grep;
mod jq;
mod lines;
mod pieces;

use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::Arc;

use bytes::Bytes;
use mcp_proxy_wire::json::{self, JsonRoot};

use crate::jq_worker::JqRunner;
use crate::line_index::{LineIndex, char_boundary};
use crate::store::StoredFile;
use crate::{ReadAnswer, ReadFacts, ReadLimit, ReadRequest, SpillError, SpillFormat, toon};
use lines::LineRange;

/// No answer has more bytes.
pub const MAX_ANSWER: usize = 256 << 10;
/// What is left of an answer for a note about its end.
pub(crate) const NOTE: usize = 512;
/// JSON that is larger is not used whole. White space between its tokens does not count.
const LARGEST_JSON: u64 = 64 << 20;
/// Files that are larger are not read whole. Short values, each on a line, are several times as long as they are without lines.
const LARGEST_WHOLE: u64 = 4 * LARGEST_JSON;
/// Files that are larger are not read at all if they are not ours, for their lines have to be counted first.
const LARGEST_OUTSIDE: u64 = 1 << 30;

/// An open file. It can be read even if it is removed meanwhile.
#[derive(Debug)]
pub(crate) struct ReadableFile {
    file: File,
    pub(crate) format: SpillFormat,
    byte_size: u64,
    /// Of a file of the store, the lines are known.
    stored: Option<Arc<StoredFile>>,
}

/// The text of an answer, before the facts about the file are added.
#[derive(Debug, PartialEq, Eq)]
struct PartText {
    text: Vec<u8>,
    truncated: bool,
    facts: ReadFacts,
}

impl ReadableFile {
    pub(crate) fn stored(file: File, stored: Arc<StoredFile>) -> ReadableFile {
        ReadableFile {
            file,
            format: stored.format,
            byte_size: stored.index.byte_size(),
            stored: Some(stored),
        }
    }

    /// A file that is not of the store.
    pub(crate) fn outside(file: File, format: SpillFormat, byte_size: u64) -> ReadableFile {
        ReadableFile {
            file,
            format,
            byte_size,
            stored: None,
        }
    }

    pub(crate) fn answer(
        &self,
        request: &ReadRequest,
        limit: ReadLimit,
        runner: &JqRunner,
    ) -> Result<ReadAnswer, SpillError> {
        let counted;
        let index = match &self.stored {
            Some(stored) => &stored.index,
            None => {
                check_size("readresult", self.byte_size, LARGEST_OUTSIDE)?;
                counted = LineIndex::read((&self.file).take(self.byte_size))?;
                &counted
            }
        };
        let part = match request {
            ReadRequest::Stat => None,
            ReadRequest::Head { lines } => {
                Some(self.slice(index, LineRange::new(1, *lines), limit)?)
            }
            ReadRequest::Tail { lines } => {
                let before = index.line_count().saturating_sub(*lines);
                Some(self.slice(index, LineRange::new(before + 1, u64::MAX), limit)?)
            }
            ReadRequest::Slice {
                from_line,
                to_line,
                from_column,
            } => {
                let (from, to) = (from_line.unwrap_or(1), to_line.unwrap_or(u64::MAX));
                let range = LineRange {
                    from_column: from_column.unwrap_or(1),
                    ..LineRange::new(from, to)
                };
                Some(self.slice(index, range, limit)?)
            }
            ReadRequest::Grep { pattern, context } => {
                let size = index.byte_size();
                Some(grep::grep(&self.file, size, pattern, *context, limit)?)
            }
            ReadRequest::Read => Some(self.start(index, limit)?),
            ReadRequest::Jq { filter } => Some(self.jq(filter, limit, runner)?),
        };
        let facts = part.as_ref().map_or(ReadFacts::File, |part| part.facts);
        let mut truncated = part.as_ref().is_some_and(|part| part.truncated);
        let text = part.map(|part| {
            let text = into_text(part.text);
            truncated |= text.len() > MAX_ANSWER;
            text[..char_boundary(text.as_bytes(), MAX_ANSWER)].to_owned()
        });
        Ok(ReadAnswer {
            text,
            byte_size: index.byte_size(),
            total_lines: index.line_count(),
            truncated,
            facts,
        })
    }

    /// The whole file.
    pub(crate) fn contents(&self) -> io::Result<Vec<u8>> {
        let mut contents = Vec::with_capacity(usize::try_from(self.byte_size).unwrap_or(0));
        // Its lines may have been counted before.
        (&self.file).rewind()?;
        (&self.file)
            .take(self.byte_size)
            .read_to_end(&mut contents)?;
        Ok(contents)
    }

    /// The file as one JSON value, or the one output of a filter for it. A text becomes a string.
    pub(crate) fn value(
        &self,
        filter: Option<&str>,
        runner: &JqRunner,
    ) -> Result<Bytes, SpillError> {
        const OPERATION: &str = "'$resultFile'";
        let value = match self.format {
            SpillFormat::Json | SpillFormat::Toon => {
                let json = self.compact_json(OPERATION)?;
                json.ok_or(SpillError::NotValue)?.1
            }
            SpillFormat::Text => {
                check_size(OPERATION, self.byte_size, LARGEST_JSON)?;
                let text = into_text(self.contents()?);
                serde_json::to_vec(&text).map_err(io::Error::from)?
            }
        };
        match filter {
            None => Ok(value.into()),
            Some(filter) => jq::one_output(filter, value.into(), runner),
        }
    }

    /// The file as compact JSON, and what it is. Nothing if it is neither JSON nor TOON.
    pub(crate) fn compact_json(
        &self,
        operation: &'static str,
    ) -> Result<Option<(JsonRoot, Vec<u8>)>, SpillError> {
        check_size(operation, self.byte_size, LARGEST_WHOLE)?;
        let Ok(mut text) = String::from_utf8(self.contents()?) else {
            return Ok(None);
        };
        if self.format == SpillFormat::Toon {
            match toon::decode(&text) {
                // serde_json writes nothing else.
                Some(json) => text = String::from_utf8(json).unwrap_or_default(),
                None => return Ok(None),
            }
        }
        let Some(root) = json::check(text.as_bytes()) else {
            return Ok(None);
        };
        let json = json::compact(text.as_bytes());
        check_size(operation, json.len() as u64, LARGEST_JSON)?;
        Ok(Some((root, json)))
    }
}

fn check_size(operation: &'static str, size: u64, limit: u64) -> Result<(), SpillError> {
    match size <= limit {
        true => Ok(()),
        false => Err(SpillError::TooLarge {
            operation,
            size,
            limit,
        }),
    }
}

/// Files that are not ours may be anything.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
