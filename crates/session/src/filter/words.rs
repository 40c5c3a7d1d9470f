//! Plain words: every one must occur somewhere in a message, in any case.
//!
//! "Somewhere" is the method, the name (tool, prompt, resource), of an answer those of the request it answers, the JSON-RPC
//! id, or the body, as it was sent and with its escapes resolved: whether a peer writes `ü` or `\\u00fc`, `/` or `\\/` does not matter. A word never matches the record's own
//! envelope.

mod escapes;

use super::MessageFacts;
use crate::index::Row;
use crate::{SessionRecord, line_members};
use escapes::{may_hide, resolved};
use mcp_proxy_wire::Kind;
use std::cell::OnceCell;

/// Words that must all occur.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Words {
    /// In lower case.
    words: Vec<String>,
}

/// Bytes that words are looked for in.
struct SearchText<'a> {
    sent: &'a [u8],
    /// The same without escapes, once a word was not found and if there are any.
    read: OnceCell<Option<Vec<u8>>>,
}

impl Words {
    /// Splits `text` at white space.
    pub(super) fn new(text: &str) -> Words {
        Words {
            words: text.split_whitespace().map(str::to_lowercase).collect(),
        }
    }

    /// The words that the row itself does not answer.
    pub(super) fn left_after_row<'w>(&'w self, session: &SessionRecord, row: &Row) -> Vec<&'w str> {
        // The peer of a request is its answer, whose words are its own.
        let asked = match row.kind() {
            Kind::Response | Kind::Error => row.peer().and_then(|peer| session.row(peer)),
            _ => None,
        };
        let shown = [Some(row), asked].into_iter().flatten();
        let shown: Vec<&str> = shown
            .flat_map(|row| [session.method(row), session.name(row)])
            .flatten()
            .collect();
        let left = |word: &&String| !shown.iter().any(|text| contains(text.as_bytes(), word));
        self.words.iter().filter(left).map(String::as_str).collect()
    }

    /// Whether each occurs in one of these.
    pub(super) fn are_in(&self, searched: &[&[u8]]) -> bool {
        let searched: Vec<_> = searched
            .iter()
            .map(|bytes| SearchText::new(bytes))
            .collect();
        self.are_all_in(&searched)
    }

    /// The same as for a recorded message. All but the bytes is in the bytes, but for escapes.
    pub(super) fn are_in_facts(&self, facts: &MessageFacts<'_>) -> bool {
        let message = facts.message;
        let mut searched = vec![SearchText::new(message.raw())];
        if self.are_all_in(&searched) {
            return true;
        }
        let method = message.method().unwrap_or_default();
        let name = facts.own_name().unwrap_or_default();
        searched.extend([method.as_bytes(), name.as_bytes()].map(SearchText::new));
        if let Some(asked) = &facts.request {
            let asked = [asked.method, asked.name].into_iter().flatten();
            searched.extend(asked.map(|text| SearchText::new(text.as_bytes())));
        }
        self.are_all_in(&searched)
    }

    fn are_all_in(&self, searched: &[SearchText<'_>]) -> bool {
        let is_in = |word: &String| searched.iter().any(|bytes| bytes.have(word));
        self.words.iter().all(is_in)
    }
}

/// Whether each occurs in the message that a record line holds.
pub(super) fn are_in_line(words: &[&str], line: &[u8]) -> bool {
    let mut searched: Vec<SearchText<'_>> = Vec::with_capacity(4);
    let mut members = line_members::LineMembers::new(line);
    while let Some(key) = members.next_key() {
        if matches!(key, b"raw" | b"raw_text" | b"raw_b64") {
            searched.extend(members.last_value().map(SearchText::new));
            break;
        }
        let Some(value) = members.value() else { break };
        match key {
            b"jsonrpc_id" | b"client_id" | b"method" | b"name" => {
                searched.push(SearchText::new(value))
            }
            _ => {}
        }
    }
    let is_in = |word: &&str| searched.iter().any(|bytes| bytes.have(word));
    words.iter().all(is_in)
}

impl<'a> SearchText<'a> {
    fn new(sent: &'a [u8]) -> SearchText<'a> {
        SearchText {
            sent,
            read: OnceCell::new(),
        }
    }

    fn have(&self, word: &str) -> bool {
        let read = || self.read.get_or_init(|| resolved(self.sent)).as_deref();
        contains(self.sent, word)
            || (may_hide(self.sent, word) && read().is_some_and(|read| contains(read, word)))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn escaped_letters_are_letters() {
        let words = Words::new("grüße 😀");
        assert!(words.are_in(&[br#"{"text":"Gr\u00fc\u00DFe \ud83d\ude00"}"#]));
        assert!(words.are_in(&["{\"text\":\"Gr\\u00fcße 😀\"}".as_bytes()]));
        // A backslash of its own, and one thing here and another there.
        assert!(!words.are_in(&[br#"{"text":"Gr\\u00fc\\u00dfe \ud83d\ude00"}"#]));
        assert!(!words.are_in(&[br#"{"text":"Gru\u00dfe \ud83d\ude00"}"#]));
        assert!(Words::new("<b>").are_in(&[br#""\u003cb\u003e""#]));
        assert!(Words::new(r"\u003c").are_in(&[br#""\u003cb""#]));
    }

    #[test]
    fn escaped_marks_are_marks() {
        let body = br#"{"t":"a\/b q\"uo back\\slash tab\there"}"#;
        for word in [
            "a/b",
            "q\"uo",
            r"back\slash",
            r"a\/b",
            r"back\\slash",
            "here",
        ] {
            assert!(Words::new(word).are_in(&[body]), "{word}");
        }
        for word in [r"back\\\slash", "q'uo", "a//b"] {
            assert!(!Words::new(word).are_in(&[body]), "{word}");
        }
    }
}
