//! Where a value ends: at its quote, at white space, at the next parameter, or with its lines.

use super::name::{LONGEST_NAME, SecretName};
use super::plausibility::UnquotedValue;
use super::{count, count_back, is_blank, is_masked};
use mcp_proxy_wire::Span;

/// The name of the next parameter is looked for so far.
const LONGEST_NEXT: usize = 48;

/// What a value ends at depends on how it is given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AssignmentStyle {
    /// `a=b`: a parameter in a URL, a list or a command line.
    Tight,
    /// `a: b`, `a = b`: a line of its own, or a sentence.
    Loose,
}

/// The word at `start`, without what belongs to the sentence or list around it.
pub(super) fn bare_at(text: &[u8], start: usize, style: AssignmentStyle) -> Option<Span> {
    if is_masked(text, start) {
        return None;
    }
    let end = (start..text.len()).find(|at| ends_at(text, start, *at));
    let mut word = &text[start..end.unwrap_or(text.len())];
    let around: &[u8] = match style {
        AssignmentStyle::Tight => b"\\,;)",
        AssignmentStyle::Loose => b",.:;()[]{}`\\",
    };
    let is_around = |byte: &u8| around.contains(byte);
    // A mark ends with a bracket of its own.
    if !word.starts_with(b"[") {
        word = &word[..word.len() - count_back(word, is_around)];
    }
    (word.iter().any(|byte| !is_around(byte))).then(|| Span::new(start, start + word.len()))
}

fn ends_at(text: &[u8], start: usize, at: usize) -> bool {
    let rest = &text[at + 1..];
    let next_is_letter = rest.first().is_some_and(u8::is_ascii_alphanumeric);
    match text[at] {
        // `it's` is one word, and so is a shell's `a"b"`.
        b'"' | b'\'' => !(next_is_letter && at > start && text[at - 1].is_ascii_alphanumeric()),
        b'<' => at > start && (rest.starts_with(b"/") || rest.starts_with(b"br")),
        b'&' => rest.starts_with(b"amp;") || is_next(rest, b"="),
        b';' => is_next(rest, b"="),
        b',' => is_next(rest, b"=:"),
        // A shell's way to write a space.
        b' ' => at == start || text[at - 1] != b'\\',
        byte => byte.is_ascii_whitespace(),
    }
}

/// Whether a name and one of these signs come next: only then did a parameter end.
fn is_next(rest: &[u8], signs: &[u8]) -> bool {
    let near = &rest[..rest.len().min(LONGEST_NEXT)];
    let near = &near[count(near, |byte| is_blank(byte) || matches!(byte, b'"' | b'\''))..];
    let len = count(near, |byte| {
        byte.is_ascii_alphanumeric() || b"_-.[]%\"'".contains(byte)
    });
    len > 0 && near.get(len).is_some_and(|byte| signs.contains(byte))
}

/// The line at `start`, up to the quote that the name at `name` stands behind, if it does.
pub(super) fn line_at(text: &[u8], start: usize, name: usize) -> Option<Span> {
    let quote = name.checked_sub(1).map(|before| text[before]);
    let quote = quote.filter(|byte| matches!(byte, b'"' | b'\''));
    let rest = &text[start..];
    let len = count(rest, |byte| {
        !matches!(byte, b'\r' | b'\n') && Some(*byte) != quote
    });
    (len > 0).then(|| Span::new(start, start + len))
}

/// The content of the string at `start`, if there is one. A letter or two may stand before it, as Python writes bytes, and a
/// quote in it may be doubled.
pub(super) fn quoted_at(text: &[u8], start: usize) -> Option<Span> {
    let is_prefix = |byte: &u8| b"bBrRfFuU@$".contains(byte);
    let prefix = count(&text[start..text.len().min(start + 2)], is_prefix);
    let start = start + prefix;
    let start = start + count(&text[start..], |byte| *byte == b'\\');
    let is_quote = |byte: &&u8| matches!(byte, b'"' | b'\'' | b'`');
    let quote = *text.get(start).filter(is_quote)?;
    let start = start + 1;
    let mut end = start;
    if quote == b'`' {
        let len = memchr::memchr2(b'`', b'\n', &text[start..])?;
        return (len > 0 && text[start + len] == b'`').then(|| Span::new(start, start + len));
    }
    while let Some(at) = text
        .get(end..)
        .and_then(|rest| memchr::memchr2(quote, b'\\', rest))
    {
        end += at;
        let after = &text[end + 1..];
        if text[end] == quote && after.starts_with(&[b'\\', quote, quote]) {
            // A shell's way to write a quote between quotes.
            end += 4;
        } else if text[end] == quote && after.first() != Some(&quote) {
            return Some(Span::new(start, end));
        } else {
            // Whatever is escaped or doubled belongs to the string.
            end += 2;
        }
    }
    Some(Span::new(start, text.len()))
}

/// The string that `inside` is the content of and those that code adds to it: `'a' 'b'`, `"a" + "b"`.
pub(super) fn with_next_strings(text: &[u8], inside: Span) -> Span {
    let mut all = inside;
    while let Some(quote) = text.get(all.end) {
        let joint = all.end + 1;
        let is_joint = |byte: &u8| is_blank(byte) || *byte == b'+';
        let next = joint + count(&text[joint..], is_joint);
        match text.get(next) == Some(quote) && next > joint {
            true => match quoted_at(text, next) {
                Some(more) => all.end = more.end,
                None => break,
            },
            false => break,
        }
    }
    all
}

/// The list of strings or numbers at `start`, to the end of the text if it does not close.
pub(super) fn list_at(text: &[u8], start: usize) -> Option<Span> {
    let list = text.get(start..)?.strip_prefix(b"[")?;
    let blank = count(list, u8::is_ascii_whitespace);
    let slashes = count(&list[blank..], |byte| *byte == b'\\');
    matches!(list.get(blank + slashes), Some(b'"' | b'\'' | b'0'..=b'9')).then(|| {
        let len = memchr::memchr(b']', list).map_or(list.len(), |end| end + 1);
        Span::new(start, start + 1 + len)
    })
}

/// A value on the lines below its name, as YAML has it.
pub(super) struct YamlBlock(Option<Span>);

impl YamlBlock {
    pub(super) fn value(self) -> Option<Span> {
        self.0.filter(|span| !span.is_empty())
    }
}

/// What stands below a name when nothing but `|` or `>` stands behind it, at `start`; `None` if something does.
pub(super) fn block_after(text: &[u8], start: usize, named: &SecretName<'_>) -> Option<YamlBlock> {
    let is_text = matches!(text.get(start), Some(b'|' | b'>'));
    let mark = count(&text[start..], |byte| b"|>+-0123456789".contains(byte));
    let mark = if is_text { mark } else { 0 };
    let rest = &text[start + mark..];
    let blank = count(rest, |byte| matches!(byte, b' ' | b'\t' | b'\r'));
    let comment = match rest[blank..].starts_with(b"# ") {
        true => count(&rest[blank..], |byte| *byte != b'\n'),
        false => 0,
    };
    let line_end = start + mark + blank + comment;
    if text.get(line_end) != Some(&b'\n') {
        return None;
    }
    let below = line_end + 1;
    let found = column_of(text, named.start).and_then(|column| match is_text {
        true => indented_lines(text, below, column),
        false => one_line(text, below, column, named),
    });
    Some(YamlBlock(found))
}

/// How far a name is indented; `None` if it is not the first thing on its line.
fn column_of(text: &[u8], name: usize) -> Option<usize> {
    let near = &text[name.saturating_sub(LONGEST_NAME)..name];
    let line = match memchr::memrchr(b'\n', near) {
        Some(at) => &near[at + 1..],
        None if near.len() == name => near,
        None => return None,
    };
    let is_indent = |byte: &u8| matches!(byte, b' ' | b'\t' | b'-' | b'"' | b'\'');
    line.iter().all(is_indent).then_some(line.len())
}

fn indented_lines(text: &[u8], below: usize, column: usize) -> Option<Span> {
    let mut end = below;
    let mut at = below;
    while at < text.len() {
        let len = memchr::memchr(b'\n', &text[at..]).unwrap_or(text.len() - at);
        let line = text[at..at + len].trim_ascii_end();
        let is_inside = line.is_empty() || count(line, is_blank) > column;
        if !is_inside {
            break;
        }
        if !line.is_empty() {
            end = at + line.len();
        }
        at += len + 1;
    }
    let start = below + count(&text[below..end], u8::is_ascii_whitespace);
    Some(Span::new(start, end))
}

/// A single word or string on the line below.
fn one_line(text: &[u8], below: usize, column: usize, named: &SecretName<'_>) -> Option<Span> {
    let start = below + count(&text[below..], is_blank);
    if start - below <= column {
        return None;
    }
    if let Some(inside) = quoted_at(text, start) {
        return Some(inside);
    }
    let rest = &text[start..];
    let line = rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())].trim_ascii_end();
    let is_other = line.iter().any(is_blank) || line.ends_with(b":") || line.starts_with(b"#");
    let value = UnquotedValue {
        text,
        start,
        style: AssignmentStyle::Loose,
        named,
    };
    let word = (!is_other && value.may_be_secret())
        .then(|| bare_at(text, start, AssignmentStyle::Loose))
        .flatten()?;
    value.is_secret(word).then_some(word)
}
