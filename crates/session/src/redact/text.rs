//! Values in text that is not JSON, or broken JSON: what stands behind a name and a `=` or `:`.
//!
//! It serves notes, stderr, headers, files of settings and code alike. It does not guess which of them a text is, and rather hides
//! too much than too little.

use super::key::{KeyNameSource, SecretKeyNames};
use crate::REDACTED_CREDENTIAL;
use mcp_proxy_wire::Span;

/// A name is looked for so far before its sign.
const LONGEST_NAME: usize = 128;
/// Signs and blanks between a name and its sign: quotes, `]`, and what Markdown and TypeScript write there.
const LONGEST_CLOSING: usize = 16;

/// Words that may stand between `Authorization:` and the credential.
const SCHEMES: &[&str] = &[
    "bearer",
    "basic",
    "digest",
    "dpop",
    "token",
    "negotiate",
    "ntlm",
    "apikey",
    "aws4-hmac-sha256",
    "hawk",
    "oauth",
    "signature",
];

/// Ways to say nothing, or yes and no.
const LITERALS: &[&str] = &["true", "false", "null"];

/// A name whose value is hidden, as it stands in a text.
struct NamedPlace {
    start: usize,
    end: usize,
    by: KeyNameSource,
}

/// All values in `text` that belong to one of `keys`.
pub(super) fn values(text: &[u8], keys: &SecretKeyNames) -> Vec<Span> {
    let mut found = Vec::new();
    let mut done = 0;
    for at in memchr::memchr2_iter(b'=', b':', text) {
        if at >= done
            && let Some(after) = sign_end(text, at)
            && let Some(name) = name_before(text, at, keys)
            && let Some(value) = value_after(text, at, after, &name)
        {
            done = value.end;
            found.push(value);
        }
    }
    found
}

/// The end of the sign at `at`: `=`, `:`, `=>` or `:=`. The signs `::`, `==` and `://` say something else.
fn sign_end(text: &[u8], at: usize) -> Option<usize> {
    match (text[at], &text[at + 1..]) {
        (b'=', [b'>', ..]) | (b':', [b'=', ..]) => Some(at + 2),
        (b':', [b':', ..] | [b'/', b'/', ..]) | (b'=', [b'=', ..]) => None,
        _ => Some(at + 1),
    }
}

/// The name before the sign at `at`, if it is one of `keys`. It may have two words: `API key`.
fn name_before(text: &[u8], at: usize, keys: &SecretKeyNames) -> Option<NamedPlace> {
    let near = &text[at.saturating_sub(LONGEST_CLOSING)..at];
    let end = at - count_back(near, |byte| b" \t\"'`\\]*?".contains(byte));
    let start = end - letters_before(text, end);
    let word = &text[start..end];
    let pair = match start.checked_sub(1) {
        Some(blank) if text[blank] == b' ' => &text[blank - letters_before(text, blank)..end],
        _ => word,
    };
    let flag = &word[word.iter().take_while(|byte| **byte == b'-').count()..];
    let by = keys.named(pair).or_else(|| keys.named(flag))?;
    // Of two words, `Unexpected token`, both must be a name's.
    let is_harmless = keys.is_harmless(word) || keys.is_harmless(pair);
    (by == KeyNameSource::User || !is_harmless).then_some(NamedPlace { start, end, by })
}

fn letters_before(text: &[u8], end: usize) -> usize {
    let near = &text[end.saturating_sub(LONGEST_NAME)..end];
    count_back(near, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | 0x80..)
    })
}

/// What the sign from `at` to `after` gives to a name.
fn value_after(text: &[u8], at: usize, after: usize, name: &NamedPlace) -> Option<Span> {
    let is_tight = text[at] == b'=' && name.end == at && !text.get(after).is_some_and(is_blank);
    let mut start = after + count(&text[after..], is_blank);
    if text[name.start..name.end]
        .to_ascii_lowercase()
        .ends_with(b"authorization")
    {
        start += scheme_len(&text[start..]);
    }
    let value = match quoted_at(text, start) {
        Some(inside) => inside,
        None if is_tight => parameter_at(text, start),
        None => line_at(text, start, name),
    };
    let content = &text[value.start..value.end];
    let is_literal = name.by == KeyNameSource::Preset
        && LITERALS
            .iter()
            .any(|word| content.eq_ignore_ascii_case(word.as_bytes()));
    let is_masked = content.ends_with(REDACTED_CREDENTIAL.as_bytes());
    (!content.is_empty() && !is_literal && !is_masked).then_some(value)
}

/// The length of a scheme and the blanks behind it, if a text begins with one.
fn scheme_len(text: &[u8]) -> usize {
    let len = count(text, |byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    let blanks = count(&text[len..], is_blank);
    let is_scheme = SCHEMES
        .iter()
        .any(|known| text[..len].eq_ignore_ascii_case(known.as_bytes()));
    if is_scheme && blanks > 0 {
        len + blanks
    } else {
        0
    }
}

/// The content of the string at `start`, to the end of the text if it does not close. A letter or two may stand before its quote, as
/// Python writes bytes, and a quote in it may be escaped or doubled.
fn quoted_at(text: &[u8], start: usize) -> Option<Span> {
    let prefix = &text[start..text.len().min(start + 2)];
    let start = start + count(prefix, |byte| b"bBrRfFuU@$".contains(byte));
    let start = start + count(&text[start..], |byte| *byte == b'\\');
    let quote = *text.get(start).filter(|byte| b"\"'`".contains(byte))?;
    let len = match count(&text[start..], |byte| *byte == quote) {
        2 => return Some(Span::new(start + 1, start + 1)),
        3.. => 3,
        _ => 1,
    };
    let start = start + len;
    let mut end = start;
    while let Some(found) = text
        .get(end..)
        .and_then(|rest| memchr::memchr2(quote, b'\\', rest))
    {
        end += found;
        let quotes = count(&text[end..], |byte| *byte == quote);
        match quotes {
            0 => end += 2,
            _ if quotes == len || len == 3 && quotes > 3 => return Some(Span::new(start, end)),
            _ => end += quotes,
        }
    }
    Some(Span::new(start, text.len()))
}

/// The value of `name=value` at `start`: up to white space, a closing quote, or where another parameter follows.
fn parameter_at(text: &[u8], start: usize) -> Span {
    let ends = |at: &usize| {
        let rest = &text[at + 1..];
        match text[*at] {
            // `it's` is one word, and so is a shell's `a"b"`.
            b'"' | b'\'' => {
                let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
                !(*at > start && is_letter(text.get(at - 1)) && is_letter(rest.first()))
            }
            b'&' => rest.starts_with(b"amp;") || is_parameter(rest),
            b';' | b',' => is_parameter(rest),
            byte => byte.is_ascii_whitespace(),
        }
    };
    let end = (start..text.len()).find(ends);
    Span::new(start, end.unwrap_or(text.len()))
}

/// Whether a text begins with another `name=`.
fn is_parameter(text: &[u8]) -> bool {
    let near = &text[..text.len().min(LONGEST_NAME)];
    let near = &near[count(near, is_blank)..];
    let len = count(near, |byte| {
        byte.is_ascii_alphanumeric() || b"_-.[]%".contains(byte)
    });
    len > 0 && near.get(len) == Some(&b'=')
}

/// The rest of the line at `start`, up to the quote that the name stands behind, if it does.
fn line_at(text: &[u8], start: usize, name: &NamedPlace) -> Span {
    let quote = name.start.checked_sub(1).map(|before| text[before]);
    let quote = quote.filter(|quote| b"\"'".contains(quote) && text.get(name.end) != Some(quote));
    let rest = &text[start..];
    let len = count(rest, |byte| {
        !matches!(byte, b'\r' | b'\n') && Some(*byte) != quote
    });
    let around = |byte: &u8| is_blank(byte) || *byte == b',';
    Span::new(start, start + len - count_back(&rest[..len], around))
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
