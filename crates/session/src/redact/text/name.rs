//! The name before a sign: bare, quoted, or two words.

use super::{KeyNameSource, SecretKeyNames, count_back, is_blank};
use mcp_proxy_wire::Span;

/// A name is looked for so far before its `=` or `:`.
pub(super) const LONGEST_NAME: usize = 128;

/// A name whose value is hidden.
#[derive(Clone, Copy)]
pub(super) struct SecretName<'a> {
    pub(super) name: &'a [u8],
    /// Where it begins in the text, and where it ends.
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) by: KeyNameSource,
    pub(super) kind: SecretNameKind,
}

/// Some values have a form of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretNameKind {
    /// A scheme, and then anything.
    Authorization,
    /// A list.
    Cookie,
    Other,
}

impl<'a> SecretName<'a> {
    pub(super) fn new(text: &'a [u8], span: Span, by: KeyNameSource) -> SecretName<'a> {
        let name = &text[span.start..span.end];
        let ends = |with: &[u8]| {
            let end = &name[name.len().saturating_sub(with.len())..];
            end.eq_ignore_ascii_case(with)
        };
        let kind = match () {
            () if ends(b"authorization") => SecretNameKind::Authorization,
            () if ends(b"cookie") => SecretNameKind::Cookie,
            () => SecretNameKind::Other,
        };
        SecretName {
            name,
            start: span.start,
            end: span.end,
            by,
            kind,
        }
    }

    /// The same name with its type behind it.
    pub(super) fn typed(self) -> SecretName<'a> {
        SecretName { end: 0, ..self }
    }
}

/// The name before the sign at `at`, if it is one of `keys`.
pub(super) fn name_before<'a>(
    text: &'a [u8],
    at: usize,
    keys: &SecretKeyNames,
) -> Option<SecretName<'a>> {
    if let Some(span) = quoted_before(text, at) {
        let by = keys.named(text[span.start..span.end].trim_ascii())?;
        // The value of a quoted name is never a parameter's.
        return Some(SecretName::new(text, span, by));
    }
    let span = bare_before(text, at)?;
    let word = &text[span.start..span.end];
    let pair = pair_before(text, span);
    let by = keys
        .named(word)
        .or_else(|| keys.named(after_escape(text, span)))
        .or_else(|| keys.named(pair?))?;
    // Of two words, `Unexpected token`, both must be a name's.
    let is_harmless = || keys.is_harmless(word) || pair.is_some_and(|pair| keys.is_harmless(pair));
    if by == KeyNameSource::Preset && is_harmless() {
        return None;
    }
    Some(SecretName::new(text, span, by))
}

/// The word before the sign at `at`; `None` if the sign is one of several: `::`, `==`, `!=`.
fn bare_before(text: &[u8], at: usize) -> Option<Span> {
    let mut end = at;
    // Go's `:=` is one sign.
    if text[at] == b'=' && end > 0 && text[end - 1] == b':' {
        end -= 1;
    }
    end -= count_back(&text[end.saturating_sub(LONGEST_NAME)..end], is_blank);
    // Markdown's `**token**:`, TypeScript's `token?:`.
    end -= count_back(&text[end.saturating_sub(2)..end], |byte| {
        matches!(byte, b'*' | b'`' | b'?')
    });
    let len = letters_before(text, end);
    (len > 0).then(|| Span::new(end - len, end))
}

/// The name without its first letter, if that may belong to an escape of a broken string: `\npassword`.
fn after_escape(text: &[u8], span: Span) -> &[u8] {
    let word = &text[span.start..span.end];
    match span.start.checked_sub(1).map(|before| text[before]) {
        Some(b'\\') if matches!(word[0], b'n' | b'r' | b't') => &word[1..],
        _ => word,
    }
}

/// The name with the word before it: `API key`.
fn pair_before(text: &[u8], span: Span) -> Option<&[u8]> {
    let end = span.start.checked_sub(1)?;
    let first = letters_before(text, end);
    (text[end] == b' ' && first > 0).then(|| &text[end - first..span.end])
}

fn letters_before(text: &[u8], end: usize) -> usize {
    let near = &text[end.saturating_sub(LONGEST_NAME)..end];
    count_back(near, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | 0x80..)
    })
}

/// Whether the quote behind the sign at `at` closes the string that the name stands in: `input("Password: ")`.
pub(super) fn is_in_string(text: &[u8], at: usize, quote: usize) -> bool {
    let is_letter = |at: usize| text.get(at).is_some_and(u8::is_ascii_alphanumeric);
    let from = at.saturating_sub(LONGEST_NAME);
    let line = memchr::memrchr(b'\n', &text[from..at]).map_or(from, |end| from + end + 1);
    // An apostrophe has letters around it.
    let is_apostrophe = |at: usize| at > 0 && is_letter(at - 1) && is_letter(at + 1);
    let before = memchr::memchr_iter(text[quote], &text[line..at])
        .filter(|found| !is_apostrophe(line + found))
        .count();
    before % 2 == 1 && !is_letter(quote + 1)
}

/// The content of the string that ends before `end`. Its quotes may be escaped, where JSON stands in a string of something that
/// is broken, and its beginning may be cut off.
fn quoted_before(text: &[u8], end: usize) -> Option<Span> {
    let from = end.saturating_sub(LONGEST_NAME);
    let mut near = text[from..end].trim_ascii_end();
    // `settings["token"] = `
    near = near.strip_suffix(b"]").unwrap_or(near);
    let quote = *near.last().filter(|byte| matches!(byte, b'"' | b'\''))?;
    let near = &near[..near.len() - 1];
    let near = &near[..near.len() - count_back(near, |byte| *byte == b'\\')];
    let start = match memchr::memrchr(quote, near) {
        Some(open) => from + open + 1,
        None => from + near.len() - letters_before(near, near.len()),
    };
    (start < from + near.len()).then(|| Span::new(start, from + near.len()))
}
