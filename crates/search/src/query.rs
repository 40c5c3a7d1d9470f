//! Turns the text of a query into concepts: what is looked for, with all the terms that may stand for it.

use std::cmp::{Ordering, Reverse};

use crate::stemmer::{singular, stem};
use crate::terms::{PHRASE_JOINT, TermHash, is_stop_word};
use crate::thesaurus::{Alternative, Thesaurus};
use crate::typos::allowed_edits;
use crate::vocabulary::Vocabulary;
use crate::words::{cut, words_of};

/// What is longer is cut.
const MAX_QUERY_BYTES: usize = 1024;
/// Further words of a query are ignored.
const MAX_WORDS: usize = 40;
/// Unknown words that are compared with the vocabulary; further ones are ignored.
const MAX_CORRECTED: usize = 6;
/// Corrections that are tried for one word, and completions of one beginning.
const MAX_CORRECTIONS: usize = 4;
const MAX_COMPLETIONS: usize = 6;
/// The most terms that stand for one concept.
const MAX_TERMS: usize = 16;
/// What a term is worth that was found by correcting a typo, by completing a word, or by splitting one.
const CORRECTED: f32 = 0.8;
/// What the likeliest correction is worth of a word that only the thesaurus knows, and the fewest letters of such a word.
const SLIP: f32 = 0.5;
const MIN_SLIP: usize = 4;
const COMPLETED: f32 = 0.8;
const SPLIT: f32 = 0.8;
/// What the words of a phrase are still worth when the phrase is a concept of its own.
const IN_PHRASE: f32 = 0.6;

/// What is known about a document that has a correction of an unknown word, compared with one that has a known word.
const UNCERTAIN: f32 = 0.5;

/// The first words of questions.
const QUESTION_WORDS: &[&str] = &[
    "which", "what", "who", "whose", "how", "where", "when", "is", "are", "was", "were", "did",
    "do", "does", "has", "have", "show",
];
/// What tools that answer questions are called, and how sure that is.
const READING_WORDS: &[(&str, f32)] = &[
    ("get", 1.0),
    ("list", 1.0),
    ("retrieve", 0.9),
    ("show", 0.8),
    ("read", 0.7),
    ("search", 0.6),
    ("query", 0.6),
    ("describe", 0.6),
];

/// One thing that a query asks for. A document counts by the best of the terms.
#[derive(Clone, Debug)]
pub(crate) struct Concept {
    pub(crate) terms: Vec<Alternative>,
    /// How much it says about a document that it has this: a word that nobody knows may be a name, and a slip of the pen may be
    /// meant for another word.
    pub(crate) certainty: f32,
}

/// A known word that a typed one may have been meant for.
#[derive(Debug, PartialEq)]
struct Correction {
    text: String,
    edits: usize,
    /// Whether it is close to the whole word, not only to its stem.
    is_whole: bool,
    /// How many documents have it.
    documents: u32,
}

/// A word of the query.
struct QueryWord {
    text: String,
    stem: String,
    weight: f32,
}

/// The text of a query as it is used, cut to a sensible length.
pub(crate) fn bounded(text: &str) -> &str {
    cut(text.trim(), MAX_QUERY_BYTES)
}

/// What a query asks for.
pub(crate) fn concepts(text: &str, vocabulary: &Vocabulary) -> Vec<Concept> {
    let mut words = query_words(text);
    let synonyms = synonym_weight(words.len());
    let mut concepts = phrase_concepts(&mut words, synonyms, vocabulary);
    let mut unknown = 0;
    for word in &words {
        let term = TermHash::of(&word.stem);
        let is_known = vocabulary.contains(term) || Thesaurus::get().contains(term);
        unknown += usize::from(!is_known);
        if unknown > MAX_CORRECTED && !is_known {
            continue;
        }
        let terms = match is_known {
            true => known_terms(word, synonyms, vocabulary),
            false => unknown_terms(word, synonyms, vocabulary),
        };
        let certainty = match (is_known, word.weight < 1.0) {
            // The phrase counts for its words.
            (_, true) => 0.0,
            (true, false) => 1.0,
            (false, false) => UNCERTAIN,
        };
        concepts.push(Concept {
            certainty,
            ..Concept::of(terms)
        });
    }
    concepts
}

/// What a word is worth that only stands for one of the query. A long query has enough words of its own, and the words that may
/// stand for them are more and more about something else.
fn synonym_weight(words: usize) -> f32 {
    const SHORT: f32 = 6.0;
    const LONG: f32 = 12.0;
    let length = ((words as f32 - SHORT) / (LONG - SHORT)).clamp(0.0, 1.0);
    1.0 - 0.5 * length
}

/// What a question asks for next to its words: `which …` and `who …` want to know something, not to change it.
pub(crate) fn reading_concept(text: &str, vocabulary: &Vocabulary) -> Option<Concept> {
    let words = words_of(text);
    let first = words.first()?;
    QUESTION_WORDS.contains(&first.as_str()).then_some(())?;
    let cap = vocabulary.rarity(TermHash::of(READING_WORDS[0].0));
    let terms = READING_WORDS.iter().map(|(word, weight)| {
        let term = TermHash::of(&stem(word));
        let weight = weight * vocabulary.rarity(term).min(cap);
        Alternative { term, weight }
    });
    Some(Concept::of(terms.collect()))
}

/// The words of a query without stop words, unless there are no others, and each only once.
fn query_words(text: &str) -> Vec<QueryWord> {
    let all = words_of(text);
    let only_stop_words = all.iter().all(|word| is_stop_word(word));
    let mut words: Vec<QueryWord> = Vec::new();
    for text in all {
        if only_stop_words || !is_stop_word(&text) {
            words.push(QueryWord {
                stem: stem(&text),
                text,
                weight: 1.0,
            });
        }
    }
    words.truncate(MAX_WORDS);
    words
}

/// The concepts of phrases. Their words count less from then on, and words that occur again are taken out.
fn phrase_concepts(
    words: &mut Vec<QueryWord>,
    synonyms: f32,
    vocabulary: &Vocabulary,
) -> Vec<Concept> {
    let mut concepts = Vec::new();
    let stems: Vec<String> = words.iter().map(|word| word.stem.clone()).collect();
    let mut at = 0;
    while at < stems.len() {
        let phrases = Thesaurus::get().phrases(&stems[at]).iter();
        let Some(phrase) = phrases
            .clone()
            .find(|phrase| phrase.begins(stems[at..].iter().map(String::as_str)))
        else {
            at += 1;
            continue;
        };
        let terms = expand(TermHash::of(&phrase.term()), 1.0, synonyms, vocabulary);
        concepts.push(Concept::of(terms));
        for word in &mut words[at..at + phrase.len()] {
            word.weight = IN_PHRASE;
        }
        at += phrase.len();
    }
    let mut seen = Vec::new();
    words.retain(|word| {
        let is_new = !seen.contains(&word.stem);
        if is_new {
            seen.push(word.stem.clone());
        }
        is_new
    });
    concepts
}

/// A term and those that may stand for it, each with its rarity. No alternative is worth more than the word itself: a rare word
/// for a common thing does not make that thing rare.
fn expand(term: TermHash, weight: f32, synonyms: f32, vocabulary: &Vocabulary) -> Vec<Alternative> {
    let others = Thesaurus::get().alternatives(term);
    let cap = match vocabulary.rarity(term) {
        // Nobody uses the word, so the thing is as common as the words for it are on average.
        0.0 => mean_rarity(others, vocabulary),
        own => own,
    };
    // If nobody uses the word, the words for it are all that there is.
    let synonyms = if vocabulary.contains(term) {
        synonyms
    } else {
        1.0
    };
    let own = Alternative { term, weight: 1.0 };
    let others = others.iter().map(|other| Alternative {
        weight: other.weight * synonyms,
        ..*other
    });
    std::iter::once(own)
        .chain(others)
        .map(|other| Alternative {
            term: other.term,
            weight: other.weight * weight * vocabulary.rarity(other.term).min(cap),
        })
        .collect()
}

/// The mean of those that documents have.
fn mean_rarity(terms: &[Alternative], vocabulary: &Vocabulary) -> f32 {
    let rarities = terms.iter().map(|other| vocabulary.rarity(other.term));
    let (mut sum, mut count) = (0.0, 0.0);
    for rarity in rarities.filter(|rarity| *rarity > 0.0) {
        sum += rarity;
        count += 1.0;
    }
    if count > 0.0 { sum / count } else { 0.0 }
}

/// A word of documents or of the thesaurus. One that only the thesaurus has may also be a slip: `crate` for `create`.
fn known_terms(word: &QueryWord, synonyms: f32, vocabulary: &Vocabulary) -> Vec<Alternative> {
    let term = TermHash::of(&word.stem);
    let mut terms = expand(term, word.weight, synonyms, vocabulary);
    if !vocabulary.contains(term) && word.text.len() >= MIN_SLIP {
        let likely = corrections(word, 1, vocabulary).into_iter();
        let likely = likely.filter(|correction| correction.documents > 0).take(1);
        for correction in likely {
            let weight = SLIP * word.weight;
            terms.extend(expand(correction.term(), weight, synonyms, vocabulary));
        }
    }
    terms
}

/// What a word may have been meant for that nobody knows: one that it begins, one that it is a slip of, two that were written
/// as one, or one that it has several slips of.
fn unknown_terms(word: &QueryWord, synonyms: f32, vocabulary: &Vocabulary) -> Vec<Alternative> {
    let completed = complete(word, synonyms, vocabulary);
    if !completed.is_empty() {
        return completed;
    }
    let most = allowed_edits(word.text.len()).unwrap_or(0);
    let found = corrections(word, most, vocabulary);
    let is_one_slip = found.first().is_some_and(|best| best.edits == 1);
    match split(&word.text, vocabulary) {
        Some(parts) if !is_one_slip => parts,
        _ => correct(word, &found, synonyms, vocabulary),
    }
}

fn complete(word: &QueryWord, synonyms: f32, vocabulary: &Vocabulary) -> Vec<Alternative> {
    if word.text.len() < 3 {
        return Vec::new();
    }
    let mut completions = vocabulary.beginning_with(&word.text);
    completions.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    let best = completions.iter().take(MAX_COMPLETIONS);
    best.flat_map(|text| {
        expand(
            TermHash::of(text),
            COMPLETED * word.weight,
            synonyms,
            vocabulary,
        )
    })
    .collect()
}

/// `webhookurl` is looked for as `webhook` and `url`, if documents have both.
fn split(word: &str, vocabulary: &Vocabulary) -> Option<Vec<Alternative>> {
    if !word.is_ascii() || word.len() < 6 {
        return None;
    }
    let halves = (3..=word.len() - 3).map(|at| [&word[..at], &word[at..]]);
    let mut parts = halves.map(|halves| halves.map(|part| TermHash::of(&stem(part))));
    let both = parts.find(|parts| parts.iter().all(|part| vocabulary.contains(*part)))?;
    let weighted = both.map(|term| Alternative {
        term,
        weight: SPLIT * vocabulary.rarity(term),
    });
    Some(weighted.to_vec())
}

/// The terms of the likeliest corrections. None is worth more than the first, for a rare word is not the likelier one.
fn correct(
    word: &QueryWord,
    found: &[Correction],
    synonyms: f32,
    vocabulary: &Vocabulary,
) -> Vec<Alternative> {
    // A word that is one edit away makes those that are two away unlikely.
    let Some(least) = found.first().map(|best| best.edits) else {
        return Vec::new();
    };
    let best = found
        .iter()
        .take_while(|correction| correction.edits == least);
    let weight = CORRECTED.powi(least as i32) * word.weight;
    let mut terms: Vec<Alternative> = Vec::new();
    let mut cap = f32::MAX;
    let mut seen = Vec::new();
    for correction in best {
        if seen.len() == MAX_CORRECTIONS {
            break;
        }
        if seen.contains(&correction.term()) {
            continue;
        }
        seen.push(correction.term());
        let expanded = expand(correction.term(), weight, synonyms, vocabulary);
        let most = expanded.iter().map(|term| term.weight).fold(0.0, f32::max);
        let factor = if most > cap { cap / most } else { 1.0 };
        cap = cap.min(most.max(f32::MIN_POSITIVE));
        terms.extend(expanded.iter().map(|term| Alternative {
            weight: term.weight * factor,
            ..*term
        }));
    }
    terms
}

/// Known words that are so many edits away, the likeliest first.
fn corrections(word: &QueryWord, most: usize, vocabulary: &Vocabulary) -> Vec<Correction> {
    let mut found: Vec<Correction> = Vec::new();
    if most == 0 {
        return found;
    }
    for (typed, is_whole) in typed_forms(word) {
        let of_documents = vocabulary.similar(&typed, most).into_iter();
        let of_documents = of_documents.map(|(text, edits)| (text.to_string(), edits));
        let of_thesaurus = Thesaurus::get().similar(&typed, most).into_iter();
        let of_thesaurus = of_thesaurus.map(|(text, edits)| (text.to_owned(), edits));
        for (text, edits) in of_documents.chain(of_thesaurus) {
            if edits > 0 {
                let documents = vocabulary.document_count(TermHash::of(&text));
                found.push(Correction {
                    text,
                    edits,
                    is_whole,
                    documents,
                });
            }
        }
    }
    found.sort_by(|a, b| compare_corrections(&word.stem, a, b));
    found
}

/// A slip may look like an ending: the stem of `depoly` would be `depo`. So the whole word is compared as well.
fn typed_forms(word: &QueryWord) -> Vec<(String, bool)> {
    let whole = singular(&word.text);
    match whole == word.stem {
        true => vec![(whole, true)],
        false => vec![(whole, true), (word.stem.clone(), false)],
    }
}

/// People seldom mistype the first letter, and a common word is likelier than a rare one.
fn compare_corrections(typed: &str, a: &Correction, b: &Correction) -> Ordering {
    let other_beginning =
        |correction: &Correction| correction.text.chars().next() != typed.chars().next();
    let key = |correction: &Correction| {
        let is_phrase = correction.text.contains(PHRASE_JOINT);
        (
            correction.edits,
            other_beginning(correction),
            !correction.is_whole,
            is_phrase,
            Reverse(correction.documents),
        )
    };
    key(a).cmp(&key(b)).then_with(|| a.text.cmp(&b.text))
}

impl Correction {
    fn term(&self) -> TermHash {
        TermHash::of(&self.text)
    }
}

impl Concept {
    /// What its best term is worth.
    pub(crate) fn worth(&self) -> f32 {
        self.terms.first().map_or(0.0, |best| best.weight)
    }

    /// Of two terms that are the same the better one counts.
    fn of(mut terms: Vec<Alternative>) -> Concept {
        terms.retain(|term| term.weight > 0.0);
        terms.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        let mut kept: Vec<Alternative> = Vec::new();
        for term in terms {
            // The long tail of alternatives costs time and finds little.
            if kept.len() < MAX_TERMS && !kept.iter().any(|known| known.term == term.term) {
                kept.push(term);
            }
        }
        Concept {
            terms: kept,
            certainty: 1.0,
        }
    }
}
