//! Values without a sign before them: flags of command lines, elements of XML, and netrc.

use super::extent::{AssignmentStyle, bare_at, quoted_at};
use super::name::{LONGEST_NAME, SecretName};
use super::plausibility::{UnquotedValue, is_placeholder};
use super::{SecretKeyNames, count, is_blank, one_of};
use crate::redact::preset::{NO_VALUES, PROSE};
use mcp_proxy_wire::Span;

/// What an element's content may stand in.
const CDATA: &[u8] = b"<![CDATA[";

/// The attributes of an element are looked through so far.
const LONGEST_TAG: usize = 512;

/// Adds the values of flags and elements in `text` that are named by `keys`.
pub(super) fn values(text: &[u8], keys: &SecretKeyNames, found: &mut Vec<Span>) {
    let mut done = 0;
    for at in memchr::memchr2_iter(b'-', b'<', text) {
        if at < done {
            continue;
        }
        let value = match text[at] {
            b'-' => flag_value(text, at, keys),
            _ => element_value(text, at, keys),
        };
        if let Some(value) = value {
            done = value.end;
            found.push(value);
        }
    }
    if keys.has_preset() {
        found.extend(
            memchr::memmem::find_iter(text, b"password").filter_map(|at| netrc_value(text, at)),
        );
    }
}

/// What follows the flag at `at` after a space.
fn flag_value(text: &[u8], at: usize, keys: &SecretKeyNames) -> Option<Span> {
    let before = at.checked_sub(1).map(|before| text[before]);
    let is_first = before.is_none_or(|byte| byte.is_ascii_whitespace() || b"\"'".contains(&byte));
    let start = at + count(&text[at..text.len().min(at + 2)], |byte| *byte == b'-');
    let near = &text[start..text.len().min(start + LONGEST_NAME)];
    let len = count(near, |byte| {
        byte.is_ascii_alphanumeric() || b"_-".contains(byte)
    });
    let end = start + len;
    let blank = count(&text[end..], is_blank);
    if !is_first || len == 0 || blank == 0 || !near[0].is_ascii_alphabetic() {
        return None;
    }
    let name = &near[..len];
    let value = end + blank;
    if keys.has_preset() {
        match name {
            b"u" | b"U" | b"user" | b"proxy-user" => return password_at(text, value),
            b"b" | b"cookie" => {
                let word = quoted_at(text, value)
                    .or_else(|| bare_at(text, value, AssignmentStyle::Tight))?;
                return text[word.start..word.end].contains(&b'=').then_some(word);
            }
            _ => {}
        }
    }
    let by = keys.named(name)?;
    if let Some(inside) = quoted_at(text, value) {
        return (!is_placeholder(&text[inside.start..inside.end])).then_some(inside);
    }
    let named = SecretName::new(text, Span::new(start, end), by);
    let bare = UnquotedValue {
        text,
        start: value,
        style: AssignmentStyle::Tight,
        named: &named,
    };
    let is_flag = text.get(value) == Some(&b'-');
    let word = (!is_flag && bare.may_be_secret())
        .then(|| bare_at(text, value, AssignmentStyle::Tight))
        .flatten()?;
    let bytes = &text[word.start..word.end];
    // `--api-key KEY` in a help text, and `--token and --user` in a sentence.
    let is_metavariable = bytes.iter().all(|byte| !byte.is_ascii_lowercase())
        && name.len() >= bytes.len()
        && name[name.len() - bytes.len()..]
            .iter()
            .zip(bytes)
            .all(|(name, byte)| {
                name.eq_ignore_ascii_case(byte) || (*name == b'-' && *byte == b'_')
            });
    let is_word = is_metavariable || one_of(bytes, PROSE) || one_of(bytes, NO_VALUES);
    (bare.is_secret(word) && !is_word).then_some(word)
}

/// The password of `user:password` at `start`.
fn password_at(text: &[u8], start: usize) -> Option<Span> {
    let word = quoted_at(text, start).or_else(|| bare_at(text, start, AssignmentStyle::Tight))?;
    let bytes = &text[word.start..word.end];
    let colon = memchr::memchr(b':', bytes)?;
    let password = &bytes[colon + 1..];
    // The ids of a user and a group, or a URL, are none.
    let is_other = bytes[..colon].iter().all(u8::is_ascii_digit) && colon > 0
        || password.is_empty()
        || password.starts_with(b"//")
        || is_placeholder(password);
    (!is_other).then(|| Span::new(word.start + colon + 1, word.end))
}

/// The content of the element that begins at `at`, or its attribute `value`.
fn element_value(text: &[u8], at: usize, keys: &SecretKeyNames) -> Option<Span> {
    let near = &text[at + 1..text.len().min(at + LONGEST_TAG)];
    let len = count(near, |byte| {
        byte.is_ascii_alphanumeric() || b"_-.:".contains(byte)
    });
    let name = near[..len].rsplit(|byte| *byte == b':').next()?;
    let is_tag = matches!(near.get(len), Some(b'>' | b' ' | b'\t' | b'\n'));
    if !is_tag || keys.named(name).is_none() {
        return None;
    }
    let tag = memchr::memchr(b'>', near)?;
    if let Some(value) = memchr::memmem::find(&near[..tag], b" value=") {
        return quoted_at(text, at + 1 + value + b" value=".len());
    }
    let start = at + 1 + tag + 1;
    let rest = text.get(start..)?;
    if let Some(data) = rest.strip_prefix(CDATA) {
        let start = start + CDATA.len();
        let len = memchr::memmem::find(data, b"]]>").unwrap_or(data.len());
        return Some(Span::new(start, start + len));
    }
    let end = memchr::memchr(b'<', rest)?;
    let closes = rest[end + 1..]
        .strip_prefix(b"/")?
        .starts_with(&near[..len]);
    let content = rest[..end].trim_ascii();
    let lead = count(&rest[..end], u8::is_ascii_whitespace);
    (closes && !content.is_empty() && !is_placeholder(content))
        .then(|| Span::new(start + lead, start + lead + content.len()))
}

/// `login me password x`, the word `password` at `at`.
fn netrc_value(text: &[u8], at: usize) -> Option<Span> {
    let end = at + b"password".len();
    let blank = count(&text[end..], u8::is_ascii_whitespace);
    let near = &text[at.saturating_sub(LONGEST_NAME)..at];
    let mut words = near
        .rsplit(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let is_apart = near.last().is_some_and(u8::is_ascii_whitespace) && blank > 0;
    let is_login = is_apart
        && words.next().is_some_and(|user| !one_of(user, PROSE))
        && words.next() == Some(b"login");
    is_login
        .then(|| {
            quoted_at(text, end + blank)
                .or_else(|| bare_at(text, end + blank, AssignmentStyle::Tight))
        })
        .flatten()
}
