//! Filtering by plain words: every word must occur somewhere in a message, in any case.
//!
//! "Somewhere" is the method, the name (tool, prompt, resource), the JSON-RPC id, or the body as it was sent; a word never
//! matches the record's own envelope. Escapes in JSON strings are not resolved. Large bodies are searched in their side files.

use crate::index::Row;
use crate::lines::Lines;
use crate::{Error, Session, envelope};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

/// Words that must all occur.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// In lower case.
    words: Vec<String>,
}

impl Filter {
    /// Splits `text` at white space.
    pub fn parse(text: &str) -> Result<Filter, FilterError> {
        Ok(Filter {
            words: text.split_whitespace().map(str::to_lowercase).collect(),
        })
    }

    /// Whether every message matches.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether one message matches.
    pub fn matches(&self, session: &Session, row: &Row) -> Result<bool, Error> {
        let left = self.left_after_row(session, row);
        Ok(left.is_empty() || self.matches_line(session, &left, &session.row_line(row)?))
    }

    /// The rows from `from` on that match, read in one pass over the record. `found` may stop it.
    pub fn search(
        &self,
        session: &Session,
        from: usize,
        mut found: impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let Some(first) = session.row(from) else {
            return Ok(());
        };
        let failed = |error| Error::io("read", session.path(), error);
        let mut lines = Lines::new(session.file(), first.offset(), session.covered());
        let mut next = from;
        while let (Some(row), Some(line)) = (session.row(next), lines.next_line().map_err(failed)?)
        {
            if line.offset != row.offset() {
                continue;
            }
            let left = self.left_after_row(session, row);
            if (left.is_empty() || self.matches_line(session, &left, line.bytes))
                && found(next).is_break()
            {
                break;
            }
            next += 1;
        }
        Ok(())
    }

    /// The words that the row itself does not answer.
    fn left_after_row(&self, session: &Session, row: &Row) -> Vec<&str> {
        let method = session.method(row).unwrap_or_default();
        let name = session.name(row).unwrap_or_default();
        let left =
            |word: &&String| !contains(method.as_bytes(), word) && !contains(name.as_bytes(), word);
        self.words.iter().filter(left).map(String::as_str).collect()
    }

    fn matches_line(&self, session: &Session, words: &[&str], line: &[u8]) -> bool {
        let mut searched: Vec<&[u8]> = Vec::with_capacity(4);
        let mut side = None;
        let mut members = envelope::Members::new(line);
        while let Some(key) = members.next_key() {
            if matches!(key, b"raw" | b"raw_text" | b"raw_b64") {
                searched.extend(members.last_value());
                break;
            }
            let Some(value) = members.value() else { break };
            match key {
                b"jsonrpc_id" | b"method" | b"name" => searched.push(value),
                b"raw_ref" => side = side_name(value),
                _ => {}
            }
        }
        words.iter().all(|word| {
            searched.iter().any(|bytes| contains(bytes, word))
                || side
                    .as_ref()
                    .is_some_and(|name| file_contains(&session.folder().join(name), word))
        })
    }
}

fn side_name(value: &[u8]) -> Option<String> {
    let record = crate::Record {
        offset: 0,
        line: value.to_vec().into(),
    };
    record
        .member::<String>("file")
        .filter(|name| !name.starts_with('.') && !name.contains('/'))
}

/// Whether `word`, in lower case, occurs in `bytes` in any case.
fn contains(bytes: &[u8], word: &str) -> bool {
    if !word.is_ascii() {
        return String::from_utf8_lossy(bytes).to_lowercase().contains(word);
    }
    let word = word.as_bytes();
    let Some(first) = word.first() else {
        return true;
    };
    let Some(last_start) = bytes.len().checked_sub(word.len()) else {
        return false;
    };
    memchr::memchr2_iter(*first, first.to_ascii_uppercase(), &bytes[..=last_start])
        .any(|at| bytes[at..at + word.len()].eq_ignore_ascii_case(word))
}

fn file_contains(path: &Path, word: &str) -> bool {
    let Ok(mut file) = std::fs::File::open(path) else {
        return false;
    };
    let mut buffer = vec![0; 1 << 20];
    let mut kept = 0;
    loop {
        match file.read(&mut buffer[kept..]) {
            Ok(0) | Err(_) => return false,
            Ok(read) => {
                let end = kept + read;
                if contains(&buffer[..end], word) {
                    return true;
                }
                // A word may lie across two reads.
                kept = word.len().saturating_sub(1).min(end).min(buffer.len() / 2);
                buffer.copy_within(end - kept..end, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn words_match_in_any_case() {
        assert!(contains(b"Tools/CALL", "tools/call"));
        assert!(contains("GRÜN".as_bytes(), "grün"));
        assert!(contains(b"x", ""));
        assert!(!contains(b"", "x"));
        assert!(!contains(b"ab", "abc"));
        assert!(contains(b"aab", "ab"));
    }

    #[test]
    fn a_word_across_two_reads_of_a_side_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut body = vec![b'.'; (1 << 20) - 3];
        body.extend_from_slice(b"neeDLE....");
        file.write_all(&body).unwrap();
        assert!(file_contains(file.path(), "needle"));
        assert!(!file_contains(file.path(), "needles"));
    }
}

/// stub
#[derive(Debug, thiserror::Error)]
#[error("bad filter")]
pub struct FilterError;
/// stub
pub struct Facts<'a> {
    pub sequence: u64,
    pub direction: mcp_proxy_wire::Direction,
    pub transport: mcp_proxy_wire::Transport,
    pub connection: u32,
    pub exchange: u64,
    pub time: std::time::SystemTime,
    pub message: &'a mcp_proxy_wire::Message,
    pub asked: Option<AskedFacts<'a>>,
}
/// stub
pub struct AskedFacts<'a> {
    pub sequence: u64,
    pub method: Option<&'a str>,
    pub name: Option<&'a str>,
    pub latency: std::time::Duration,
}
impl<'a> Facts<'a> {
    pub fn new(
        message: &'a mcp_proxy_wire::Message,
        direction: mcp_proxy_wire::Direction,
    ) -> Facts<'a> {
        Facts {
            sequence: 0,
            direction,
            transport: mcp_proxy_wire::Transport::Stdio,
            connection: 0,
            exchange: 0,
            time: std::time::SystemTime::UNIX_EPOCH,
            message,
            asked: None,
        }
    }
}
impl Filter {
    pub fn matches_facts(&self, facts: &Facts<'_>) -> bool {
        self.words.iter().all(|w| contains(facts.message.raw(), w))
    }
}
