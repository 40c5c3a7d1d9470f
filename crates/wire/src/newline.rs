//! Making a message fit on one line.
//!
//! An HTTP body may be spread over lines, a stdio message may not. Between tokens CR and LF mean nothing, so they become
//! spaces; nothing else changes, not even the length.

use bytes::Bytes;

use crate::{Kind, Message};

/// The message on one line. Nothing if that is impossible: a CR or LF inside a string, which only broken JSON has, is
/// content.
pub fn flatten(message: &Message) -> Option<Message> {
    if message.kind() == Kind::Malformed {
        return flatten_broken(message);
    }
    if !message.has_newline() {
        return Some(message.clone());
    }
    // In sound JSON a raw CR or LF is never inside a string.
    let flat: Vec<u8> = message.raw().iter().map(|&byte| space(byte)).collect();
    Some(message.with_spaces(Bytes::from(flat)))
}

/// Whether there is nothing but white space: no message at all.
pub fn is_blank(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

/// Strings are told apart by their quotes, as far as they can be.
fn flatten_broken(message: &Message) -> Option<Message> {
    if memchr::memchr2(b'\r', b'\n', message.raw()).is_none() {
        return Some(message.clone());
    }
    let mut flat = Vec::with_capacity(message.len());
    let (mut in_string, mut escaped) = (false, false);
    for &byte in message.raw().iter() {
        match byte {
            b'\r' | b'\n' if in_string => return None,
            b'"' if !escaped => in_string = !in_string,
            _ => {}
        }
        escaped = in_string && byte == b'\\' && !escaped;
        flat.push(space(byte));
    }
    Some(Message::parse(flat))
}

fn space(byte: u8) -> u8 {
    match byte {
        b'\r' | b'\n' => b' ',
        byte => byte,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_line_ends_between_tokens_change() {
        let message = Message::parse("{\r\n\t\"id\": 1,\n\"method\":\"a\\n\"\n}\n");
        let flat = flatten(&message).unwrap();
        assert_eq!(
            flat.raw().as_ref(),
            b"{  \t\"id\": 1, \"method\":\"a\\n\" } "
        );
        assert!(flat.fits_in_json_line() && !message.fits_in_json_line());
        assert_eq!(flat.method().as_deref(), Some("a\n"));
        assert_eq!(flat.kind(), Kind::Request);
    }

    #[test]
    fn outside_strings_a_line_break_is_a_space_in_broken_json_too() {
        let flat = |bytes: &[u8]| flatten(&Message::parse(bytes.to_vec())).map(Message::into_raw);
        assert_eq!(flat(b"no json\n").unwrap().as_ref(), b"no json ");
        assert_eq!(
            flat(b"{\n\"id\":1,\r\n\"a\":\"\\\"\xff\"\n}")
                .unwrap()
                .as_ref(),
            b"{ \"id\":1,  \"a\":\"\\\"\xff\" }"
        );
        assert!(is_blank(b"\r\n \t") && is_blank(b"") && !is_blank(b"\n1"));
    }

    #[test]
    fn what_cannot_be_carried_is_told() {
        assert!(flatten(&Message::parse("{\"a\":\"x\ny\"}")).is_none());
        assert!(flatten(&Message::parse("{\"a\":\"x\\\"\ny\"}")).is_none());
        assert!(flatten(&Message::parse("{\"a\":\"x\n")).is_none());
        assert!(flatten(&Message::parse("no json")).is_some());
        assert!(flatten(&Message::parse("")).is_some());
    }
}
