//! A pattern that is looked for in many lines at once.

use std::ops::Range;
use std::time::Instant;

use memchr::memchr;
use regex_automata::Input;
use regex_automata::meta::{Cache, Config, Regex};
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Capture, Class, ClassBytes, ClassBytesRange, ClassUnicode};
use regex_syntax::hir::{ClassUnicodeRange, Hir, HirKind, Look, Repetition};

use super::PIECE;
use super::long_line::{LongLinePattern, MatchEnd, OutOfTime};
use super::required_literals::RequiredLiterals;
use crate::line_index::last_line_start;
use crate::{PatternReading, SpillError};

/// Of a compiled pattern, so that no pattern costs more than so much for each byte. It is enough for `\w{1,30}@\w{1,30}`, whose
/// words are those of all languages.
pub(super) const PATTERN_SIZE: usize = 10 << 20;
/// The time is looked at between pieces. Larger patterns than this may be slow, so they get smaller pieces.
const LARGE_PATTERN: usize = 512 << 10;
/// Of what is remembered during a search.
pub(super) const CACHE_SIZE: usize = 8 << 20;

/// The beginning of a match in a long line is looked for in this many bytes before its end.
const LONG_LINE_WINDOW: usize = 4096;

/// What was counted in a long line.
pub(super) struct LongLineCount {
    pub(super) occurrences: u64,
    pub(super) is_out_of_time: bool,
}

/// A compiled pattern that never matches a line break.
pub(super) struct LinePattern {
    regex: Regex,
    cache: Cache,
    parsed: Hir,
    /// Made when the first long line comes.
    for_long_lines: Option<LongLinePattern>,
    reading: PatternReading,
    piece_size: usize,
    /// No search goes on after that.
    deadline: Instant,
    literals: Option<RequiredLiterals>,
    /// Whether it matches where there is nothing, which is not worth counting.
    matches_nothing: bool,
}

impl LinePattern {
    /// A pattern that is not a regular expression is looked for as it is written.
    pub(super) fn new(pattern: &str, deadline: Instant) -> Result<LinePattern, SpillError> {
        let (parsed, reading) = match parse(pattern) {
            Some(parsed) => (Some(parsed), PatternReading::Regex),
            None => {
                let escaped = regex_syntax::escape(pattern);
                (parse(&escaped), PatternReading::Literal)
            }
        };
        let parsed = parsed.ok_or(SpillError::PatternTooLarge)?;
        LinePattern::compile(parsed, reading, deadline)
    }

    /// How the pattern was understood.
    pub(super) fn reading(&self) -> PatternReading {
        self.reading
    }

    /// The first line at or behind `at`, where a line begins, that matches.
    pub(super) fn find_line(
        &mut self,
        piece: &[u8],
        at: usize,
    ) -> Result<Option<Range<usize>>, OutOfTime> {
        self.check_time()?;
        Ok(self.find_place(piece, at).map(|place| {
            let start = at + last_line_start(&piece[at..place]);
            start..line_end(piece, place)
        }))
    }

    /// How much of a file is searched before it is asked how long that took.
    pub(super) fn piece_size(&self) -> usize {
        self.piece_size
    }

    /// How many matches are in a line that matches.
    pub(super) fn count_in(&mut self, piece: &[u8], line: Range<usize>) -> Result<u64, OutOfTime> {
        if self.matches_nothing {
            return Ok(1);
        }
        let (mut count, mut at) = (0, line.start);
        while let Some(found) = self
            .regex
            .search_with(&mut self.cache, &Input::new(piece).range(at..line.end))
        {
            count += 1;
            at = found.end();
            self.check_time()?;
        }
        Ok(count)
    }

    /// Where it is known first that a long line matches.
    pub(super) fn find_in_long_line(
        &mut self,
        piece: &[u8],
        line: Range<usize>,
    ) -> Result<Result<Option<usize>, OutOfTime>, SpillError> {
        let deadline = self.deadline;
        let pattern = self.for_long_lines()?;
        Ok(pattern.find(piece, line, MatchEnd::Earliest, deadline))
    }

    /// How many matches are in a long line that matches.
    pub(super) fn count_in_long_line(
        &mut self,
        piece: &[u8],
        line: Range<usize>,
    ) -> Result<LongLineCount, SpillError> {
        let mut count = LongLineCount {
            occurrences: 1,
            is_out_of_time: false,
        };
        if self.matches_nothing {
            return Ok(count);
        }
        let deadline = self.deadline;
        let pattern = self.for_long_lines()?;
        let (mut found, mut at) = (0, line.start);
        loop {
            match pattern.find(piece, at..line.end, MatchEnd::Real, deadline) {
                Ok(Some(end)) => (found, at) = (found + 1, end),
                Ok(None) => break,
                Err(OutOfTime) => {
                    count.is_out_of_time = true;
                    break;
                }
            }
        }
        count.occurrences = count.occurrences.max(found);
        Ok(count)
    }

    /// About where a match in a long line begins that is known at `end`.
    pub(super) fn place_before(&mut self, piece: &[u8], end: usize) -> usize {
        let start = end.saturating_sub(LONG_LINE_WINDOW);
        let input = Input::new(piece).range(start..end);
        let found = self.regex.search_with(&mut self.cache, &input);
        found.map_or(end, |found| found.start())
    }

    fn for_long_lines(&mut self) -> Result<&mut LongLinePattern, SpillError> {
        if self.for_long_lines.is_none() {
            self.for_long_lines = Some(LongLinePattern::new(&self.parsed)?);
        }
        self.for_long_lines
            .as_mut()
            .ok_or(SpillError::PatternTooLarge)
    }

    fn check_time(&self) -> Result<(), OutOfTime> {
        match Instant::now() < self.deadline {
            true => Ok(()),
            false => Err(OutOfTime),
        }
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

    fn compile(
        parsed: Hir,
        reading: PatternReading,
        deadline: Instant,
    ) -> Result<LinePattern, SpillError> {
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
            piece_size: PIECE / (1 + regex.memory_usage() / LARGE_PATTERN),
            cache: regex.create_cache(),
            regex,
            literals: RequiredLiterals::of(&pattern),
            parsed: pattern,
            for_long_lines: None,
            reading,
            deadline,
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
