//! Other words for the same thing.
//!
//! `data/thesaurus.txt` says which words and phrases stand for each other. A query term is expanded with them; documents are
//! indexed as they are, except that phrases of the thesaurus become terms of their own next to their words.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::terms::{PHRASE_JOINT, TermHash, stems_of};
use crate::typos::{edit_distance, letters_of, may_be_close};

const TEXT: &str = include_str!("../data/thesaurus.txt");

/// What a word of the same group is worth next to the word itself.
const SAME: f32 = 0.75;
/// What a word marked with `~` is worth.
const RELATED: f32 = 0.45;

/// Parsed once, since the text is part of the program.
static THESAURUS: LazyLock<Thesaurus> = LazyLock::new(|| Thesaurus::parse(TEXT));

/// The words that may stand for each other.
#[derive(Debug, Default)]
pub(crate) struct Thesaurus {
    /// The texts of all terms with their letters, for the correction of typos.
    terms: Vec<(String, u32)>,
    alternatives: FxHashMap<TermHash, Vec<Alternative>>,
    /// Phrases by their first stem, longest first.
    phrases: FxHashMap<String, Vec<Phrase>>,
}

/// A term that may stand for another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Alternative {
    pub(crate) term: TermHash,
    pub(crate) weight: f32,
}

/// Several words that mean one thing.
#[derive(Clone, Debug)]
pub(crate) struct Phrase {
    stems: Vec<String>,
}

impl Thesaurus {
    pub(crate) fn get() -> &'static Thesaurus {
        &THESAURUS
    }

    /// Each line is a group of words or phrases between commas, which stand for each other. `~` in front of one says that it is
    /// only related: it is found for the others, but does not find them. `a, b > c` finds `c` for `a` and `b` and nothing else.
    fn parse(text: &str) -> Thesaurus {
        let mut thesaurus = Thesaurus::default();
        for line in text.lines() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match line.split_once('>') {
                Some((from, to)) => thesaurus.add_direction(from, to),
                None => thesaurus.add_group(line),
            }
        }
        for phrases in thesaurus.phrases.values_mut() {
            phrases.sort_by_key(|phrase| std::cmp::Reverse(phrase.stems.len()));
        }
        thesaurus
    }

    pub(crate) fn alternatives(&self, term: TermHash) -> &[Alternative] {
        self.alternatives.get(&term).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn contains(&self, term: TermHash) -> bool {
        self.alternatives.contains_key(&term)
    }

    /// Terms that a mistyped stem may have been meant for, with the number of edits.
    pub(crate) fn similar(&self, stem: &str, max_edits: usize) -> Vec<(&str, usize)> {
        let letters = letters_of(stem);
        let close = |(_, other): &&(String, u32)| may_be_close(*other, letters, max_edits);
        let close = self.terms.iter().filter(close);
        close
            .filter_map(|(text, _)| Some((text.as_str(), edit_distance(stem, text, max_edits)?)))
            .collect()
    }

    /// Phrases that begin with this stem.
    pub(crate) fn phrases(&self, first: &str) -> &[Phrase] {
        self.phrases.get(first).map_or(&[], Vec::as_slice)
    }

    fn add_group(&mut self, line: &str) {
        let members = self.members(line);
        for (from, relation) in &members {
            if *relation == SAME {
                self.add_alternatives(from, &members);
            }
        }
    }

    fn add_direction(&mut self, from: &str, to: &str) {
        let to = self.members(to);
        for (from, _) in self.members(from) {
            self.add_alternatives(&from, &to);
        }
    }

    fn members(&mut self, list: &str) -> Vec<(String, f32)> {
        let mut members = Vec::new();
        for member in list.split(',') {
            let member = member.trim();
            let (member, weight) = match member.strip_prefix('~') {
                Some(member) => (member, RELATED),
                None => (member, SAME),
            };
            let stems = stems_of(member);
            let term = stems.join(PHRASE_JOINT);
            if stems.len() > 1 {
                let phrases = self.phrases.entry(stems[0].clone()).or_default();
                if !phrases.iter().any(|known| known.stems == stems) {
                    phrases.push(Phrase { stems });
                }
            }
            if !term.is_empty() {
                members.push((term, weight));
            }
        }
        members
    }

    fn add_alternatives(&mut self, from: &str, to: &[(String, f32)]) {
        let hash = TermHash::of(from);
        if !self.alternatives.contains_key(&hash) {
            self.terms.push((from.to_owned(), letters_of(from)));
        }
        let alternatives = self.alternatives.entry(hash).or_default();
        for (term, weight) in to.iter().filter(|(term, _)| term != from) {
            let term = TermHash::of(term);
            match alternatives.iter_mut().find(|known| known.term == term) {
                Some(known) => known.weight = known.weight.max(*weight),
                None => alternatives.push(Alternative {
                    term,
                    weight: *weight,
                }),
            }
        }
    }
}

impl Phrase {
    /// Whether these stems begin with the phrase.
    pub(crate) fn begins<'a>(&self, mut stems: impl Iterator<Item = &'a str>) -> bool {
        self.stems
            .iter()
            .all(|stem| stems.next() == Some(stem.as_str()))
    }

    pub(crate) fn len(&self) -> usize {
        self.stems.len()
    }

    /// The phrase as one term.
    pub(crate) fn term(&self) -> String {
        self.stems.join(PHRASE_JOINT)
    }
}

#[cfg(test)]
mod tests {
    use super::{RELATED, SAME, Thesaurus};
    use crate::terms::{TermHash, stems_of};

    fn weight(thesaurus: &Thesaurus, from: &str, to: &str) -> Option<f32> {
        let term = |text: &str| TermHash::of(&stems_of(text).join(" "));
        let found = thesaurus.alternatives(term(from)).iter();
        found
            .filter(|known| known.term == term(to))
            .map(|known| known.weight)
            .next()
    }

    #[test]
    fn groups_go_both_ways_and_related_words_one() {
        let thesaurus =
            Thesaurus::parse("fetch, get, ~load\n# note\npull request, PR\ntidy > format");
        assert_eq!(weight(&thesaurus, "get", "fetch"), Some(SAME));
        assert_eq!(weight(&thesaurus, "fetch", "load"), Some(RELATED));
        assert_eq!(weight(&thesaurus, "load", "fetch"), None);
        assert_eq!(weight(&thesaurus, "PR", "pull requests"), Some(SAME));
        assert_eq!(weight(&thesaurus, "tidy", "format"), Some(SAME));
        assert_eq!(weight(&thesaurus, "format", "tidy"), None);
        assert_eq!(thesaurus.phrases("pull").len(), 1);
    }

    #[test]
    fn the_list_has_hundreds_of_words() {
        assert!(Thesaurus::get().terms.len() > 800);
    }
}
