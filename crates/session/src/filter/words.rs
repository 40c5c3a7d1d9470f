//! Plain words: every one must occur somewhere in a message, in any case.
//!
//! "Somewhere" is the method, the name (tool, prompt, resource), the JSON-RPC id, or the body as it was sent; a word never
//! matches the record's own envelope. Escapes in JSON strings are not resolved. Large bodies are searched in their side files.

use super::Facts;
use super::recorded::side_name;
use crate::index::Row;
use crate::{Session, envelope};
use std::io::Read;
use std::path::Path;

/// Words that must all occur.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Words {
    /// In lower case.
    words: Vec<String>,
}

impl Words {
    /// Splits `text` at white space.
    pub(super) fn new(text: &str) -> Words {
        Words {
            words: text.split_whitespace().map(str::to_lowercase).collect(),
        }
    }

    /// The words that the row itself does not answer.
    pub(super) fn left_after_row<'w>(&'w self, session: &Session, row: &Row) -> Vec<&'w str> {
        let method = session.method(row).unwrap_or_default();
        let name = session.name(row).unwrap_or_default();
        let left =
            |word: &&String| !contains(method.as_bytes(), word) && !contains(name.as_bytes(), word);
        self.words.iter().filter(left).map(String::as_str).collect()
    }

    /// Whether each occurs in one of these.
    pub(super) fn are_in(&self, searched: &[&[u8]]) -> bool {
        let is_in = |word: &String| searched.iter().any(|bytes| contains(bytes, word));
        self.words.iter().all(is_in)
    }

    /// The same as for a recorded message. All but the bytes is in the bytes, but for escapes.
    pub(super) fn are_in_facts(&self, facts: &Facts<'_>) -> bool {
        let message = facts.message;
        if self.are_in(&[message.raw()]) {
            return true;
        }
        let method = message.method().unwrap_or_default();
        let name = facts.own_name().unwrap_or_default();
        self.are_in(&[message.raw(), method.as_bytes(), name.as_bytes()])
    }
}

/// Whether each occurs in the message that a record line holds.
pub(super) fn are_in_line(session: &Session, words: &[&str], line: &[u8]) -> bool {
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
