//! What is told about a result that was spilled.

use std::time::Duration;

/// The form of a stored result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpillFormat {
    /// JSON, laid out in lines.
    Json,
    /// TOON.
    Toon,
    /// Anything else, as it is.
    Text,
}

/// A result that was written to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpilledResult {
    /// What the owner reads it by.
    pub handle: String,
    /// The form of the file. JSON if TOON was asked for and does not pay.
    pub format: SpillFormat,
    /// The size of the file.
    pub byte_size: u64,
    /// How many lines it has.
    pub line_count: u64,
    /// How long it can be read.
    pub kept_for: Duration,
    /// What the outermost value is.
    pub shape: ResultShape,
    /// The first [`PREVIEW_CHARS`] characters: of the compact form for JSON, of the file for anything else.
    pub preview: String,
}

/// The outermost value of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultShape {
    /// An object.
    Object {
        /// Its first keys, at most 20.
        keys: Vec<String>,
        /// How many it has.
        key_count: u64,
    },
    /// An array.
    Array {
        /// How many elements it has.
        length: u64,
    },
    /// Neither.
    Other,
}

/// How many characters of a result are shown. A chain of three calls over large results should cost less than 2 KB in all.
pub const PREVIEW_CHARS: usize = 120;

impl SpillFormat {
    /// The ending of file names.
    pub fn file_extension(self) -> &'static str {
        match self {
            SpillFormat::Json => "json",
            SpillFormat::Toon => "toon",
            SpillFormat::Text => "txt",
        }
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            SpillFormat::Json => "json",
            SpillFormat::Toon => "toon",
            SpillFormat::Text => "text",
        }
    }

    /// The media type of a file.
    pub fn media_type(self) -> &'static str {
        match self {
            SpillFormat::Json => "application/json",
            SpillFormat::Toon => "text/toon",
            SpillFormat::Text => "text/plain",
        }
    }

    /// What a file is by the ending of its name.
    pub(crate) fn of_file(name: &str) -> SpillFormat {
        match name.rsplit_once('.') {
            Some((_, "json")) => SpillFormat::Json,
            Some((_, "toon")) => SpillFormat::Toon,
            _ => SpillFormat::Text,
        }
    }
}

impl SpilledResult {
    /// About how many tokens a model would need for the whole file.
    pub fn estimated_tokens(&self) -> u64 {
        estimated_tokens(self.byte_size)
    }
}

/// Four bytes are about one token.
pub(crate) fn estimated_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}

/// The first characters of a text.
pub(crate) fn preview(text: &[u8]) -> String {
    // No character has more than four bytes.
    let start = &text[..text.len().min(PREVIEW_CHARS * 4)];
    String::from_utf8_lossy(start)
        .chars()
        .take(PREVIEW_CHARS)
        .collect()
}
