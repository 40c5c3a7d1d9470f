//! Everything inside a message, in order: containers, keys and scalars as spans.
//!
//! The head of a message knows the outermost members only. Who has to see every value (redaction) walks over all of
//! them. The walk is an iterator without recursion, a stack or a copy; the message was checked when it was parsed, so
//! grammar is not checked again.

use super::cursor::string_end;
use crate::message::BOM;
use crate::{Kind, Message, Span};

/// One step of a walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JsonToken {
    /// An object opens.
    Object,
    /// An array opens.
    Array,
    /// The container that opened last and is still open closes.
    End,
    /// The key of the value that follows, with its quotes.
    Key(Span),
    /// A string (with its quotes), a number, `true`, `false` or `null`.
    Scalar(Span),
}

/// A walk over one message.
#[derive(Clone, Debug)]
pub struct JsonWalk<'a> {
    text: &'a [u8],
    at: usize,
}

impl Message {
    /// All that is inside, in order. Nothing at all if the message is malformed.
    pub fn walk(&self) -> JsonWalk<'_> {
        let text: &[u8] = match self.kind() {
            Kind::Malformed => &[],
            _ => self.raw(),
        };
        let at = if text.starts_with(BOM) { BOM.len() } else { 0 };
        JsonWalk { text, at }
    }
}

impl Iterator for JsonWalk<'_> {
    type Item = JsonToken;

    fn next(&mut self) -> Option<JsonToken> {
        let start = self.skip(b",:")?;
        let (end, piece) = match self.text.get(start)? {
            b'{' => (start + 1, JsonToken::Object),
            b'[' => (start + 1, JsonToken::Array),
            b'}' | b']' => (start + 1, JsonToken::End),
            b'"' => {
                let span = Span::new(start, string_end(self.text, start));
                self.at = span.end;
                let is_key = self.skip(b"").and_then(|at| self.text.get(at)) == Some(&b':');
                let piece = if is_key {
                    JsonToken::Key(span)
                } else {
                    JsonToken::Scalar(span)
                };
                (span.end, piece)
            }
            _ => {
                let rest = self.text.get(start..).unwrap_or_default();
                let len = rest
                    .iter()
                    .position(|byte| {
                        matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n')
                    })
                    .unwrap_or(rest.len());
                // At least one byte, so that a walk over anything comes to its end.
                let end = start + len.max(1);
                (end, JsonToken::Scalar(Span::new(start, end)))
            }
        };
        self.at = end;
        Some(piece)
    }
}

impl JsonWalk<'_> {
    /// Where the walk stands: after the last token.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Goes to the next byte that is neither white space nor one of `others`.
    fn skip(&mut self, others: &[u8]) -> Option<usize> {
        let rest = self.text.get(self.at..)?;
        let len = rest.iter().position(|byte| {
            !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') && !others.contains(byte)
        })?;
        self.at += len;
        Some(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(raw: &str) -> String {
        let message = Message::parse(raw.as_bytes().to_vec());
        let word = |span: Span| String::from_utf8_lossy(message.slice(span)).into_owned();
        let pieces = message.walk().map(|piece| match piece {
            JsonToken::Object => "{".to_owned(),
            JsonToken::Array => "[".to_owned(),
            JsonToken::End => "end".to_owned(),
            JsonToken::Key(span) => format!("{}:", word(span)),
            JsonToken::Scalar(span) => word(span),
        });
        pieces.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_value_in_order() {
        assert_eq!(
            shown(r#" { "a" : [1, -2.5e3,"x:y", {"\"b":null}] , "c":"" } "#),
            r#"{ "a": [ 1 -2.5e3 "x:y" { "\"b": null end end "c": "" end"#
        );
        assert_eq!(shown("\u{feff}{\"a\":true}"), r#"{ "a": true end"#);
        assert_eq!(shown("\"only\""), "\"only\"");
        assert_eq!(shown("[]"), "[ end");
    }

    #[test]
    fn a_malformed_message_has_nothing_inside() {
        for raw in ["", "{", "{\"a\":1}}", "nonsense"] {
            assert_eq!(shown(raw), "", "{raw}");
        }
    }

    #[test]
    fn a_walk_is_not_recursive() {
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        assert_eq!(Message::parse(deep).walk().count(), 2000);
    }
}
