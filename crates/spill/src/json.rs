//! JSON as text: checked, unescaped and without white space. Numbers, strings and the order of members stay as they are.

mod block;
mod checker;
mod compactor;
mod members;
mod text;
mod unescape;

use std::borrow::Cow;
use std::ops::Range;

use checker::Checker;
use compactor::Compactor;

pub(crate) use block::{BLOCK, brackets, places_of};
pub(crate) use compactor::string_end;
pub(crate) use members::{Members, only};
pub(crate) use text::{JsonText, JsonWindow};
pub(crate) use unescape::{SLACK, Unescaping, unescape};

/// What the outermost value of a JSON text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonRoot {
    Object,
    Array,
    Scalar,
}

/// What is known about a text that is JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckedJson {
    pub(crate) root: JsonRoot,
    /// Bytes of white space outside of strings.
    gap_bytes: usize,
    /// Where the longest string is, which is not worth reading twice.
    longest_string: Range<usize>,
    /// The commas or the bracket behind the first values of the outermost container.
    root_ends: Vec<usize>,
}

/// Checks the grammar of `text`, which is UTF-8. Nothing if it is not JSON.
pub(crate) fn check(text: &[u8]) -> Option<CheckedJson> {
    let mut checker = Checker::new();
    checker.take(text, true)?;
    Some(checker.finish())
}

/// The text without white space outside of strings.
pub(crate) fn compact<'a>(text: Cow<'a, [u8]>, checked: &CheckedJson) -> Cow<'a, [u8]> {
    if checked.gap_bytes == 0 {
        return text;
    }
    let mut text = text.into_owned();
    let length = Compactor::default().compact(&mut text);
    text.truncate(length);
    Cow::Owned(text)
}

/// The length of the string at the beginning of `text`, quotes included. All of `text` if it does not end.
pub(crate) fn string_length(text: &[u8]) -> usize {
    string_end(text, 1).unwrap_or(text.len())
}

#[cfg(test)]
mod tests;
