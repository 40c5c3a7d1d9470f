//! Escapes of JSON strings, resolved for searching.
//!
//! Some peers write every letter beyond ASCII as `\\u00fc` (Python's `json.dumps` does), some write `\\/` for a slash, and quotes and
//! backslashes have to be written as escapes. Whether a string is around is not asked: this is for finding, not for reading.

/// How many bytes of escapes may stand for one byte of a word.
pub(super) const LONGEST: usize = 6;

/// Whether resolving may bring `word` to light: a word of plain letters hides only behind `\\u`.
pub(super) fn may_hide(bytes: &[u8], word: &str) -> bool {
    let is_escaped = |byte: u8| matches!(byte, b'/' | b'"' | b'\\') || byte.is_ascii_control();
    word.bytes().any(is_escaped) || memchr::memmem::find(bytes, b"\\u").is_some()
}

/// The bytes with characters for their escapes; `None` if there are none.
pub(super) fn resolved(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut at = memchr::memchr(b'\\', bytes)?;
    let mut out = Vec::with_capacity(bytes.len());
    out.extend_from_slice(&bytes[..at]);
    while let Some(&byte) = bytes.get(at) {
        if byte != b'\\' {
            let rest = &bytes[at..];
            let len = memchr::memchr(b'\\', rest).unwrap_or(rest.len());
            out.extend_from_slice(&rest[..len]);
            at += len;
        } else if let Some((letter, len)) = letter(&bytes[at..]) {
            out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            at += len;
        } else if let Some(single) = bytes.get(at + 1).and_then(single) {
            out.push(single);
            at += 2;
        } else {
            let end = bytes.len().min(at + 2);
            out.extend_from_slice(&bytes[at..end]);
            at = end;
        }
    }
    Some(out)
}

/// What a backslash and this byte stand for.
fn single(byte: &u8) -> Option<u8> {
    Some(match byte {
        b'"' | b'\\' | b'/' => *byte,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => return None,
    })
}

/// The letter that `bytes` begin with as an escape, or as a pair of them, and their length.
fn letter(bytes: &[u8]) -> Option<(char, usize)> {
    let first = unit(bytes)?;
    let second = || unit(&bytes[LONGEST..]);
    if (0xd800..0xdc00).contains(&first)
        && let Some(second @ 0xdc00..0xe000) = second()
    {
        let code = 0x10000 + (u32::from(first - 0xd800) << 10) + u32::from(second - 0xdc00);
        return char::from_u32(code).map(|letter| (letter, 2 * LONGEST));
    }
    let letter = char::from_u32(u32::from(first)).unwrap_or(char::REPLACEMENT_CHARACTER);
    Some((letter, LONGEST))
}

/// The number of an escape.
fn unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.first_chunk::<4>()?;
    let mut number = 0;
    for digit in digits {
        number = number << 4 | char::from(*digit).to_digit(16)? as u16;
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_letters() {
        let read = |text: &str| {
            resolved(text.as_bytes()).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        for none in ["", "a", "u00fc", "a/b"] {
            assert_eq!(read(none), None, "{none}");
        }
        for (text, letters) in [
            (r"\u00fc", "ü"),
            (r"x\u00FCy\nz", "xüy\nz"),
            (r#"a\/b q\"uo back\\slash"#, r#"a/b q"uo back\slash"#),
            (r"\b\f\r\t\x\", "\u{8}\u{c}\r\t\\x\\"),
            (r"\ud83d\ude00!", "😀!"),
            (r"\ud83d!", "\u{fffd}!"),
            (r"\ude00\ud83d", "\u{fffd}\u{fffd}"),
            (r"\ud83d\u0041", "\u{fffd}A"),
            (r"\\u00fc", r"\u00fc"),
            (r"\\\u00fc", r"\ü"),
            (r"\u00f", r"\u00f"),
            (r"\u", r"\u"),
            (r"\uzzzz\u0041\", r"\uzzzzA\"),
        ] {
            assert_eq!(read(text).as_deref(), Some(letters), "{text}");
        }
    }
}
