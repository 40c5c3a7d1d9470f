//! Values in text that is no JSON, or broken JSON: what stands behind a name and a `:` or `=`.
//!
//! It serves notes, stderr, headers, files of settings and code alike, so it can only guess. What it is unsure about it takes for
//! a value: a word that is hidden needlessly does less harm than a secret that is shown.

use super::preset::{NO_VALUES, SCHEMES};
use crate::MASKED;
use mcp_proxy_wire::Span;

/// A name is looked for so far before its `=` or `:`.
const LONGEST_NAME: usize = 128;

/// The value that the sign (`=` or `:`) at `at` gives to a name that `is_secret`.
pub(super) fn value_of(text: &[u8], at: usize, is_secret: impl Fn(&[u8]) -> bool) -> Option<Span> {
    if let Some(key) = quoted_before(text, at) {
        return is_secret(key).then(|| scalar_after(text, at + 1)).flatten();
    }
    let name = name_before(text, at)?;
    let named = is_secret(name.word(text))
        || is_secret(name.after_escape(text))
        || name.pair(text).is_some_and(is_secret);
    named.then(|| value_after(text, at, name.0.start)).flatten()
}

/// A bare name in a text.
struct Name(Span);

impl Name {
    fn word<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.0.start..self.0.end]
    }

    /// The name without its first letter, if that may belong to an escape of a broken string: `\npassword`.
    fn after_escape<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        let word = self.word(text);
        match self.0.start.checked_sub(1).map(|before| text[before]) {
            Some(b'\\') if matches!(word[0], b'n' | b'r' | b't') => &word[1..],
            _ => word,
        }
    }

    /// The name with the word before it: `API key`.
    fn pair<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        let end = self.0.start.checked_sub(1)?;
        let first = letters_before(text, end);
        (text[end] == b' ' && first > 0).then(|| &text[end - first..self.0.end])
    }
}

/// The word before the sign at `at`; `None` if the sign is one of several: `::`, `==`, `!=`.
fn name_before(text: &[u8], at: usize) -> Option<Name> {
    let mut end = at;
    // Go's `:=` is one sign.
    if text[at] == b'=' && end > 0 && text[end - 1] == b':' {
        end -= 1;
    }
    let blank = text[end.saturating_sub(LONGEST_NAME)..end]
        .iter()
        .rev()
        .take_while(|byte| is_blank(byte));
    let end = end - blank.count();
    let len = letters_before(text, end);
    (len > 0).then(|| Name(Span::new(end - len, end)))
}

fn letters_before(text: &[u8], end: usize) -> usize {
    let near = &text[end.saturating_sub(LONGEST_NAME)..end];
    let is_name =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | 0x80..);
    near.iter().rev().take_while(|byte| is_name(byte)).count()
}

/// What follows the sign at `at`: between quotes, or up to where a parameter, a variable or a field ends.
fn value_after(text: &[u8], at: usize, name: usize) -> Option<Span> {
    let mut start = at + 1;
    // Ruby's `=>` is one sign; `::`, `:=` and `==` are signs of another kind.
    match (text[at], text.get(start)) {
        (b'=', Some(b'>')) => start += 1,
        (_, Some(b':' | b'=')) => return None,
        _ => {}
    }
    let spaced = start + count(&text[start..], is_blank);
    if let Some(inside) = quoted_at(text, spaced) {
        return Some(inside);
    }
    let word = word_at(text, spaced, sign_of(text, at, spaced))?;
    let is = |known: &&str| text[word.start..word.end].eq_ignore_ascii_case(known.as_bytes());
    if SCHEMES.iter().any(&is) {
        let next = word.end + count(&text[word.end..], is_blank);
        return match is(&"digest") {
            true => line_at(text, next, name),
            false => word_at(text, next, Sign::Colon),
        };
    }
    if text[at] == b':' && NO_VALUES.iter().any(&is) {
        return None;
    }
    let is_list = text[word.start..word.end].contains(&b'=') && text.get(word.end) == Some(&b';');
    match is_list {
        true => line_at(text, word.start, name),
        false => Some(word),
    }
}

/// What a value ends at depends on how it is given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// `a=b`: a parameter in a URL, a list or a command line.
    Tight,
    /// `a: b`, `a = b`: a line of its own, or a sentence.
    Colon,
}

fn sign_of(text: &[u8], at: usize, value: usize) -> Sign {
    match text[at] == b'=' && value == at + 1 {
        true => Sign::Tight,
        false => Sign::Colon,
    }
}

/// The word at `start`, without what belongs to the sentence or list around it.
fn word_at(text: &[u8], start: usize, sign: Sign) -> Option<Span> {
    let rest = &text[start..];
    let ends: &[u8] = match sign {
        Sign::Tight => b"&\"'<>,;",
        Sign::Colon => b"\"'<>;",
    };
    let mut word = &rest[..count(rest, |byte| {
        !byte.is_ascii_whitespace() && !ends.contains(byte)
    })];
    if word.starts_with(MASKED.as_bytes()) {
        return None;
    }
    let is_around = |byte: &u8| match sign {
        Sign::Tight => *byte == b'\\',
        Sign::Colon => b",.()[]{}`\\".contains(byte),
    };
    // A mark ends with a bracket of its own.
    if !word.starts_with(b"[") {
        word = &word[..word.len() - count_back(word, is_around)];
    }
    (word.iter().any(|byte| !is_around(byte))).then(|| Span::new(start, start + word.len()))
}

/// The line at `start`, up to the quote that the name at `name` stands behind, if it does.
fn line_at(text: &[u8], start: usize, name: usize) -> Option<Span> {
    let quote = name.checked_sub(1).map(|before| text[before]);
    let quote = quote.filter(|byte| matches!(byte, b'"' | b'\''));
    let rest = &text[start..];
    let len = count(rest, |byte| {
        !matches!(byte, b'\r' | b'\n') && Some(*byte) != quote
    });
    (len > 0).then(|| Span::new(start, start + len))
}

/// The string that ends before `end`. Its quotes may be escaped, where JSON stands in a string of something that is broken.
fn quoted_before(text: &[u8], end: usize) -> Option<&[u8]> {
    let near = text[end.saturating_sub(LONGEST_NAME)..end].trim_ascii_end();
    let quote = *near.last().filter(|byte| matches!(byte, b'"' | b'\''))?;
    let near = &near[..near.len() - 1];
    let key = &near[memchr::memrchr(quote, near)? + 1..];
    Some(&key[..key.len() - count_back(key, |byte| *byte == b'\\')])
}

/// What follows a quoted key: the content of a string, to the end of the text if it does not close, or a number, `true` or `false`.
fn scalar_after(text: &[u8], start: usize) -> Option<Span> {
    let start = start + count(&text[start..], u8::is_ascii_whitespace);
    if let Some(inside) = quoted_at(text, start) {
        return Some(inside);
    }
    let scalar = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
    let len = count(&text[start..], scalar);
    let value = &text[start..start + len];
    let is_number = matches!(value.first(), Some(b'-' | b'0'..=b'9'));
    (is_number || matches!(value, b"true" | b"false")).then(|| Span::new(start, start + len))
}

/// The content of the string at `start`, if there is one.
fn quoted_at(text: &[u8], start: usize) -> Option<Span> {
    let start = start + count(&text[start..], |byte| *byte == b'\\');
    let quote = *text
        .get(start)
        .filter(|byte| matches!(byte, b'"' | b'\''))?;
    let start = start + 1;
    let mut end = start;
    while let Some(at) = text
        .get(end..)
        .and_then(|rest| memchr::memchr2(quote, b'\\', rest))
    {
        end += at;
        if text[end] == quote {
            return Some(Span::new(start, end));
        }
        // Whatever is escaped belongs to the string.
        end += 2;
    }
    Some(Span::new(start, text.len()))
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// How many bytes at the beginning are so.
fn count(text: &[u8], so: impl Fn(&u8) -> bool) -> usize {
    text.iter().take_while(|byte| so(byte)).count()
}

/// How many bytes at the end are so.
fn count_back(text: &[u8], so: impl Fn(&u8) -> bool) -> usize {
    text.iter().rev().take_while(|byte| so(byte)).count()
}
