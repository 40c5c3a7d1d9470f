//! JSON string content to text.
//!
//! Input is what stands between the quotes of a string that the scanner passed, but nothing here relies on that:
//! a broken escape stays as it is.

use std::borrow::Cow;

use crate::Span;

/// The bytes that a JSON string stands for. Half surrogate pairs become three bytes of generalised UTF-8, so that two
/// strings that differ stay different.
pub(crate) fn unescape(raw: &[u8]) -> Vec<u8> {
    resolve(raw, push_half)
}

fn push_half(out: &mut Vec<u8>, half: u32) {
    out.extend([
        0xe0 | (half >> 12) as u8,
        0x80 | (half >> 6 & 0x3f) as u8,
        0x80 | (half & 0x3f) as u8,
    ]);
}

/// The text that a JSON string stands for, with U+FFFD for what is none. Borrows when there is nothing to resolve.
pub(crate) fn text(raw: &[u8]) -> Cow<'_, str> {
    if memchr::memchr(b'\\', raw).is_none() {
        // Nearly always it is UTF-8, and this says so faster.
        return match std::str::from_utf8(raw) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(raw),
        };
    }
    let bytes = resolve(raw, |out, _| out.extend("\u{fffd}".as_bytes()));
    match String::from_utf8(bytes) {
        Ok(text) => Cow::Owned(text),
        Err(error) => Cow::Owned(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}

/// The content of a JSON string token, or nothing if the token is not a string.
pub(crate) fn quoted(token: &[u8]) -> Option<&[u8]> {
    token.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

/// The bytes that a JSON string token stands for, or nothing if the token is not a string. Borrows when there is nothing
/// to resolve. Half surrogate pairs become three bytes of generalised UTF-8.
pub fn string_content(token: &[u8]) -> Option<Cow<'_, [u8]>> {
    let raw = quoted(token)?;
    Some(match memchr::memchr(b'\\', raw) {
        Some(_) => Cow::Owned(unescape(raw)),
        None => Cow::Borrowed(raw),
    })
}

/// Where parts of [`string_content`] stand in the token that it was made of. `parts` are in order and do not overlap.
/// An escape is never cut: a part that begins or ends inside what it stands for takes in the whole of it.
pub fn string_spans(token: &[u8], parts: &[Span]) -> Vec<Span> {
    let Some(raw) = quoted(token) else {
        return Vec::new();
    };
    let mut places = StringCursor {
        raw,
        at: 0,
        content: 0,
    };
    parts
        .iter()
        .map(|part| {
            let start = places.advance_to(part.start, Edge::Start);
            let end = places.advance_to(part.end, Edge::End);
            // Behind the opening quote.
            Span::new(start, end.max(start)).shift(1)
        })
        .collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    Start,
    End,
}

/// A place in a string's raw text, and the same place in its content.
struct StringCursor<'a> {
    raw: &'a [u8],
    at: usize,
    content: usize,
}

impl StringCursor<'_> {
    /// The raw place of `content`, which is not before the last one asked for.
    fn advance_to(&mut self, content: usize, edge: Edge) -> usize {
        while self.content < content {
            let rest = self.raw.get(self.at..).unwrap_or_default();
            let near = &rest[..rest.len().min(content - self.content)];
            let plain = memchr::memchr(b'\\', near).unwrap_or(near.len());
            if plain > 0 {
                self.at += plain;
                self.content += plain;
                continue;
            }
            if rest.is_empty() {
                break;
            }
            let mut resolved = Vec::new();
            let taken = resolve_one(rest, &mut resolved, push_half);
            if edge == Edge::Start && self.content + resolved.len() > content {
                break;
            }
            self.at += taken;
            self.content += resolved.len();
        }
        self.at
    }
}

fn resolve(raw: &[u8], half_pair: impl Fn(&mut Vec<u8>, u32)) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (plain, escape) = rest.split_at(at);
        out.extend_from_slice(plain);
        let taken = resolve_one(escape, &mut out, &half_pair);
        rest = escape.get(taken..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out
}

/// Resolves the escape at the beginning; returns how many bytes it is long.
fn resolve_one(escape: &[u8], out: &mut Vec<u8>, half_pair: impl Fn(&mut Vec<u8>, u32)) -> usize {
    let simple = match escape.get(1) {
        Some(b'n') => Some(b'\n'),
        Some(b't') => Some(b'\t'),
        Some(b'r') => Some(b'\r'),
        Some(b'b') => Some(8),
        Some(b'f') => Some(12),
        Some(&byte @ (b'"' | b'\\' | b'/')) => Some(byte),
        _ => None,
    };
    if let Some(byte) = simple {
        out.push(byte);
        2
    } else if let Some(unit) = unit(escape) {
        let (code, taken) = pair(unit, escape);
        match char::from_u32(code) {
            Some(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            None => half_pair(out, code),
        }
        taken
    } else {
        out.push(b'\\');
        1
    }
}

/// Joins a high surrogate with the low one behind it; returns how many bytes that took.
fn pair(high: u32, escape: &[u8]) -> (u32, usize) {
    let low = escape.get(6..).and_then(unit);
    match low {
        Some(low @ 0xdc00..=0xdfff) if (0xd800..=0xdbff).contains(&high) => {
            (0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00), 12)
        }
        _ => (high, 6),
    }
}

/// The code unit of a `\uXXXX` at the beginning.
fn unit(escape: &[u8]) -> Option<u32> {
    let digits = escape.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, &digit| {
        Some(unit << 4 | char::from(digit).to_digit(16)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_resolved() {
        assert_eq!(
            text(br#"a\"\\\/\b\f\n\r\t\u00e9\u4e16z"#),
            "a\"\\/\u{8}\u{c}\n\r\té世z"
        );
        assert_eq!(text(br"\ud83d\ude00"), "😀");
        assert!(matches!(text("é".as_bytes()), Cow::Borrowed("é")));
    }

    #[test]
    fn parts_of_a_content_are_found_in_its_token() {
        let token = br#""a\"b\u00e9\ud83d\ude00z""#;
        let content = string_content(token).unwrap();
        assert_eq!(&*content, "a\"bé😀z".as_bytes());
        let shown = |start, end| {
            let span = string_spans(token, &[Span::new(start, end)])[0];
            String::from_utf8_lossy(&token[span.range()]).into_owned()
        };
        assert_eq!(shown(0, 1), "a");
        assert_eq!(shown(1, 2), r#"\""#);
        assert_eq!(shown(2, 5), r"b\u00e9");
        assert_eq!(shown(4, 6), r"\u00e9\ud83d\ude00");
        assert_eq!(shown(9, 10), "z");
        assert_eq!(shown(0, 10).len(), token.len() - 2);
        assert_eq!(string_spans(b"12", &[Span::new(0, 1)]), []);
    }

    #[test]
    fn half_pairs_and_broken_escapes_do_no_harm() {
        assert_eq!(text(br"\ud800\ud83d\ude00\udc00x"), "\u{fffd}😀\u{fffd}x");
        assert_eq!(text(br"\u12"), r"\u12");
        assert_eq!(text(br"\x\"), r"\x\");
        assert_eq!(text(b"\xff\\n"), "\u{fffd}\n");
        assert_ne!(unescape(br"\ud800"), unescape(br"\ud801"));
    }
}
