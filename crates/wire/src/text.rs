//! JSON string content to text.
//!
//! Input is what stands between the quotes of a string that the scanner passed, but nothing here relies on that:
//! a broken escape stays as it is.

use std::borrow::Cow;

/// The bytes that a JSON string stands for. Half surrogate pairs become three bytes of generalised UTF-8, so that two
/// strings that differ stay different.
pub(crate) fn unescape(raw: &[u8]) -> Vec<u8> {
    resolve(raw, |out, half| {
        out.extend([
            0xe0 | (half >> 12) as u8,
            0x80 | (half >> 6 & 0x3f) as u8,
            0x80 | (half & 0x3f) as u8,
        ]);
    })
}

/// The text that a JSON string stands for, with U+FFFD for what is none. Borrows when there is nothing to resolve.
pub(crate) fn text(raw: &[u8]) -> Cow<'_, str> {
    if memchr::memchr(b'\\', raw).is_none() {
        return String::from_utf8_lossy(raw);
    }
    let bytes = resolve(raw, |out, _| out.extend("\u{fffd}".as_bytes()));
    match String::from_utf8(bytes) {
        Ok(text) => Cow::Owned(text),
        Err(error) => Cow::Owned(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}

/// The content of a JSON string token, or nothing if the token is no string.
pub(crate) fn quoted(token: &[u8]) -> Option<&[u8]> {
    token.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

fn resolve(raw: &[u8], half_pair: impl Fn(&mut Vec<u8>, u32)) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (plain, escape) = rest.split_at(at);
        out.extend_from_slice(plain);
        let simple = match escape.get(1) {
            Some(b'n') => Some(b'\n'),
            Some(b't') => Some(b'\t'),
            Some(b'r') => Some(b'\r'),
            Some(b'b') => Some(8),
            Some(b'f') => Some(12),
            Some(&byte @ (b'"' | b'\\' | b'/')) => Some(byte),
            _ => None,
        };
        let taken = if let Some(byte) = simple {
            out.push(byte);
            2
        } else if let Some(unit) = unit(escape) {
            let (code, taken) = pair(unit, escape);
            match char::from_u32(code) {
                Some(character) => {
                    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes())
                }
                None => half_pair(&mut out, code),
            }
            taken
        } else {
            out.push(b'\\');
            1
        };
        rest = escape.get(taken..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out
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
    fn half_pairs_and_broken_escapes_do_no_harm() {
        assert_eq!(text(br"\ud800\ud83d\ude00\udc00x"), "\u{fffd}😀\u{fffd}x");
        assert_eq!(text(br"\u12"), r"\u12");
        assert_eq!(text(br"\x\"), r"\x\");
        assert_eq!(text(b"\xff\\n"), "\u{fffd}\n");
        assert_ne!(unescape(br"\ud800"), unescape(br"\ud801"));
    }
}
