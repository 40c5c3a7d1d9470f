//! Keys by name: whole keys of JSON objects, and as well as can be in text that only looks like JSON.

use super::RedactionError;
use mcp_proxy_wire::Span;
use regex::bytes::Regex;

/// A name in text is looked for so far before its `=` or `:`.
const LONGEST_NAME: usize = 128;

/// Names of keys whose values are hidden.
#[derive(Debug)]
pub(super) struct Keys(Regex);

/// What `_` stands for.
#[derive(Clone, Copy)]
enum Joint {
    Itself,
    /// However people join two words.
    AnyOrNone,
}

impl Keys {
    /// `asked` for by the user, and `preset` by us. `None` if there are none.
    pub(super) fn new(asked: &[String], preset: &[&str]) -> Result<Option<Keys>, RedactionError> {
        if asked.iter().any(String::is_empty) {
            return Err(RedactionError::EmptyKey);
        }
        if asked.is_empty() && preset.is_empty() {
            return Ok(None);
        }
        let asked = asked.iter().map(|glob| fragment(glob, Joint::Itself));
        let preset = preset.iter().map(|glob| fragment(glob, Joint::AnyOrNone));
        let any = asked.chain(preset).collect::<Vec<_>>().join("|");
        // Bytes, not characters: that keeps the automaton small, and keys are often no longer than a word.
        Regex::new(&format!("(?is-u)^(?:{any})$"))
            .map(|whole| Some(Keys(whole)))
            .map_err(RedactionError::TooLarge)
    }

    /// Whether `key`, escapes resolved, is one of them.
    pub(super) fn is(&self, key: &[u8]) -> bool {
        self.0.is_match(key)
    }

    /// The values in `text` that seem to belong to one of them: `"key": value` and `key=value`.
    pub(super) fn in_text<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = Span> + 'a {
        let mut done = 0;
        memchr::memchr2_iter(b'=', b':', text).filter_map(move |at| {
            if at < done {
                return None;
            }
            let (key, value) = match text[at] {
                b'=' => (name_before(text, at)?, word_after(text, at + 1)?),
                _ => (quoted_before(text, at)?, value_after(text, at + 1)?),
            };
            if !self.is(key) {
                return None;
            }
            done = value.end;
            Some(value)
        })
    }
}

/// The regular expression for a name.
fn fragment(glob: &str, joint: Joint) -> String {
    let mut pattern = String::new();
    for letter in glob.chars() {
        match (letter, joint) {
            ('*', _) => pattern.push_str(".*"),
            ('_', Joint::AnyOrNone) => pattern.push_str("[-_. ]?"),
            (letter, _) if letter.is_ascii() => {
                pattern.push_str(&regex::escape(letter.encode_utf8(&mut [0; 4])));
            }
            (letter, _) => pattern.push_str(&format!("(?u:{letter})")),
        }
    }
    pattern
}

/// The word that ends at `end`.
fn name_before(text: &[u8], end: usize) -> Option<&[u8]> {
    let near = &text[end.saturating_sub(LONGEST_NAME)..end];
    let is_name =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | 0x80..);
    let len = near.iter().rev().take_while(|byte| is_name(byte)).count();
    (len > 0).then(|| &text[end - len..end])
}

/// What follows `=`: between quotes, or up to where a parameter, a variable or a field ends.
fn word_after(text: &[u8], start: usize) -> Option<Span> {
    if let Some(quote @ (b'"' | b'\'')) = text.get(start) {
        let rest = &text[start + 1..];
        let len = memchr::memchr(*quote, rest).unwrap_or(rest.len());
        return Some(Span::new(start + 1, start + 1 + len));
    }
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"&\"'<>,;".contains(byte);
    let rest = &text[start..];
    let len = rest.iter().position(ends).unwrap_or(rest.len());
    (len > 0).then(|| Span::new(start, start + len))
}

/// The string that ends before `end`. Its quotes may be escaped, where JSON stands in a string of something that is broken.
fn quoted_before(text: &[u8], end: usize) -> Option<&[u8]> {
    let near = text[end.saturating_sub(LONGEST_NAME)..end].trim_ascii_end();
    let near = near.strip_suffix(b"\"")?;
    let key = &near[memchr::memrchr(b'"', near)? + 1..];
    let slashes = key.iter().rev().take_while(|byte| **byte == b'\\').count();
    Some(&key[..key.len() - slashes])
}

/// What follows `:`: the content of a string, to the end of the text if it does not close, or a number, `true` or `false`.
fn value_after(text: &[u8], start: usize) -> Option<Span> {
    let blank = text[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count();
    let start = start + blank;
    let slashes = text[start..]
        .iter()
        .take_while(|byte| **byte == b'\\')
        .count();
    if text.get(start + slashes) == Some(&b'"') {
        let start = start + slashes + 1;
        let mut end = start;
        while let Some(at) = text
            .get(end..)
            .and_then(|rest| memchr::memchr2(b'"', b'\\', rest))
        {
            end += at;
            if text[end] == b'"' {
                return Some(Span::new(start, end));
            }
            // Whatever is escaped belongs to the string.
            end += 2;
        }
        return Some(Span::new(start, text.len()));
    }
    let scalar = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
    let len = text[start..].iter().take_while(|byte| scalar(byte)).count();
    let value = &text[start..start + len];
    let is_number = matches!(value.first(), Some(b'-' | b'0'..=b'9'));
    (is_number || matches!(value, b"true" | b"false")).then(|| Span::new(start, start + len))
}
