//! Whether a bare word behind a name is its secret, or code, a placeholder or prose.
//!
//! No language is known here, only a few shapes that secrets do not have. Each look is at a few bytes.

use super::extent::AssignmentStyle;
use super::name::{SecretName, SecretNameKind};
use super::{KeyNameSource, count, is_blank, one_of};
use crate::redact::preset::{LITERALS, NO_VALUES, OBJECTS, SCHEMES};
use mcp_proxy_wire::Span;

/// Placeholders and code are recognized by so much of their beginning.
const NEAR: usize = 128;

/// A word with this many letters is not prose.
const LONG_WORD: usize = 16;

/// A number with this many digits is not a secret.
const SHORT_NUMBER: usize = 3;

/// A value that no quotes are around.
pub(super) struct UnquotedValue<'a> {
    pub(super) text: &'a [u8],
    pub(super) start: usize,
    pub(super) style: AssignmentStyle,
    pub(super) named: &'a SecretName<'a>,
}

impl UnquotedValue<'_> {
    /// `false` for what begins like a placeholder, a call or a type, however it continues.
    pub(super) fn may_be_secret(&self) -> bool {
        if self.named.by == KeyNameSource::User {
            return true;
        }
        let near = &self.text[self.start..self.text.len().min(self.start + NEAR)];
        let is_code = match self.style {
            AssignmentStyle::Tight => is_call(near, AssignmentStyle::Tight),
            AssignmentStyle::Loose => is_call(near, AssignmentStyle::Loose) || is_type(near),
        };
        // A comment, or the end of an XML element.
        let is_none = near.starts_with(b"# ") || near.starts_with(b"</");
        !is_code && !is_none && !begins_with_placeholder(near, self.style)
    }

    /// Whether `word`, the whole of it, is a secret.
    pub(super) fn is_secret(&self, word: Span) -> bool {
        let bytes = &self.text[word.start..word.end];
        let is_loose = self.style == AssignmentStyle::Loose;
        if self.named.by == KeyNameSource::User {
            return !(is_loose && one_of(bytes, NO_VALUES));
        }
        let bare = &bytes[..bytes.len() - super::count_back(bytes, u8::is_ascii_punctuation)];
        if one_of(bare, LITERALS) || is_nothing(bytes) || self.is_member(bytes) {
            return false;
        }
        let is_number = bytes.len() <= SHORT_NUMBER && bytes.iter().all(u8::is_ascii_digit);
        let is_known = one_of(bytes, NO_VALUES) || one_of(bytes, SCHEMES);
        let is_other = is_number || is_known || self.is_variable(bytes);
        !(is_loose && (is_other || self.is_prose(word)))
    }

    /// A word that others follow: `must be longer`.
    pub(super) fn is_prose(&self, word: Span) -> bool {
        let bytes = &self.text[word.start..word.end];
        let (first, letters) = match bytes.split_first() {
            Some((first, letters)) => (first, letters),
            None => return false,
        };
        // With a capital, it may be a scheme that nobody knows.
        let is_first = match self.named.kind {
            SecretNameKind::Authorization => first.is_ascii_lowercase(),
            SecretNameKind::Cookie | SecretNameKind::Other => first.is_ascii_alphabetic(),
        };
        let is_word = is_first && letters.iter().all(u8::is_ascii_lowercase);
        let rest = &self.text[word.end..self.text.len().min(word.end + NEAR)];
        let blank = count(rest, is_blank);
        let next = &rest[blank..];
        let len = count(next, |byte| {
            byte.is_ascii_alphanumeric() || b"_-'.".contains(byte)
        });
        let is_word_next = next.first().is_some_and(u8::is_ascii_alphanumeric);
        let is_name_next = matches!(next.get(len), Some(b':' | b'='));
        is_word
            && bytes.len() < LONG_WORD
            && self.named.by == KeyNameSource::Preset
            && blank > 0
            && is_word_next
            && !is_name_next
    }

    /// `config.api_key`: in settings, one without digits; among parameters, one of a well-known object.
    fn is_member(&self, word: &[u8]) -> bool {
        let mut parts = word.split(|byte| *byte == b'.').peekable();
        let first = parts.peek().copied().unwrap_or_default();
        let is_part = |part: &[u8]| {
            let is_name =
                |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'?' | b'!');
            !part.is_empty() && part.iter().all(is_name)
        };
        let is_path = word.contains(&b'.') && parts.all(is_part);
        is_path && (self.style == AssignmentStyle::Loose || one_of(first, OBJECTS))
    }

    /// `this.token = token`, `password: userPassword`: the same name again.
    fn is_variable(&self, word: &[u8]) -> bool {
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let name = self.named.name;
        let last = name.rsplit(|byte| !is_name(byte)).next().unwrap_or(name);
        let Some(before) = word.len().checked_sub(last.len()) else {
            return false;
        };
        let is_joined = before == 0
            || word[before - 1] == b'_'
            || (word[before].is_ascii_uppercase() && word[before - 1].is_ascii_lowercase());
        is_joined && word.iter().all(is_name) && word[before..].eq_ignore_ascii_case(last)
    }
}

/// Whether a whole string is a placeholder.
pub(super) fn is_placeholder(content: &[u8]) -> bool {
    content.len() <= NEAR
        && (is_nothing(content)
            || placeholder(content, AssignmentStyle::Tight) == Some(content.len()))
}

fn begins_with_placeholder(near: &[u8], style: AssignmentStyle) -> bool {
    placeholder(near, style).is_some_and(|len| {
        let goes_on = |byte: &u8| byte.is_ascii_alphanumeric();
        !near.get(len).is_some_and(goes_on)
    })
}

/// The length of the placeholder at the beginning.
fn placeholder(near: &[u8], style: AssignmentStyle) -> Option<usize> {
    for (open, close) in [
        (&b"${{"[..], &b"}}"[..]),
        (b"${", b"}"),
        (b"{{", b"}}"),
        (b"$(", b")"),
        (b"#{", b"}"),
        (b"%(", b")s"),
        (b"%{", b"}"),
        (b"<%", b"%>"),
    ] {
        if let Some(inside) = near.strip_prefix(open) {
            let end = memchr::memmem::find(inside, close)?;
            return Some(open.len() + end + close.len());
        }
    }
    let (first, rest) = near.split_first()?;
    let name = count(rest, |byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    match first {
        b'{' => {
            let len = count(rest, |byte| {
                byte.is_ascii_alphanumeric() || b"_.:!-[]".contains(byte)
            });
            (rest.get(len) == Some(&b'}')).then_some(len + 2)
        }
        b'<' => {
            let len = memchr::memchr2(b'>', b'\n', rest)?;
            (rest[len] == b'>' && is_description(&rest[..len])).then_some(len + 2)
        }
        b'%' if matches!(rest.first(), Some(b's' | b'd' | b'v' | b'q')) => Some(2),
        b'?' if name == 0 => Some(1),
        b'$' => is_variable_name(&rest[..name]).then_some(name + 1),
        b':' | b'@' if style == AssignmentStyle::Loose && name > 0 => {
            let is_lower = |byte: &u8| !byte.is_ascii_uppercase();
            rest[..name].iter().all(is_lower).then_some(name + 1)
        }
        _ => None,
    }
}

/// What stands between `<` and `>` in place of a value: words, or one in one case.
fn is_description(inside: &[u8]) -> bool {
    let letters = || inside.iter().filter(|byte| byte.is_ascii_alphabetic());
    let one_case = letters().all(u8::is_ascii_lowercase) || letters().all(u8::is_ascii_uppercase);
    let is_plain = |byte: &u8| byte.is_ascii_alphabetic() || b" _-.".contains(byte);
    inside.contains(&b' ') || (one_case && inside.iter().all(is_plain))
}

/// `1`, `PASSWORD`, `password`, but not `ecret5X`.
fn is_variable_name(name: &[u8]) -> bool {
    let upper = |byte: &u8| !byte.is_ascii_lowercase();
    let lower = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'_';
    !name.is_empty() && (name.iter().all(upper) || name.iter().all(lower))
}

/// `***`, `...`, `xxx`
fn is_nothing(word: &[u8]) -> bool {
    let first = word.first().copied().unwrap_or(b'*');
    let is_one = word.iter().all(|byte| *byte == first);
    is_one && (b"*.-_".contains(&first) || (b"xX".contains(&first) && word.len() > 2))
}

/// `get_token()`, `os.environ["TOKEN"]`, `Optional[str]`, `&tokens[0]`
fn is_call(near: &[u8], style: AssignmentStyle) -> bool {
    let near = near.strip_prefix(b"&").unwrap_or(near);
    let is_path = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.:$?!".contains(byte);
    let (path, rest) = near.split_at(count(near, is_path));
    let is_name = |byte: &u8| byte.is_ascii_alphabetic() || b"_$".contains(byte);
    let [open @ (b'(' | b'['), inside @ ..] = rest else {
        return false;
    };
    if !path.first().is_some_and(is_name) {
        return false;
    }
    let close = if *open == b'(' { b')' } else { b']' };
    let closes = memchr::memchr(close, inside).is_some();
    let has_digit = path.iter().any(u8::is_ascii_digit);
    let is_lower = path
        .iter()
        .all(|byte| byte.is_ascii_lowercase() || b"_.".contains(byte));
    match inside.first() {
        Some(b')' | b']' | b'"' | b'\'' | b'\n') => true,
        Some(first) if is_name(first) => !has_digit && (closes || style == AssignmentStyle::Loose),
        _ => is_lower && closes && style == AssignmentStyle::Loose,
    }
}

/// `Vec<u8>`, `&str`
fn is_type(near: &[u8]) -> bool {
    let letters = count(near, |byte| {
        byte.is_ascii_alphabetic() || b"_.:".contains(byte)
    });
    let is_generic = letters > 0 && near.get(letters) == Some(&b'<');
    let is_reference = near.first() == Some(&b'&') && matches!(near.get(1), Some(b'\'' | b'['))
        || near.starts_with(b"&mut ");
    is_reference || (is_generic && !near[letters..].starts_with(b"</"))
}
