//! The search itself: segments, what they have in common, and the ranking.

use std::cmp::Ordering;
use std::sync::Arc;

use memchr::memmem::Finder;

use crate::document::{FieldSet, SearchField};
use crate::query::{Concept, bounded, concepts, reading_concept};
use crate::segment::SearchSegment;
use crate::terms::TermHash;
use crate::vocabulary::Vocabulary;
use crate::words::squeeze;

/// What a name that is or contains the whole query adds to the score: more than words can add.
const EXACT_NAME: f32 = 2000.0;
const PART_OF_NAME: f32 = 1000.0;
/// A name adds up to this more, the more of it the query covers.
const COVERED_NAME: f32 = 100.0;

/// How much of a score depends on the share of the query that a document covers.
const COVERAGE: f32 = 0.3;

/// How many of the best hits are looked at to see whether something fits.
const FITTING_HITS: usize = 3;

/// Matches that are collected beyond twice the limit before the worst of them are dropped.
const SPARE_MATCHES: usize = 64;

/// All segments and the statistics over them.
#[derive(Clone, Debug, Default)]
pub struct SearchIndex {
    segments: Vec<Arc<SearchSegment>>,
    vocabulary: Arc<Vocabulary>,
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub struct SearchQuery<'a> {
    /// Words, in any case.
    pub text: &'a str,
    /// The most hits to return.
    pub limit: usize,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResults {
    /// All documents that match, also those beyond the limit.
    pub total: usize,
    /// Whether the best one has enough of what the query asks for. There are always some words that some document has.
    pub fits: bool,
    /// The best ones, best first.
    pub hits: Vec<SearchHit>,
}

/// A document that matches.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    /// The position of its segment in the index.
    pub segment: usize,
    /// Its position in the segment.
    pub document: usize,
    /// How well it matches. Scores of one search can be compared.
    pub score: f32,
    /// The fields that have words of the query.
    pub matched: Vec<SearchField>,
}

impl SearchIndex {
    /// An index over these segments. It reads their vocabularies and not their documents.
    pub fn new(segments: Vec<Arc<SearchSegment>>) -> SearchIndex {
        let mut vocabulary = Vocabulary::default();
        for segment in &segments {
            vocabulary.add(segment);
        }
        SearchIndex {
            segments,
            vocabulary: Arc::new(vocabulary),
        }
    }

    /// An index over these segments that is made from this one: it costs what the segments that differ cost.
    pub fn updated(&self, segments: Vec<Arc<SearchSegment>>) -> SearchIndex {
        let gone = missing_from(&self.segments, &segments);
        let new = missing_from(&segments, &self.segments);
        let mut vocabulary = (*self.vocabulary).clone();
        gone.iter().for_each(|segment| vocabulary.remove(segment));
        new.iter().for_each(|segment| vocabulary.add(segment));
        SearchIndex {
            segments,
            vocabulary: Arc::new(vocabulary),
        }
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.segments.iter().map(|segment| segment.len()).sum()
    }

    /// Whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// About how much memory the index takes, with its segments.
    pub fn memory_bytes(&self) -> usize {
        let segments = self.segments.iter().map(|segment| segment.memory_bytes());
        segments.sum::<usize>() + self.vocabulary.memory_bytes()
    }

    /// Finds the documents that match a query and that `is_visible` lets this caller see, given the positions of a segment and of
    /// a document in it.
    pub fn search(
        &self,
        query: &SearchQuery<'_>,
        is_visible: &dyn Fn(usize, usize) -> bool,
    ) -> SearchResults {
        let text = bounded(query.text);
        let mut scores = ScoreBoard::new(&self.segments);
        let concepts = concepts(text, &self.vocabulary);
        for concept in &concepts {
            scores.add_concept(concept);
        }
        scores.weigh_coverage(&concepts);
        if let Some(reading) = reading_concept(text, &self.vocabulary) {
            scores.add_to_matches(&reading);
        }
        scores.add_names(text);
        scores.results(query.limit, enough_certainty(&concepts), is_visible)
    }
}

/// How much of a query a document must have more than to fit it. Long queries tell a story around what they want.
fn enough_certainty(concepts: &[Concept]) -> f32 {
    let all: f32 = concepts.iter().map(|concept| concept.certainty).sum();
    match all {
        ..3.5 => all * 0.5,
        ..6.5 => all * 0.4,
        _ => all * 0.3,
    }
}

/// The segments of a list that another list does not have.
fn missing_from<'a>(
    segments: &'a [Arc<SearchSegment>],
    other: &[Arc<SearchSegment>],
) -> Vec<&'a Arc<SearchSegment>> {
    let mut known: Vec<_> = other.iter().map(Arc::as_ptr).collect();
    known.sort_unstable();
    let is_missing =
        |segment: &&Arc<SearchSegment>| known.binary_search(&Arc::as_ptr(segment)).is_err();
    segments.iter().filter(is_missing).collect()
}

/// The scores of all documents during one search.
struct ScoreBoard<'a> {
    segments: &'a [Arc<SearchSegment>],
    /// Where the documents of each segment begin in the lists below.
    offsets: Vec<usize>,
    scores: Vec<f32>,
    /// What the concepts that each document has are worth, however well it has them.
    covered: Vec<f32>,
    /// How certain it is that each document has something of the query.
    certainty: Vec<f32>,
    fields: Vec<FieldSet>,
    /// What the concept at hand is worth in each document.
    best: Vec<f32>,
    touched: Vec<u32>,
}

impl<'a> ScoreBoard<'a> {
    fn new(segments: &'a [Arc<SearchSegment>]) -> ScoreBoard<'a> {
        let mut offsets = Vec::with_capacity(segments.len());
        let mut documents = 0;
        for segment in segments {
            offsets.push(documents);
            documents += segment.len();
        }
        ScoreBoard {
            segments,
            offsets,
            scores: vec![0.0; documents],
            covered: vec![0.0; documents],
            certainty: vec![0.0; documents],
            fields: vec![FieldSet::default(); documents],
            best: vec![0.0; documents],
            touched: Vec::new(),
        }
    }

    /// Adds the worth of the concept's best term to each document that has one.
    fn add_concept(&mut self, concept: &Concept) {
        self.find_best(concept, |_| true);
        for at in self.touched.drain(..) {
            let at = at as usize;
            self.scores[at] += self.best[at];
            self.covered[at] += concept.worth();
            self.certainty[at] += concept.certainty;
            self.best[at] = 0.0;
        }
    }

    /// The same for documents that match already. It changes their order, and adds none.
    fn add_to_matches(&mut self, concept: &Concept) {
        self.find_best(concept, |score| score > 0.0);
        for at in self.touched.drain(..) {
            let at = at as usize;
            self.scores[at] += self.best[at];
            self.best[at] = 0.0;
        }
    }

    /// A document that has a little of everything is better than one that has much of one thing.
    fn weigh_coverage(&mut self, concepts: &[Concept]) {
        let total: f32 = concepts.iter().map(Concept::worth).sum();
        for (score, covered) in self.scores.iter_mut().zip(&self.covered) {
            if *score > 0.0 {
                *score *= 1.0 - COVERAGE + COVERAGE * covered / total;
            }
        }
    }

    /// Notes what the concept is worth in each document that has it and whose score so far is wanted.
    fn find_best(&mut self, concept: &Concept, is_wanted: impl Fn(f32) -> bool) {
        for (segment, offset) in self.segments.iter().zip(&self.offsets) {
            for term in &concept.terms {
                for posting in segment.postings(term.term) {
                    let at = offset + posting.document as usize;
                    if !is_wanted(self.scores[at]) {
                        continue;
                    }
                    let worth = term.weight * posting.impact();
                    if self.best[at] == 0.0 {
                        self.touched.push(at as u32);
                    }
                    self.best[at] = self.best[at].max(worth);
                    self.fields[at].insert_all(posting.fields);
                }
            }
        }
    }

    /// Puts documents first whose name is or contains the query.
    fn add_names(&mut self, text: &str) {
        let text = text.to_lowercase();
        let squeezed = squeeze(&text);
        if text.is_empty() || text.contains(char::is_control) {
            return;
        }
        let finder = Finder::new(text.as_bytes());
        for (segment, offset) in self.segments.iter().zip(&self.offsets) {
            let mut found = |document: u32, score: f32| {
                let at = offset + document as usize;
                self.scores[at] += score;
                self.fields[at].insert(SearchField::Name);
            };
            segment.for_each_name_with(&finder, |document, length| {
                let covered = text.len() as f32 / length.max(1) as f32;
                found(document, PART_OF_NAME + COVERED_NAME * covered);
            });
            if !squeezed.is_empty() {
                for document in segment.named(TermHash::of(&squeezed)) {
                    found(*document, EXACT_NAME);
                }
            }
        }
    }

    fn results(
        self,
        limit: usize,
        enough: f32,
        is_visible: &dyn Fn(usize, usize) -> bool,
    ) -> SearchResults {
        // Whether something fits does not depend on how many hits are wanted.
        let kept = limit.max(FITTING_HITS);
        let mut matches = Vec::new();
        let mut total = 0;
        let mut least = 0.0;
        for (segment, offset) in self.offsets.iter().enumerate() {
            for document in 0..self.segments[segment].len() {
                let score = self.scores[offset + document];
                if score <= 0.0 || !is_visible(segment, document) {
                    continue;
                }
                total += 1;
                // A later document with the score of the last hit comes after it.
                if score > least {
                    matches.push((score, segment, document));
                }
                if matches.len() > kept.saturating_mul(2).saturating_add(SPARE_MATCHES) {
                    keep_best(&mut matches, kept);
                    least = matches.last().map_or(f32::MAX, |last| last.0);
                }
            }
        }
        keep_best(&mut matches, kept);
        let fits = matches
            .iter()
            .take(FITTING_HITS)
            .any(|(score, segment, document)| {
                *score >= PART_OF_NAME || self.certainty[self.offsets[*segment] + document] > enough
            });
        let hits = matches
            .into_iter()
            .take(limit)
            .map(|(score, segment, document)| SearchHit {
                segment,
                document,
                score,
                matched: self.fields[self.offsets[segment] + document].fields(),
            });
        SearchResults {
            total,
            fits,
            hits: hits.collect(),
        }
    }
}

/// Sorts matches and drops those beyond the limit.
fn keep_best(matches: &mut Vec<(f32, usize, usize)>, limit: usize) {
    matches.sort_unstable_by(compare);
    matches.truncate(limit);
}

/// Higher scores first, and then in the order of the index.
fn compare(a: &(f32, usize, usize), b: &(f32, usize, usize)) -> Ordering {
    b.0.total_cmp(&a.0)
        .then_with(|| (a.1, a.2).cmp(&(b.1, b.2)))
}
