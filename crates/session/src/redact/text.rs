//! Values in text that is not JSON, or broken JSON: what stands behind a name and a `:` or `=`.
//!
//! It serves notes, stderr, headers, files of settings and code alike, so it can only guess. What it is unsure about it takes for
//! a value: a word that is hidden needlessly does less harm than a secret that is shown. Where a value ends is in [`extent`],
//! whether a bare word is one in [`plausibility`], and values without a sign before them (flags, XML, netrc) in [`flags_and_elements`].

mod extent;
mod flags_and_elements;
mod name;
mod plausibility;

use super::key::{KeyNameSource, SecretKeyNames};
use super::preset::{PARAMETER_SCHEMES, SCHEMES};
use crate::REDACTED_CREDENTIAL;
use extent::{
    AssignmentStyle, bare_at, block_after, line_at, list_at, quoted_at, with_next_strings,
};
use mcp_proxy_wire::Span;
use name::{SecretName, SecretNameKind};
use plausibility::{UnquotedValue, is_placeholder};

/// How many bytes a type and `=` between a name and its value may take.
const LONGEST_TYPE: usize = 64;

/// All values in `text` that seem to belong to one of `keys`.
pub(super) fn values(text: &[u8], keys: &SecretKeyNames) -> Vec<Span> {
    let mut found = Vec::new();
    let mut done = 0;
    for at in memchr::memchr2_iter(b'=', b':', text) {
        if at >= done
            && let Some(named) = name::name_before(text, at, keys)
            && let Some(value) = value_after(text, at, &named)
        {
            done = value.end;
            found.push(value);
        }
    }
    flags_and_elements::values(text, keys, &mut found);
    found
}

/// What the sign at `at` gives to a name.
fn value_after(text: &[u8], at: usize, named: &SecretName<'_>) -> Option<Span> {
    let mut start = at + 1;
    // Ruby's `=>` is one sign; `::`, `:=` and `==` are signs of another kind, and `://` belongs to a URL.
    match (text[at], text.get(start)) {
        (b'=', Some(b'>')) => start += 1,
        (b':', Some(b':' | b'=')) | (b'=', Some(b'=')) => return None,
        (b':', Some(b'/')) if text.get(start + 1) == Some(&b'/') => return None,
        _ => {}
    }
    let is_tight = start == at + 1 && named.end == at && !blank_at(text, start);
    let style = match text[at] == b'=' && is_tight {
        true => AssignmentStyle::Tight,
        false => AssignmentStyle::Loose,
    };
    if text[at] == b':' {
        start = after_emphasis(text, start);
    }
    start += count(&text[start..], is_blank);
    if text[at] == b':' {
        start = after_tag(text, start);
        if let Some(block) = block_after(text, start, named) {
            return block.value();
        }
    }
    if matches!(text.get(start), Some(b'"' | b'\'')) && name::is_in_string(text, at, start) {
        return None;
    }
    if let Some(list) = list_at(text, start) {
        return Some(list);
    }
    if let Some(inside) = quoted_at(text, start) {
        let inside = match style {
            AssignmentStyle::Tight => inside,
            AssignmentStyle::Loose => with_next_strings(text, inside),
        };
        let content = &text[inside.start..inside.end];
        return (!is_placeholder(after_scheme(content))).then_some(inside);
    }
    if let Some(next) = scheme_at(text, start) {
        return credentials_after(text, start, next, style, named);
    }
    match named.kind {
        SecretNameKind::Authorization => credentials_at(text, start, style, named),
        SecretNameKind::Cookie | SecretNameKind::Other => plain_at(text, start, at, style, named),
    }
}

/// A bare value.
fn plain_at(
    text: &[u8],
    start: usize,
    at: usize,
    style: AssignmentStyle,
    named: &SecretName<'_>,
) -> Option<Span> {
    let value = UnquotedValue {
        text,
        start,
        style,
        named,
    };
    if !value.may_be_secret() {
        // What stands behind a name and `:` may be its type, and the value comes after that.
        return match text[at] {
            b':' => typed_value(text, start, named),
            _ => None,
        };
    }
    let word = bare_at(text, start, style)?;
    if !value.is_secret(word) {
        return match text[at] {
            b':' if !value.is_prose(word) => typed_value(text, start, named),
            _ => None,
        };
    }
    let bytes = &text[word.start..word.end];
    let is_list = bytes.contains(&b'=') && bytes.last() != Some(&b'=');
    let is_list = is_list && text[word.end..].starts_with(b";");
    match is_list || (named.kind == SecretNameKind::Cookie && bytes.contains(&b'=')) {
        true => line_at(text, start, named.start),
        false => Some(word),
    }
}

/// `password: str = "x"`: what follows the type at `start`.
fn typed_value(text: &[u8], start: usize, named: &SecretName<'_>) -> Option<Span> {
    let near = &text[start..text.len().min(start + LONGEST_TYPE)];
    let len = count(near, |byte| !b"=\n\"';),".contains(byte));
    (near.get(len) == Some(&b'='))
        .then(|| value_after(text, start + len, &named.typed()))
        .flatten()
}

/// What follows `Authorization:`: the line, or for well-known schemes one word.
fn credentials_at(
    text: &[u8],
    start: usize,
    style: AssignmentStyle,
    named: &SecretName<'_>,
) -> Option<Span> {
    let value = UnquotedValue {
        text,
        start,
        style,
        named,
    };
    let word = value
        .may_be_secret()
        .then(|| bare_at(text, start, style))
        .flatten()?;
    if !value.is_secret(word) {
        return None;
    }
    match style {
        AssignmentStyle::Tight => Some(word),
        AssignmentStyle::Loose => {
            let line = line_at(text, start, named.start)?;
            let is_one_word = line.end - word.end <= 1;
            Some(if is_one_word { word } else { line })
        }
    }
}

/// What follows the scheme at `start`, which ends before `next`.
fn credentials_after(
    text: &[u8],
    start: usize,
    next: usize,
    style: AssignmentStyle,
    named: &SecretName<'_>,
) -> Option<Span> {
    let scheme = text[start..next].trim_ascii_end();
    if one_of(scheme, PARAMETER_SCHEMES) {
        return line_at(text, next, named.start).filter(|line| !is_masked(text, line.start));
    }
    if let Some(inside) = quoted_at(text, next) {
        return Some(inside);
    }
    let value = UnquotedValue {
        text,
        start: next,
        style: AssignmentStyle::Loose,
        named,
    };
    let word = value
        .may_be_secret()
        .then(|| bare_at(text, next, style))
        .flatten()?;
    (!value.is_prose(word)).then_some(word)
}

/// Where the credential begins, if a scheme and something else stand at `start`.
fn scheme_at(text: &[u8], start: usize) -> Option<usize> {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    let near = &text[start..text.len().min(start + LONGEST_TYPE)];
    let word = &near[..count(near, is_letter)];
    let end = start + word.len();
    let next = end + count(&text[end..], is_blank);
    let follows = next > end
        && text
            .get(next)
            .is_some_and(|byte| !byte.is_ascii_whitespace());
    (follows && one_of(word, SCHEMES)).then_some(next)
}

/// A string's content without a scheme at its beginning.
fn after_scheme(content: &[u8]) -> &[u8] {
    scheme_at(content, 0).map_or(content, |next| &content[next..])
}

/// Markdown's `**Token:** x`.
fn after_emphasis(text: &[u8], start: usize) -> usize {
    let len = count(&text[start..], |byte| matches!(byte, b'*' | b'_'));
    match len <= 3 && blank_at(text, start + len) {
        true => start + len,
        false => start,
    }
}

/// YAML's `password: !vault x`.
fn after_tag(text: &[u8], start: usize) -> usize {
    if text.get(start) != Some(&b'!') {
        return start;
    }
    let is_tag = |byte: &u8| byte.is_ascii_alphanumeric() || b"!:._/-".contains(byte);
    let end = start + count(&text[start..], is_tag);
    match blank_at(text, end) {
        true => end + count(&text[end..], is_blank),
        false => start,
    }
}

/// Whether somebody masked it already.
fn is_masked(text: &[u8], at: usize) -> bool {
    text[at..].starts_with(REDACTED_CREDENTIAL.as_bytes())
}

fn one_of(word: &[u8], known: &[&str]) -> bool {
    let is = |known: &&str| word.eq_ignore_ascii_case(known.as_bytes());
    known.iter().any(is)
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn blank_at(text: &[u8], at: usize) -> bool {
    text.get(at).is_some_and(is_blank)
}

/// How many bytes at the beginning are so.
fn count(text: &[u8], so: impl Fn(&u8) -> bool) -> usize {
    text.iter().take_while(|byte| so(byte)).count()
}

/// How many bytes at the end are so.
fn count_back(text: &[u8], so: impl Fn(&u8) -> bool) -> usize {
    text.iter().rev().take_while(|byte| so(byte)).count()
}
