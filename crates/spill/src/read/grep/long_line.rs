//! The search of a line that is so long that it must be possible to stop in the middle.
//!
//! An automaton is driven byte by byte, so the time can be looked at as often as one likes, and matches may be of any length.
//! Words are those of ASCII here: no such automaton knows the letters of all languages at the borders of words.

use std::ops::Range;
use std::time::Instant;

use regex_automata::Input;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_syntax::hir::{Capture, Hir, HirKind, Look, Repetition};

use super::pattern::{CACHE_SIZE, PATTERN_SIZE};
use crate::SpillError;

/// How many bytes are looked at before the clock is. A byte may cost as much as the pattern is large.
const LOOK_EVERY: usize = 64;

/// The time for a search is over.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OutOfTime;

/// Which end of a match is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MatchEnd {
    /// The first place where it is known that something matches.
    Earliest,
    /// The end of the first match.
    Real,
}

/// A pattern for long lines.
pub(super) struct LongLinePattern {
    automaton: DFA,
    cache: Cache,
}

impl LongLinePattern {
    pub(super) fn new(pattern: &Hir) -> Result<LongLinePattern, SpillError> {
        let config = thompson::Config::new()
            .utf8(false)
            .which_captures(WhichCaptures::None)
            .nfa_size_limit(Some(PATTERN_SIZE));
        let nfa = thompson::Compiler::new()
            .configure(config)
            .build_from_hir(&with_ascii_words(pattern.clone()))
            .map_err(|_| SpillError::PatternTooLarge)?;
        let config = DFA::config()
            .cache_capacity(CACHE_SIZE)
            .skip_cache_capacity_check(true);
        let automaton = DFA::builder()
            .configure(config)
            .build_from_nfa(nfa)
            .map_err(|_| SpillError::PatternTooLarge)?;
        Ok(LongLinePattern {
            cache: automaton.create_cache(),
            automaton,
        })
    }

    /// Where the first match in a part of the line ends.
    pub(super) fn find(
        &mut self,
        line: &[u8],
        range: Range<usize>,
        wanted: MatchEnd,
        deadline: Instant,
    ) -> Result<Option<usize>, OutOfTime> {
        let (automaton, cache) = (&self.automaton, &mut self.cache);
        let input = Input::new(line).range(range.clone());
        // It gives up neither bytes nor its cache, because nobody told it to.
        let start = automaton.start_state_forward(cache, &input);
        let mut state = start.map_err(|_| OutOfTime)?;
        let mut found = None;
        for at in range.clone() {
            if (at - range.start).is_multiple_of(LOOK_EVERY) && Instant::now() >= deadline {
                return Err(OutOfTime);
            }
            let next = automaton.next_state(cache, state, line[at]);
            state = next.map_err(|_| OutOfTime)?;
            if !state.is_tagged() {
                continue;
            }
            // That a match ended is seen at the byte behind it.
            if state.is_match() {
                found = Some(at);
                if wanted == MatchEnd::Earliest {
                    return Ok(found);
                }
            } else if state.is_dead() {
                return Ok(found);
            }
        }
        let end = match line.get(range.end) {
            Some(&behind) => automaton.next_state(cache, state, behind),
            None => automaton.next_eoi_state(cache, state),
        };
        if end.map_err(|_| OutOfTime)?.is_match() {
            found = Some(range.end);
        }
        Ok(found)
    }
}

fn with_ascii_words(pattern: Hir) -> Hir {
    let all = |parts: Vec<Hir>| parts.into_iter().map(with_ascii_words).collect();
    match pattern.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(class) => Hir::class(class),
        HirKind::Look(look) => Hir::look(match look {
            Look::WordUnicode => Look::WordAscii,
            Look::WordUnicodeNegate => Look::WordAsciiNegate,
            Look::WordStartUnicode => Look::WordStartAscii,
            Look::WordEndUnicode => Look::WordEndAscii,
            Look::WordStartHalfUnicode => Look::WordStartHalfAscii,
            Look::WordEndHalfUnicode => Look::WordEndHalfAscii,
            other => other,
        }),
        HirKind::Repetition(repetition) => Hir::repetition(Repetition {
            sub: Box::new(with_ascii_words(*repetition.sub)),
            ..repetition
        }),
        HirKind::Capture(Capture { sub, .. }) => with_ascii_words(*sub),
        HirKind::Concat(parts) => Hir::concat(all(parts)),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)),
    }
}
