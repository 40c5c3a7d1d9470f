//! What the recorder's lines need besides strings, written into a byte buffer. Not a general serialiser: the caller writes braces
//! and commas.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
pub(crate) use mcp_proxy_wire::json::{push_escaped, push_string};

/// Writes `number` in decimal.
pub(crate) fn push_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Writes bytes of unknown encoding as a JSON string: UTF-8 as it is, anything else with each byte as the Latin-1 character.
pub(crate) fn push_octets(out: &mut Vec<u8>, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => push_string(out, text),
        Err(_) => {
            let latin: String = bytes.iter().map(|byte| char::from(*byte)).collect();
            push_string(out, &latin);
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
            "\"café\\\"\""
        );
        assert_eq!(
            written(|out| push_octets(out, "café".as_bytes())),
            "\"café\""
        );
    }
}
