//! `/regex/`: a regular expression over the bytes of a message, in time linear in their number.

use regex::bytes::{Regex, RegexBuilder};

use super::FilterError;
use super::form::CaseMatching;

/// Memory for a compiled pattern; `.{1000}{1000}` needs more, and is refused.
const LARGEST: usize = 4 << 20;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(super) struct Pattern(Regex);

impl Pattern {
    pub(super) fn new(pattern: &str, case: CaseMatching) -> Result<Pattern, FilterError> {
        RegexBuilder::new(pattern)
            .size_limit(LARGEST)
            .case_insensitive(case == CaseMatching::Insensitive)
            .build()
            .map(Pattern)
            .map_err(|error| explain(pattern, &error))
    }

    pub(super) fn is_in(&self, bytes: &[u8]) -> bool {
        self.0.is_match(bytes)
    }
}

/// The crate draws the pattern with marks under it, over several lines; the last says what is wrong.
fn explain(pattern: &str, error: &regex::Error) -> FilterError {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    let why = last.strip_prefix("error: ").unwrap_or(last);
    let mark = text
        .lines()
        .find(|line| !line.trim().is_empty() && line.trim().chars().all(|c| c == '^'));
    let place = mark
        .and_then(|mark| mark.find('^'))
        .and_then(|at| at.checked_sub(4));
    // The mark may stand behind the last character.
    let offsets = || {
        pattern
            .char_indices()
            .map(|(offset, _)| offset)
            .chain([pattern.len()])
    };
    match place.and_then(|letters| offsets().nth(letters)) {
        Some(offset) => FilterError::at(pattern, offset, why.to_owned()),
        None => FilterError::new(pattern, None, why.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_pattern_names_the_place() {
        let error = Pattern::new("ab(c", CaseMatching::Sensitive).unwrap_err();
        assert_eq!(error.place(), Some(3));
        assert!(Pattern::new("(.{1000}){1000}", CaseMatching::Sensitive).is_err());
    }
}
