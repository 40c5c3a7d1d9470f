//! All terms of an index and how many documents have each. It is updated from the segments that come and go.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::segment::SearchSegment;
use crate::terms::TermHash;
use crate::typos::{edit_distance, letters_of, may_be_close};

/// All terms of an index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vocabulary {
    documents: u32,
    terms: FxHashMap<TermHash, TermEntry>,
    /// The texts of terms.
    words: Vec<Word>,
}

#[derive(Clone, Copy, Debug)]
struct TermEntry {
    documents: u32,
}

#[derive(Clone, Debug)]
struct Word {
    text: Arc<str>,
    letters: u32,
}

impl Vocabulary {
    pub(crate) fn add(&mut self, segment: &SearchSegment) {
        self.documents += segment.len() as u32;
        for (text, documents) in segment.terms() {
            let words = &mut self.words;
            let entry = self.terms.entry(TermHash::of(text)).or_insert_with(|| {
                words.push(Word {
                    text: Arc::clone(text),
                    letters: letters_of(text),
                });
                TermEntry { documents: 0 }
            });
            entry.documents += documents;
        }
    }

    /// Undoes [`Vocabulary::add`].
    pub(crate) fn remove(&mut self, segment: &SearchSegment) {
        self.documents = self.documents.saturating_sub(segment.len() as u32);
        let mut is_any_gone = false;
        for (text, documents) in segment.terms() {
            let term = TermHash::of(text);
            let Some(entry) = self.terms.get_mut(&term) else {
                continue;
            };
            entry.documents = entry.documents.saturating_sub(documents);
            if entry.documents == 0 {
                self.terms.remove(&term);
                is_any_gone = true;
            }
        }
        if is_any_gone {
            let terms = &self.terms;
            self.words
                .retain(|word| terms.contains_key(&TermHash::of(&word.text)));
        }
    }

    /// Without the texts of terms, which the segments own.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.terms.capacity() * (size_of::<(TermHash, TermEntry)>() + 1)
            + self.words.capacity() * size_of::<Word>()
    }

    pub(crate) fn contains(&self, term: TermHash) -> bool {
        self.document_count(term) > 0
    }

    /// How much a term tells documents apart: zero, if none has it.
    pub(crate) fn rarity(&self, term: TermHash) -> f32 {
        let with = self.document_count(term) as f32;
        if with == 0.0 {
            return 0.0;
        }
        (1.0 + (self.documents as f32 - with + 0.5) / (with + 0.5)).ln()
    }

    /// Terms that a mistyped stem may have been meant for, with the number of edits.
    pub(crate) fn similar(&self, stem: &str, max_edits: usize) -> Vec<(Arc<str>, usize)> {
        let letters = letters_of(stem);
        let mut found = Vec::new();
        for word in &self.words {
            if may_be_close(word.letters, letters, max_edits)
                && let Some(edits) = edit_distance(stem, &word.text, max_edits)
                && self.contains(TermHash::of(&word.text))
            {
                found.push((Arc::clone(&word.text), edits));
            }
        }
        found
    }

    /// Terms that begin with this text.
    pub(crate) fn beginning_with(&self, beginning: &str) -> Vec<Arc<str>> {
        let words = self.words.iter().map(|word| &word.text);
        words
            .filter(|text| text.starts_with(beginning) && self.contains(TermHash::of(text)))
            .cloned()
            .collect()
    }

    /// How many documents have a term.
    pub(crate) fn document_count(&self, term: TermHash) -> u32 {
        self.terms.get(&term).map_or(0, |entry| entry.documents)
    }
}
