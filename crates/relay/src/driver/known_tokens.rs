//! Finds tokens in messages, by their names and by their text.

use std::sync::LazyLock;

use mcp_proxy_wire::{JsonToken, Kind, Message};
use memchr::memmem::Finder;

use crate::messages;

/// What a token is called in a message.
const NAMES: [&str; 2] = ["accessToken", "access_token"];
/// What all of these end with.
static NAMES_END: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("oken\""));

/// The tokens that a socket has shown and that may still be valid: the last one, and the one before it.
pub(super) struct KnownTokens {
    last: Finder<'static>,
    previous: Option<Finder<'static>>,
}

impl KnownTokens {
    /// Of a new socket. An empty text is not a token.
    pub(super) fn new(token: &str) -> KnownTokens {
        KnownTokens {
            last: Finder::new(token).into_owned(),
            previous: None,
        }
    }

    /// The socket has shown another one.
    pub(super) fn renew(&mut self, token: &str) {
        if self.last.needle() != token.as_bytes() {
            let renewed = Finder::new(token).into_owned();
            self.previous = Some(std::mem::replace(&mut self.last, renewed));
        }
    }

    /// Whether a text contains one of them.
    pub(super) fn are_in(&self, text: &[u8]) -> bool {
        let known = [Some(&self.last), self.previous.as_ref()].into_iter();
        known
            .flatten()
            .filter(|token| !token.needle().is_empty())
            .any(|token| token.find(text).is_some())
    }

    /// Whether a message contains one of them, or a member at any depth that is called a token.
    pub(super) fn are_shown_by(&self, message: &Message) -> bool {
        let has = |finder: &Finder<'_>| finder.find(message.raw()).is_some();
        if self.are_in(message.raw()) {
            return true;
        }
        if message.kind() == Kind::Malformed {
            return NAMES.iter().any(|name| has(&Finder::new(name)));
        }
        // Most messages have neither, and need not be walked through.
        let has_escapes = messages::has_escaped_letters(message.raw());
        if !has_escapes && !has(&NAMES_END) {
            return false;
        }
        let is_in = |text: &str| has_escapes && self.are_in(text.as_bytes());
        message.walk().any(|token| match token {
            JsonToken::Key(span) => message
                .text_at(span)
                .is_some_and(|key| NAMES.contains(&&*key) || is_in(&key)),
            JsonToken::Scalar(span) => message.text_at(span).is_some_and(|text| is_in(&text)),
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_shown(tokens: &KnownTokens, message: &str) -> bool {
        tokens.are_shown_by(&Message::parse(message.to_owned()))
    }

    #[test]
    fn names_are_found_at_any_depth_and_values_are_not_names() {
        let tokens = KnownTokens::new("");
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
        let mut tokens = KnownTokens::new("first");
        tokens.renew("second");
        tokens.renew("second");
        for (text, is_known) in [("first", true), ("second", true), ("third", false)] {
            let message = format!(r#"{{"id":1,"method":"a","params":{{"text":"{text}"}}}}"#);
            assert_eq!(is_shown(&tokens, &message), is_known, "{text}");
        }
    }

    #[test]
    fn names_are_found_in_what_is_not_json() {
        let tokens = KnownTokens::new("");
        assert!(is_shown(&tokens, r#"{"id":1,"params":{accessToken:"x"}}"#));
        assert!(is_shown(
            &tokens,
            r#"{"id":1,"params":{'access_token':'x'}}"#
        ));
    }

    #[test]
    fn escapes_hide_no_token() {
        let tokens = KnownTokens::new("a.b");
        for message in [
            r#"{"id":1,"method":"a","params":{"x":"a\u002eb"}}"#,
            r#"{"id":1,"method":"a","params":{"-\u0061.b-":1}}"#,
        ] {
            assert!(is_shown(&tokens, message), "{message}");
        }
        assert!(!is_shown(
            &tokens,
            r#"{"id":1,"method":"a","params":{"x":"a\u002fb"}}"#
        ));
    }
}
