//! Texts of which one is in every match. To look for them is quicker than to look for the pattern.

use std::ops::Range;

use memchr::memchr;
use regex_automata::util::prefilter::Prefilter;
use regex_automata::{MatchKind, Span};
use regex_syntax::hir::literal::{Extractor, Seq};
use regex_syntax::hir::{Hir, HirKind};

use crate::line_index::last_line_start;

/// So many parts of a pattern are tried as the beginning of a text.
const PARTS: usize = 32;
/// Shorter texts are found in too many lines.
const SHORTEST: usize = 3;
/// Lines that had a text and did not match, before it is asked whether the search pays.
const TRIALS: u64 = 64;
/// One line in vain for fewer bytes than this, and the pattern alone is quicker.
const BYTES_FOR_TRIAL: u64 = 512;

/// Finds lines that may match.
pub(super) struct RequiredLiterals {
    prefilter: Prefilter,
    searched: u64,
    in_vain: u64,
}

impl RequiredLiterals {
    /// Nothing if the pattern does not require a text, or if the search for the pattern itself is as quick.
    pub(super) fn of(pattern: &Hir) -> Option<RequiredLiterals> {
        let HirKind::Concat(parts) = pattern.kind() else {
            return None;
        };
        // What the pattern matches from some part on begins with one of these.
        let texts = |from: usize| {
            let mut texts = Extractor::new().extract(&Hir::concat(parts[from..].to_vec()));
            texts.optimize_for_prefix_by_preference();
            texts
        };
        // Those that it begins with are looked for anyway.
        let first = texts(0);
        let best = (1..parts.len().min(PARTS)).map(texts).max_by_key(worth)?;
        if first.is_exact() || worth(&best) <= worth(&first) {
            return None;
        }
        let prefilter = Prefilter::new(MatchKind::LeftmostFirst, best.literals()?)?;
        prefilter.is_fast().then_some(RequiredLiterals {
            prefilter,
            searched: 0,
            in_vain: 0,
        })
    }

    /// The first line at or behind `at`, where a line begins, that has one of the texts.
    pub(super) fn find_line(&mut self, piece: &[u8], at: usize) -> Option<Range<usize>> {
        let found = self.prefilter.find(piece, Span::from(at..piece.len()));
        let Some(found) = found else {
            self.searched += (piece.len() - at) as u64;
            return None;
        };
        let start = at + last_line_start(&piece[at..found.start]);
        let end = memchr(b'\n', &piece[found.end..]).map_or(piece.len(), |end| found.end + end);
        self.searched += (end - at) as u64;
        Some(start..end)
    }

    /// The line that was found last does not match.
    pub(super) fn note_in_vain(&mut self) {
        self.in_vain += 1;
    }

    pub(super) fn is_worth_it(&self) -> bool {
        self.in_vain < TRIALS || self.searched / self.in_vain >= BYTES_FOR_TRIAL
    }
}

/// How much a search for some texts is worth.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    Useless,
    /// With the length of the shortest.
    Several(usize),
    /// With its length.
    One(usize),
}

fn worth(texts: &Seq) -> Worth {
    match (texts.len(), texts.min_literal_len()) {
        (Some(1), Some(length)) if length >= SHORTEST => Worth::One(length),
        (Some(2..), Some(length)) if length >= SHORTEST => Worth::Several(length),
        _ => Worth::Useless,
    }
}
