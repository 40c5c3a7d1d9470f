//! `/regex/`: a regular expression over the bytes of a message, in time linear in their number.

use std::io::Read;

use regex::bytes::{Regex, RegexBuilder};

use super::FilterError;
use super::form::CaseMatching;
use crate::RawBody;

/// Memory for a compiled pattern; `.{1000}{1000}` needs more, and is refused.
const LARGEST: usize = 4 << 20;
/// A body in a side file is read in pieces of this size, and a match longer than the second may be missed at their border.
const PIECE: usize = 1 << 20;
const OVERLAP: usize = 64 << 10;

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

    pub(super) fn is_in_body(&self, body: &RawBody) -> bool {
        let Ok(mut file) = body.reader() else {
            return false;
        };
        let mut buffer = vec![0; PIECE];
        let mut kept = 0;
        loop {
            let mut end = kept;
            // A piece is filled, so that few borders are left.
            while end < buffer.len() {
                match file.read(&mut buffer[end..]) {
                    Ok(0) | Err(_) => return self.is_in(&buffer[..end]),
                    Ok(read) => end += read,
                }
            }
            if self.is_in(&buffer) {
                return true;
            }
            kept = OVERLAP;
            buffer.copy_within(end - kept..end, 0);
        }
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
    use std::io::Write;

    fn body_in(file: &tempfile::NamedTempFile) -> RawBody {
        RawBody::Side {
            path: file.path().to_owned(),
            len: file.as_file().metadata().unwrap().len(),
        }
    }

    #[test]
    fn a_broken_pattern_names_the_place() {
        let error = Pattern::new("ab(c", CaseMatching::Sensitive).unwrap_err();
        assert_eq!(error.place(), Some(3));
        assert!(Pattern::new("(.{1000}){1000}", CaseMatching::Sensitive).is_err());
    }

    #[test]
    fn a_match_across_two_pieces_of_a_side_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut body = vec![b'.'; PIECE - 3];
        body.extend_from_slice(b"needle....");
        file.write_all(&body).unwrap();
        assert!(
            Pattern::new("n.?edle", CaseMatching::Sensitive)
                .unwrap()
                .is_in_body(&body_in(&file))
        );
        assert!(
            !Pattern::new("needles", CaseMatching::Sensitive)
                .unwrap()
                .is_in_body(&body_in(&file))
        );
    }
}
