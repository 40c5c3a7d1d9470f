//! Finds tokens in messages, by their names and by their text.

use mcp_proxy_wire::{JsonToken, Kind, Message};
use memchr::memmem;

/// What a token is called in a message.
const NAMES: [&str; 2] = ["accessToken", "access_token"];
/// How an escaped letter of such a name begins.
const ESCAPED: &str = "\\u00";

/// The tokens that a socket has shown and that may still be valid: the last one, and the one before it.
pub(super) struct KnownTokens {
    last: String,
    previous: String,
}

impl KnownTokens {
    /// Of a new socket. An empty text is not a token.
    pub(super) fn new(token: String) -> KnownTokens {
        KnownTokens {
            last: token,
            previous: String::new(),
        }
    }

    /// The socket has shown another one.
    pub(super) fn renew(&mut self, token: &str) {
        if self.last != token {
            self.previous = std::mem::replace(&mut self.last, token.to_owned());
        }
    }

    /// Whether a text contains one of them.
    pub(super) fn are_in(&self, text: &[u8]) -> bool {
        let known = [&self.last, &self.previous].into_iter();
        known
            .filter(|token| !token.is_empty())
            .any(|token| contains(text, token))
    }

    /// Whether a message contains one of them, or a member at any depth that is called a token.
    pub(super) fn are_shown_by(&self, message: &Message) -> bool {
        self.are_in(message.raw()) || has_named_token(message)
    }
}

fn has_named_token(message: &Message) -> bool {
    let is_named = NAMES.iter().any(|name| contains(message.raw(), name));
    if message.kind() == Kind::Malformed {
        return is_named;
    }
    let is_name = |token| match token {
        JsonToken::Key(span) => message
            .text_at(span)
            .is_some_and(|key| NAMES.contains(&&*key)),
        _ => false,
    };
    // Most messages have neither, and need not be walked through.
    (is_named || contains(message.raw(), ESCAPED)) && message.walk().any(is_name)
}

fn contains(text: &[u8], word: &str) -> bool {
    memmem::find(text, word.as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_shown(tokens: &KnownTokens, message: &str) -> bool {
        tokens.are_shown_by(&Message::parse(message.to_owned()))
    }

    #[test]
    fn names_are_found_at_any_depth_and_values_are_not_names() {
        let tokens = KnownTokens::new(String::new());
        for message in [
            r#"{"id":1,"method":"a","params":{"access_token":"x"}}"#,
            r#"{"id":1,"method":"a","params":{"b":[{"accessToken":"x"}]}}"#,
            r#"{"id":1,"method":"a","params":{"access\u005ftoken":"x"}}"#,
            r#"{"id":1,"method":"a","accessToken":"x"}"#,
            r#"[{"id":1,"method":"a","params":{"accessToken":"x"}}]"#,
            r#"{"id":1,"method":"a","params":{"accessToken":"x""#,
        ] {
            assert!(is_shown(&tokens, message), "{message}");
        }
        for message in [
            r#"{"id":1,"method":"a","params":{"text":"access_token"}}"#,
            r#"{"id":1,"method":"a","params":{"access_token_type":"accessToken"}}"#,
            r#"{"id":1,"method":"a","params":{"text":"\u00e4"}}"#,
        ] {
            assert!(!is_shown(&tokens, message), "{message}");
        }
    }

    #[test]
    fn the_last_two_tokens_are_known() {
        let mut tokens = KnownTokens::new("first".to_owned());
        tokens.renew("second");
        tokens.renew("second");
        for (text, is_known) in [("first", true), ("second", true), ("third", false)] {
            let message = format!(r#"{{"id":1,"method":"a","params":{{"text":"{text}"}}}}"#);
            assert_eq!(is_shown(&tokens, &message), is_known, "{text}");
        }
    }
}
