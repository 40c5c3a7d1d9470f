//! JSON-RPC ids, kept as the token that stood on the wire.
//!
//! `1`, `1.0`, `"1"` and a 30-digit integer are four different ids here, because the peer that chose one expects the
//! very same spelling back. Two spellings of the same *string* (`"a"`, `"\u0061"`) do mean the same id: correlation
//! uses [`Id::key`] for that.

use std::fmt;
use std::sync::Arc;

use crate::{json_string, text};

/// The raw token of an id.
#[derive(Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Id(Arc<[u8]>);

/// What an id stands for: the type, and for strings the resolved text.
#[derive(Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum IdKey {
    /// `null`.
    Null,
    /// A number, by its token.
    Number(Arc<[u8]>),
    /// A string, escapes resolved.
    String(Arc<[u8]>),
    /// Anything else that a peer put there, by its token.
    Other(Arc<[u8]>),
}

impl Id {
    /// The bytes as they stood in the message.
    pub fn token(&self) -> &[u8] {
        &self.0
    }

    /// An id from the bytes that stood, or shall stand, in a message.
    pub fn from_token(token: &[u8]) -> Id {
        Id(token.into())
    }

    /// The id `number`.
    pub fn number(number: u64) -> Id {
        Id(number.to_string().as_bytes().into())
    }

    /// The id `"text"`.
    pub fn string(text: &str) -> Id {
        Id(json_string(text).as_bytes().into())
    }

    /// Whether it is `null`, which a peer uses when it could not read the id of what it answers.
    pub fn is_null(&self) -> bool {
        self.token() == b"null"
    }

    /// What to compare when looking for the request that a response answers.
    pub fn key(&self) -> IdKey {
        IdKey::of_token(self.token())
    }
}

impl IdKey {
    /// The key of an id that stands in a message as `token`.
    pub fn of_token(token: &[u8]) -> IdKey {
        match token {
            b"null" => IdKey::Null,
            [b'-' | b'0'..=b'9', ..] => IdKey::Number(token.into()),
            _ => match text::quoted(token) {
                Some(raw) if memchr::memchr(b'\\', raw).is_some() => {
                    IdKey::String(text::unescape(raw).as_slice().into())
                }
                Some(raw) => IdKey::String(raw.into()),
                None => IdKey::Other(token.into()),
            },
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&String::from_utf8_lossy(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_stay_apart() {
        let tokens: [&[u8]; 7] = [
            b"1",
            b"1.0",
            b"\"1\"",
            b"1e0",
            b"100000000000000000000000000001",
            b"null",
            b"\"null\"",
        ];
        for (index, one) in tokens.iter().enumerate() {
            for other in &tokens[index + 1..] {
                assert_ne!(Id::from_token(one), Id::from_token(other));
                assert_ne!(IdKey::of_token(one), IdKey::of_token(other));
            }
        }
    }

    #[test]
    fn one_string_has_one_key() {
        assert_eq!(
            Id::from_token(br#""\u0061/b""#).key(),
            Id::from_token(br#""a\/b""#).key()
        );
        assert_ne!(
            Id::from_token(br#""\ud800""#).key(),
            Id::from_token(br#""\ud801""#).key()
        );
        assert_eq!(Id::string("a\"").token(), br#""a\"""#);
        assert_eq!(Id::number(7).to_string(), "7");
    }
}
