//! A pattern, and its matches in one line.

use std::time::Instant;

use regex_automata::Input;
use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::nfa::thompson::WhichCaptures;
use regex_automata::util::syntax;

use crate::{PatternReading, SpillError};

/// Of a compiled pattern, so that no pattern costs more than so much for each byte. It is enough for `\w{1,30}@\w{1,30}`, whose
/// words are those of all languages.
const PATTERN_SIZE: usize = 10 << 20;
/// Of what is remembered during a search.
const CACHE_SIZE: usize = 8 << 20;
/// How much of a line is searched before the clock is looked at. In a longer line, a match may be missed that is longer than a
/// quarter of this.
const WINDOW: usize = 64 << 10;
/// Patterns that are larger than this may be slow, so their windows are smaller.
const LARGE_PATTERN: usize = 512 << 10;

/// A compiled pattern, which is looked for until the time is over.
pub(super) struct LinePattern {
    regex: Regex,
    reading: PatternReading,
    window: usize,
    deadline: Instant,
}

/// What was found in a line.
#[derive(Default)]
pub(super) struct LineMatches {
    /// Where the first match begins.
    pub(super) first: Option<usize>,
    /// How many there are. A match of nothing counts only if it is the first, and ends the count.
    pub(super) count: u64,
    /// The time was over before the end of the line.
    pub(super) is_out_of_time: bool,
}

impl LinePattern {
    /// A pattern that is not a regular expression is looked for as it is written.
    pub(super) fn new(pattern: &str, deadline: Instant) -> Result<LinePattern, SpillError> {
        let (regex, reading) = match compile(pattern) {
            Err(error) if error.size_limit().is_none() => (
                compile(&regex_syntax::escape(pattern)),
                PatternReading::Literal,
            ),
            compiled => (compiled, PatternReading::Regex),
        };
        let regex = regex.map_err(|_| SpillError::PatternTooLarge)?;
        Ok(LinePattern {
            window: WINDOW / (1 + regex.memory_usage() / LARGE_PATTERN),
            regex,
            reading,
            deadline,
        })
    }

    /// How the pattern was understood.
    pub(super) fn reading(&self) -> PatternReading {
        self.reading
    }

    /// Searches a line, which has no line break.
    pub(super) fn search(&self, line: &[u8]) -> LineMatches {
        let mut matches = LineMatches::default();
        let mut at = 0;
        loop {
            if Instant::now() >= self.deadline {
                matches.is_out_of_time = true;
                return matches;
            }
            let end = line.len().min(at + self.window);
            let Some(found) = self.regex.search(&Input::new(line).range(at..end)) else {
                if end == line.len() {
                    return matches;
                }
                at = end - self.window / 4;
                continue;
            };
            if found.end() == end && end < line.len() && found.start() > at {
                // It may be longer than can be seen from here.
                at = found.start();
                continue;
            }
            if matches.first.is_none() || !found.is_empty() {
                matches.first.get_or_insert(found.start());
                matches.count += 1;
            }
            if found.is_empty() {
                return matches;
            }
            at = found.end();
        }
    }
}

fn compile(pattern: &str) -> Result<Regex, Box<BuildError>> {
    let syntax = syntax::Config::new()
        .case_insensitive(true)
        .multi_line(true)
        .utf8(false);
    let config = Config::new()
        .utf8_empty(false)
        .which_captures(WhichCaptures::Implicit)
        .nfa_size_limit(Some(PATTERN_SIZE))
        .hybrid_cache_capacity(CACHE_SIZE);
    Regex::builder()
        .syntax(syntax)
        .configure(config)
        .build(pattern)
        .map_err(Box::new)
}
