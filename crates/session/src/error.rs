//! The crate's one error: what was being done, to which file, and why it failed.
//!
//! Every failure here is ours or the disk's; a peer's bad message is data and never an error.

use crate::OLDEST_FORMAT;
use crate::lines::LONGEST_HEADER;
use std::io;
use std::path::{Path, PathBuf};

/// What went wrong with a record, an export or an import.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused something.
    #[error("cannot {doing} {path}")]
    Io {
        /// What was being done, as a verb: "write to", "open".
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// Writing an export to its destination failed.
    #[error("cannot write the export")]
    Output(#[source] io::Error),
    /// The file does not begin with a session header.
    #[error("{path} is not a session record: {why}")]
    NotARecord {
        /// The file.
        path: PathBuf,
        /// What its first line looks like.
        why: String,
    },
    /// The record has another format than this build reads.
    #[error(
        "{path} has record format {format}, this build reads formats {OLDEST_FORMAT} and {supported}"
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// The format it states.
        format: u64,
        /// The format we read.
        supported: u32,
    },
    /// A running proxy holds the record.
    #[error("{path} is being written by a running proxy")]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// A line that the index points at is no longer what it was.
    #[error("line at byte {offset} of {path} is damaged: {why}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the line starts.
        offset: u64,
        /// What is wrong with it.
        why: String,
    },
    /// There is no row with this number.
    #[error("message number {0} does not exist")]
    NoSuchRow(u64),
    /// A filter's program had to be stopped.
    #[error("the filter `{0}` was stopped: on one message it takes too long")]
    FilterStopped(String),
    /// A file given to `import` cannot be understood.
    #[error("cannot import {path}: {why}")]
    Import {
        /// The file.
        path: PathBuf,
        /// What is missing or wrong, and where.
        why: String,
    },
    /// No place for records: neither `XDG_STATE_HOME` nor `HOME` is set.
    #[error("no state directory: set HOME or XDG_STATE_HOME, or name a file with --session-file")]
    NoStateDirectory,
}

impl Error {
    /// An [`Error::Io`] for `path`.
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Error {
        Error::Io {
            doing,
            path: path.to_path_buf(),
            source,
        }
    }

    /// Why a file could not be opened as a record: a pipe or a device cannot be one.
    pub(crate) fn open(path: &Path, source: io::Error) -> Error {
        match source.kind() {
            io::ErrorKind::InvalidInput => Error::NotARecord {
                path: path.to_path_buf(),
                why: source.to_string(),
            },
            _ => Error::io("open", path, source),
        }
    }

    /// A file that has no line which could be a header.
    pub(crate) fn without_header(path: &Path) -> Error {
        Error::NotARecord {
            path: path.to_path_buf(),
            why: match std::fs::metadata(path).is_ok_and(|facts| facts.len() > LONGEST_HEADER) {
                true => "its first line is longer than 16 MiB".to_owned(),
                false => "it has no whole line".to_owned(),
            },
        }
    }

    /// The whole chain of causes on one line, for people.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(inner) = cause {
            text.push_str(": ");
            text.push_str(&inner.to_string());
            cause = inner.source();
        }
        text
    }
}
