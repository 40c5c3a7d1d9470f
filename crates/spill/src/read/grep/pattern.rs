//! A pattern that is looked for in many lines at once.

use std::ops::Range;

use memchr::memchr;
use regex_automata::Input;
use regex_automata::meta::{Cache, Config, Regex};
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Capture, Class, ClassBytes, ClassBytesRange, ClassUnicode};
use regex_syntax::hir::{ClassUnicodeRange, Hir, HirKind, Look, Repetition};

use super::PIECE;
use super::required_literals::RequiredLiterals;
use crate::SpillError;
use crate::line_index::last_line_start;

/// Of a compiled pattern, so that no pattern costs more than so much for each byte. It is enough for `\w{1,30}@\w{1,30}`, whose
/// words are those of all languages.
const PATTERN_SIZE: usize = 10 << 20;
/// The time is looked at between pieces. Larger patterns than this may be slow, so they get smaller pieces.
const LARGE_PATTERN: usize = 512 << 10;
/// Of what is remembered during a search.
const CACHE_SIZE: usize = 8 << 20;

/// A compiled pattern that never matches a line break.
pub(super) struct LinePattern {
    regex: Regex,
    cache: Cache,
    literals: Option<RequiredLiterals>,
    /// Whether it matches where there is nothing, which is not worth counting.
    matches_nothing: bool,
}

impl LinePattern {
    /// A pattern that is not a regular expression is looked for as it is written.
    pub(super) fn new(pattern: &str) -> Result<LinePattern, SpillError> {
        let parsed = parse(pattern).or_else(|| parse(&regex_syntax::escape(pattern)));
        LinePattern::compile(parsed.ok_or(SpillError::PatternTooLarge)?)
    }

    /// The first line at or behind `at`, where a line begins, that matches.
    pub(super) fn find_line(&mut self, piece: &[u8], at: usize) -> Option<Range<usize>> {
        let place = self.find_place(piece, at)?;
        let start = at + last_line_start(&piece[at..place]);
        Some(start..line_end(piece, place))
    }

    /// How much of a file is searched before it is asked how long that took.
    pub(super) fn piece_size(&self) -> usize {
        let times_larger = self.regex.memory_usage() / LARGE_PATTERN;
        PIECE / (1 + times_larger)
    }

    /// How many matches are in a line that matches.
    pub(super) fn count_in(&mut self, piece: &[u8], line: Range<usize>) -> u64 {
        if self.matches_nothing {
            return 1;
        }
        let (mut count, mut at) = (0, line.start);
        while let Some(found) = self
            .regex
            .search_with(&mut self.cache, &Input::new(piece).range(at..line.end))
        {
            count += 1;
            at = found.end();
        }
        count
    }

    /// Where the match in a line begins.
    pub(super) fn place(&mut self, piece: &[u8], line: Range<usize>) -> usize {
        let start = line.start;
        let found = self
            .regex
            .search_with(&mut self.cache, &Input::new(piece).range(line));
        found.map_or(start, |found| found.start())
    }

    /// Some place in the first line that matches. Which one does not matter, so the search can stop before it knows where
    /// the match begins or ends.
    fn find_place(&mut self, piece: &[u8], mut at: usize) -> Option<usize> {
        while let Some(literals) = &mut self.literals
            && at < piece.len()
        {
            let line = literals.find_line(piece, at)?;
            let end = line.end;
            let input = Input::new(piece).range(line).earliest(true);
            if self
                .regex
                .search_half_with(&mut self.cache, &input)
                .is_some()
            {
                return Some(end);
            }
            literals.note_in_vain();
            if !literals.is_worth_it() {
                self.literals = None;
            }
            at = end + 1;
        }
        if at >= piece.len() {
            return None;
        }
        let input = Input::new(piece).range(at..).earliest(true);
        let found = self.regex.search_half_with(&mut self.cache, &input)?;
        // Behind the last line break is not another line.
        let is_behind = found.offset() == piece.len() && piece.ends_with(b"\n");
        (!is_behind).then_some(found.offset())
    }

    fn compile(parsed: Hir) -> Result<LinePattern, SpillError> {
        let pattern = within_line(parsed);
        let matches_nothing = pattern
            .properties()
            .minimum_len()
            .is_none_or(|least| least == 0);
        let config = Config::new()
            .utf8_empty(false)
            .which_captures(WhichCaptures::Implicit)
            .nfa_size_limit(Some(PATTERN_SIZE))
            .hybrid_cache_capacity(CACHE_SIZE);
        let regex = Regex::builder()
            .configure(config)
            .build_from_hir(&pattern)
            .map_err(|_| SpillError::PatternTooLarge)?;
        Ok(LinePattern {
            cache: regex.create_cache(),
            regex,
            literals: RequiredLiterals::of(&pattern),
            matches_nothing,
        })
    }
}

fn parse(pattern: &str) -> Option<Hir> {
    ParserBuilder::new()
        .case_insensitive(true)
        .multi_line(true)
        .utf8(false)
        .build()
        .parse(pattern)
        .ok()
}

fn line_end(piece: &[u8], at: usize) -> usize {
    memchr(b'\n', &piece[at..]).map_or(piece.len(), |end| at + end)
}

/// The same pattern for a line that stands among others: no part of it matches a line break, and the beginning and the end
/// of the text are those of the line.
fn within_line(pattern: Hir) -> Hir {
    let all = |parts: Vec<Hir>| parts.into_iter().map(within_line).collect();
    match pattern.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) if literal.0.contains(&b'\n') => Hir::fail(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(class) => Hir::class(without_line_break(class)),
        HirKind::Look(Look::Start) => Hir::look(Look::StartLF),
        HirKind::Look(Look::End) => Hir::look(Look::EndLF),
        HirKind::Look(look) => Hir::look(look),
        HirKind::Repetition(repetition) => Hir::repetition(Repetition {
            sub: Box::new(within_line(*repetition.sub)),
            ..repetition
        }),
        HirKind::Capture(Capture { sub, .. }) => within_line(*sub),
        HirKind::Concat(parts) => Hir::concat(all(parts)),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)),
    }
}

fn without_line_break(class: Class) -> Class {
    match class {
        Class::Unicode(mut class) => {
            class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
            Class::Unicode(class)
        }
        Class::Bytes(mut class) => {
            class.difference(&ClassBytes::new([ClassBytesRange::new(b'\n', b'\n')]));
            Class::Bytes(class)
        }
    }
}
