//! JSON written by hand into a byte buffer.
//!
//! The recording path writes its lines with these few functions instead of serde: they allocate nothing and most strings are
//! copied whole after one scan. Not a general serialiser: the caller writes braces and commas.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Writes `number` in decimal.
pub(crate) fn push_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Writes `text` as a JSON string, quotes included.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    push_escaped(out, text.as_bytes());
    out.push(b'"');
}

/// Writes bytes of unknown encoding as a JSON string: UTF-8 as it is, anything else with each high byte as the Latin-1 character.
pub(crate) fn push_octets(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    if bytes.is_ascii() || std::str::from_utf8(bytes).is_ok() {
        push_escaped(out, bytes);
    } else {
        for byte in bytes {
            match byte {
                0x80.. => push_unicode_escape(out, *byte),
                ascii => push_escaped(out, std::slice::from_ref(ascii)),
            }
        }
    }
    out.push(b'"');
}

/// Writes `bytes` as a JSON string of base64.
pub(crate) fn push_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    let written = STANDARD.encode_slice(bytes, &mut out[start..]).unwrap_or(0);
    out.truncate(start + written);
    out.push(b'"');
}

/// Escapes what JSON demands to be escaped, and DEL, and copies the rest in runs. `bytes` is UTF-8.
pub(crate) fn push_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    let clean = clean_words(bytes);
    let mut from = 0;
    for (at, byte) in bytes.iter().enumerate().skip(clean) {
        if !NEEDS_ESCAPE[usize::from(*byte)] {
            continue;
        }
        out.extend_from_slice(&bytes[from..at]);
        from = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            other => push_unicode_escape(out, *other),
        }
    }
    out.extend_from_slice(&bytes[from..]);
}

/// How many bytes at the beginning need no escape, found eight at a time: most strings have none that do.
fn clean_words(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    // The high bit of a byte of the result is set where `word` has a byte below `limit`, and maybe in bytes above such a one.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGH;
    let equal = |word: u64, byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let (words, _) = bytes.as_chunks::<8>();
    let clean = words.iter().take_while(|word| {
        let word = u64::from_le_bytes(**word);
        below(word, 0x20) | equal(word, b'"') | equal(word, b'\\') | equal(word, 0x7f) == 0
    });
    clean.count() * 8
}

fn push_unicode_escape(out: &mut Vec<u8>, byte: u8) {
    out.extend_from_slice(b"\\u00");
    out.push(HEX[usize::from(byte >> 4)]);
    out.push(HEX[usize::from(byte & 15)]);
}

const NEEDS_ESCAPE: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table[0x7f] = true;
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_decimal() {
        assert_eq!(written(|out| push_u64(out, 0)), "0");
        assert_eq!(written(|out| push_u64(out, u64::MAX)), u64::MAX.to_string());
    }

    #[test]
    fn base64_is_padded() {
        assert_eq!(written(|out| push_base64(out, b"\xff\x00")), "\"/wA=\"");
        assert_eq!(written(|out| push_base64(out, b"")), "\"\"");
    }

    #[test]
    fn octets_that_are_no_utf8_become_latin_1() {
        assert_eq!(
            written(|out| push_octets(out, b"caf\xe9\"")),
            r#""caf\u00e9\"""#
        );
        assert_eq!(
            written(|out| push_octets(out, "café".as_bytes())),
            "\"café\""
        );
    }

    proptest! {
        #[test]
        fn any_string_reads_back_as_itself(text in any::<String>()) {
            let json = written(|out| push_string(out, &text));
            prop_assert!(!json.contains('\n'));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
