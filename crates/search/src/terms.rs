//! Terms: the stems of words, and phrases that mean one thing. Documents and queries are cut into terms in the same way.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::stemmer::stem;
use crate::words::for_each_word;

/// Stands between the stems of a phrase.
pub(crate) const PHRASE_JOINT: &str = " ";

/// Words that say nothing about what a tool does, sorted.
const STOP_WORDS: &[&str] = &[
    "a", "about", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "being",
    "but", "by", "can", "could", "did", "do", "does", "doesn", "doing", "don", "each", "either",
    "for", "from", "had", "has", "have", "having", "he", "her", "him", "his", "how", "i", "if",
    "in", "into", "is", "isn", "it", "its", "itself", "just", "let", "like", "may", "me", "might",
    "mine", "must", "my", "need", "needs", "no", "nor", "not", "of", "on", "onto", "or", "other",
    "our", "ours", "out", "please", "shall", "she", "should", "so", "some", "such", "than", "that",
    "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "too", "tool",
    "tools", "upon", "us", "very", "via", "want", "wants", "was", "we", "were", "what", "when",
    "where", "whether", "which", "while", "who", "whose", "why", "will", "with", "would", "you",
    "your",
];

/// A term without its text. Terms are few, so two texts with one hash do not occur in practice, and would only rank worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TermHash(pub(crate) u64);

impl TermHash {
    pub(crate) fn of(term: &str) -> TermHash {
        let mut hasher = FxHasher::default();
        hasher.write(term.as_bytes());
        TermHash(hasher.finish())
    }
}

/// Whether a lower-case word is left out of indexes and queries.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// The stems of a text's words, without stop words.
pub(crate) fn stems_of(text: &str) -> Vec<String> {
    let mut stems = Vec::new();
    for_each_word(text, |word| {
        if !is_stop_word(word) {
            stems.push(stem(word));
        }
    });
    stems
}

#[cfg(test)]
mod tests {
    use super::{STOP_WORDS, stems_of};

    #[test]
    fn the_list_is_sorted() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn stop_words_are_left_out() {
        assert_eq!(stems_of("What are the issues?"), ["issu"]);
    }
}
