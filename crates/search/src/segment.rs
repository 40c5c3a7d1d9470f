//! The documents of one server, ready to be searched. A segment never changes: a server that changes gets a new one.

use std::sync::Arc;

use memchr::memmem::Finder;
use rustc_hash::FxHashMap;

use crate::document::{FieldSet, SearchDocument, SearchField};
use crate::stemmer::stem;
use crate::terms::{TermHash, is_stop_word};
use crate::thesaurus::Thesaurus;
use crate::words::{cut, for_each_word, squeeze};

/// Saturation of BM25: how soon more of the same word stops to count.
const K1: f32 = 1.2;
/// What is longer is cut. A server must not make others slow with a huge description.
const MAX_NAME_BYTES: usize = 256;
const MAX_DESCRIPTION_BYTES: usize = 4096;
const MAX_PARAMETER_BYTES: usize = 300;
const MAX_PARAMETERS: usize = 64;
/// Stands between the names in one buffer. A text with control characters is not looked for in names.
const NAME_END: char = '\u{1}';

/// The documents of one server, ready to be searched.
#[derive(Debug, Default)]
pub struct SearchSegment {
    documents: usize,
    /// Most terms of a query are in few segments. This tells so without a look into the table of terms.
    known: TermFilter,
    terms: FxHashMap<TermHash, u32>,
    texts: Vec<Arc<str>>,
    /// Where the postings of a term begin; one more than there are terms.
    starts: Vec<u32>,
    postings: Vec<Posting>,
    names: NameBuffer,
}

/// A bit for each term; several terms may share one.
#[derive(Debug, Default)]
struct TermFilter {
    /// As many as a power of two, or none.
    bits: Vec<u64>,
}

/// A document that has a term.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posting {
    pub(crate) document: u32,
    /// How much the document is about the term, from 0 to `u16::MAX`.
    impact: u16,
    pub(crate) fields: FieldSet,
}

/// All names in lower case, one after the other, so that one pass finds those that contain a text.
#[derive(Debug, Default)]
struct NameBuffer {
    text: String,
    starts: Vec<u32>,
    squeezed: FxHashMap<TermHash, Vec<u32>>,
}

impl SearchSegment {
    /// Indexes documents. Their positions in the iterator are what hits name.
    pub fn new<'a>(documents: impl Iterator<Item = SearchDocument<'a>>) -> SearchSegment {
        let mut builder = SegmentBuilder::default();
        for document in documents {
            builder.add(&document);
        }
        builder.finish()
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.documents
    }

    /// Whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.documents == 0
    }

    /// About how much memory the segment takes.
    pub fn memory_bytes(&self) -> usize {
        let texts: usize = self.texts.iter().map(|text| text.len() + 32).sum();
        texts
            + self.terms.capacity() * 17
            + self.known.bits.len() * 8
            + self.starts.len() * 4
            + self.postings.len() * size_of::<Posting>()
            + self.names.text.len()
            + self.names.starts.len() * 4
            + self.names.squeezed.capacity() * 60
    }

    /// Each term with the number of documents that have it.
    pub(crate) fn terms(&self) -> impl Iterator<Item = (&Arc<str>, u32)> {
        let counts = self.starts.windows(2).map(|pair| pair[1] - pair[0]);
        self.texts.iter().zip(counts)
    }

    pub(crate) fn postings(&self, term: TermHash) -> &[Posting] {
        if !self.known.may_have(term) {
            return &[];
        }
        match self.terms.get(&term) {
            Some(&term) => {
                let term = term as usize;
                &self.postings[self.starts[term] as usize..self.starts[term + 1] as usize]
            }
            None => &[],
        }
    }

    /// Calls `visit` with each document whose name contains what the finder looks for, and the length of its name.
    pub(crate) fn for_each_name_with(
        &self,
        finder: &Finder<'_>,
        mut visit: impl FnMut(u32, usize),
    ) {
        let names = &self.names;
        let mut at = 0;
        while let Some(found) = finder.find(&names.text.as_bytes()[at..]) {
            let found = (at + found) as u32;
            let next = names.starts.partition_point(|start| *start <= found);
            let end = names
                .starts
                .get(next)
                .map_or(names.text.len(), |start| *start as usize);
            let start = names.starts[next - 1] as usize;
            visit(next as u32 - 1, end - start - NAME_END.len_utf8());
            at = end;
        }
    }

    /// The documents whose names have these letters and digits, whatever stands between them.
    pub(crate) fn named(&self, squeezed: TermHash) -> &[u32] {
        self.names
            .squeezed
            .get(&squeezed)
            .map_or(&[], Vec::as_slice)
    }
}

impl TermFilter {
    /// With about a dozen bits for each term.
    fn of<'a>(terms: impl ExactSizeIterator<Item = &'a TermHash>) -> TermFilter {
        let words = (terms.len() / 5).next_power_of_two();
        let mut filter = TermFilter {
            bits: vec![0; words],
        };
        for term in terms {
            let (word, bit) = filter.place(*term);
            filter.bits[word] |= bit;
        }
        filter
    }

    fn may_have(&self, term: TermHash) -> bool {
        let (word, bit) = self.place(term);
        self.bits.get(word).is_some_and(|bits| bits & bit != 0)
    }

    fn place(&self, term: TermHash) -> (usize, u64) {
        let mixed = term.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let word = (mixed >> 32) as usize & self.bits.len().wrapping_sub(1);
        (word, 1 << (mixed >> 58))
    }
}

impl Posting {
    /// From 0 to 1.
    pub(crate) fn impact(self) -> f32 {
        const STEP: f32 = 1.0 / u16::MAX as f32;
        f32::from(self.impact) * STEP
    }
}

/// A segment in the making.
#[derive(Default)]
struct SegmentBuilder {
    /// The term of each word met so far; `None` for stop words.
    words: FxHashMap<String, Option<u32>>,
    terms: FxHashMap<TermHash, u32>,
    texts: Vec<Arc<str>>,
    postings: Vec<Vec<Posting>>,
    names: NameBuffer,
    documents: u32,
    /// The terms of the document at hand with their fields.
    occurrences: Vec<(u32, SearchField)>,
    lengths: [f32; SearchField::ALL.len()],
    /// The terms of the text at hand.
    sequence: Vec<u32>,
}

impl SegmentBuilder {
    fn add(&mut self, document: &SearchDocument<'_>) {
        self.occurrences.clear();
        self.lengths = Default::default();
        let name = cut(document.name, MAX_NAME_BYTES);
        self.add_text(SearchField::Name, name);
        if let Some(title) = document.title {
            self.add_text(SearchField::Title, cut(title, MAX_NAME_BYTES));
        }
        self.add_text(SearchField::Server, cut(document.server, MAX_NAME_BYTES));
        let description = cut(document.description, MAX_DESCRIPTION_BYTES);
        self.add_text(SearchField::Description, description);
        for (name, description) in document.parameters.iter().take(MAX_PARAMETERS) {
            self.add_text(SearchField::Parameters, cut(name, MAX_NAME_BYTES));
            self.add_text(
                SearchField::Parameters,
                cut(description, MAX_PARAMETER_BYTES),
            );
        }
        for other in document.other.iter().take(MAX_PARAMETERS) {
            self.add_text(SearchField::Annotations, cut(other, MAX_NAME_BYTES));
        }
        self.add_postings();
        self.add_name(name);
        self.documents += 1;
    }

    fn add_text(&mut self, field: SearchField, text: &str) {
        self.sequence.clear();
        let mut sequence = std::mem::take(&mut self.sequence);
        for_each_word(text, |word| sequence.extend(self.term_of_word(word)));
        self.lengths[field as usize] += sequence.len() as f32;
        for at in 0..sequence.len() {
            self.occurrences.push((sequence[at], field));
            self.add_phrases(&sequence[at..], field);
        }
        self.sequence = sequence;
    }

    /// Adds the phrases of the thesaurus that these terms begin with.
    fn add_phrases(&mut self, sequence: &[u32], field: SearchField) {
        let first = &self.texts[sequence[0] as usize];
        for phrase in Thesaurus::get().phrases(first) {
            let stems = sequence.iter().map(|term| &*self.texts[*term as usize]);
            if phrase.begins(stems) {
                let term = self.intern(&phrase.term());
                self.occurrences.push((term, field));
            }
        }
    }

    fn term_of_word(&mut self, word: &str) -> Option<u32> {
        if let Some(known) = self.words.get(word) {
            return *known;
        }
        let term = (!is_stop_word(word)).then(|| self.intern(&stem(word)));
        self.words.insert(word.to_owned(), term);
        term
    }

    fn intern(&mut self, text: &str) -> u32 {
        let next = self.texts.len() as u32;
        let term = *self.terms.entry(TermHash::of(text)).or_insert(next);
        if term == next {
            self.texts.push(text.into());
            self.postings.push(Vec::new());
        }
        term
    }

    /// BM25F: counts of a term are weighted by field and divided by the field's length, and saturate only when they are summed.
    fn add_postings(&mut self) {
        self.occurrences.sort_unstable();
        for same in self.occurrences.chunk_by(|a, b| a.0 == b.0) {
            let mut frequency = 0.0;
            let mut fields = FieldSet::default();
            for (_, field) in same {
                let penalty = field.length_penalty();
                let length = self.lengths[*field as usize] / field.usual_length();
                frequency += field.weight() / (1.0 - penalty + penalty * length);
                fields.insert(*field);
            }
            let impact = frequency / (K1 + frequency);
            self.postings[same[0].0 as usize].push(Posting {
                document: self.documents,
                impact: (impact * f32::from(u16::MAX)) as u16,
                fields,
            });
        }
    }

    fn add_name(&mut self, name: &str) {
        let names = &mut self.names;
        names.starts.push(names.text.len() as u32);
        names.text.push_str(&name.to_lowercase());
        names.text.push(NAME_END);
        let squeezed = TermHash::of(&squeeze(name));
        names
            .squeezed
            .entry(squeezed)
            .or_default()
            .push(self.documents);
    }

    fn finish(self) -> SearchSegment {
        let mut starts = vec![0];
        let mut postings = Vec::with_capacity(self.postings.iter().map(Vec::len).sum());
        for list in self.postings {
            postings.extend(list);
            starts.push(postings.len() as u32);
        }
        SearchSegment {
            documents: self.documents as usize,
            known: TermFilter::of(self.terms.keys()),
            terms: self.terms,
            texts: self.texts,
            starts,
            postings,
            names: self.names,
        }
    }
}
