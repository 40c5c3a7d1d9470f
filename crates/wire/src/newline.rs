//! Making a message fit on one line.
//!
//! An HTTP body may be spread over lines, a stdio message may not. Between tokens CR and LF mean nothing, so they become
//! spaces; nothing else changes, not even the length.

use bytes::Bytes;

use crate::{Kind, Message};

/// The message on one line. Nothing if that is impossible: a CR or LF in bytes that are no JSON, where it cannot be
/// told from content.
pub fn flatten(message: &Message) -> Option<Message> {
    if message.kind() == Kind::Malformed {
        return memchr::memchr2(b'\r', b'\n', message.raw())
            .is_none()
            .then(|| message.clone());
    }
    if !message.has_newline() {
        return Some(message.clone());
    }
    // In sound JSON a raw CR or LF is never inside a string.
    let flat: Vec<u8> = message
        .raw()
        .iter()
        .map(|&byte| {
            if matches!(byte, b'\r' | b'\n') {
                b' '
            } else {
                byte
            }
        })
        .collect();
    Some(message.with_spaces(Bytes::from(flat)))
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
        assert!(flat.embeds() && !message.embeds());
        assert_eq!(flat.method().as_deref(), Some("a\n"));
        assert_eq!(flat.kind(), Kind::Request);
    }

    #[test]
    fn what_cannot_be_carried_is_told() {
        assert!(flatten(&Message::parse("{\"a\":\"x\ny\"}")).is_none());
        assert!(flatten(&Message::parse("no json\n")).is_none());
        assert!(flatten(&Message::parse("no json")).is_some());
        assert!(flatten(&Message::parse("")).is_some());
    }
}
