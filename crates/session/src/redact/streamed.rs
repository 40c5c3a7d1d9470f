//! Redaction of a body while it passes: a relay's tokens are found in any piece of it, so that no long body has to be kept.
//!
//! The text is looked at as it stands, escapes and all: those who write these tokens have no reason to escape a letter of them.

use super::preset::{JWT, JWT_FRONT};
use super::{Redaction, any_pattern};
use regex::bytes::Regex;

/// How much text is searched at once.
const WINDOW: usize = 32 * 1024;
/// How much of its end is kept back at most, if it may be the beginning of a token.
const KEPT_MAX: usize = WINDOW / 2;

/// How the rules for relays are applied to text.
#[derive(Debug)]
pub(super) struct StreamedRules {
    /// Whether they may apply to a text, however it is escaped.
    any: Regex,
    /// What to hide: the whole, or one of its groups: a value in quotes, one in escaped quotes, one of a URL.
    secret: Regex,
    /// What may become a secret if more follows.
    beginning: Regex,
    /// The front of a token whose end has not come.
    cut_token: Regex,
}

/// A body of which some has passed.
#[derive(Debug)]
pub(crate) struct StreamedBody {
    redaction: Redaction,
    /// What has come and was not passed on.
    text: Vec<u8>,
    /// The text before that ended inside of a secret.
    inside: Option<SecretKind>,
    hidden: u32,
}

/// What kind of secret a text ends in.
#[derive(Clone, Copy, Debug)]
enum SecretKind {
    /// A token.
    Token,
    /// A value in quotes.
    Value { is_escaped: bool },
    /// A value in escaped quotes.
    NestedValue,
    /// The value of a parameter in a URL.
    Parameter,
}

impl StreamedRules {
    pub(super) fn new(nonce: &str) -> Result<StreamedRules, regex::Error> {
        // Whatever has the word of the session looks like a mark.
        let any = [JWT, r"(?i-u)access[-_. ]?token", r"(?-u)\\u00", nonce];
        let value = r#"(?i-u)access[-_.]?token"\s*:\s*"((?s:[^"\\]|\\.)+)"#;
        let nested = r#"(?i-u)access[-_.]?token\\+"\s*:\s*\\+"([^"\\]+)"#;
        let parameter = r#"(?i-u)access[-_.]?token=([^&\s"'\\#]+)"#;
        let value_begins = r#"(?i-u)access[-_.]?token(?:=|\\*"?\s*(?::\s*(?:\\*"?)?)?)"#;
        let word = r"(?-u)[A-Za-z0-9_.-]+";
        Ok(StreamedRules {
            any: any_pattern(&any)?,
            secret: any_pattern(&[JWT, value, nested, parameter, nonce])?,
            beginning: Regex::new(&format!("(?:{value_begins}|{word})$"))?,
            cut_token: Regex::new(&format!("(?:{JWT_FRONT})$"))?,
        })
    }

    pub(super) fn may_apply_to(&self, text: &[u8]) -> bool {
        self.any.is_match(text)
    }
}

impl StreamedBody {
    pub(super) fn new(redaction: Redaction) -> StreamedBody {
        StreamedBody {
            redaction,
            text: Vec::new(),
            inside: None,
            hidden: 0,
        }
    }

    /// How many values were hidden so far.
    pub(crate) fn hidden(&self) -> u32 {
        self.hidden
    }

    /// More of the body has come. What may be stored now goes to `store`.
    pub(crate) fn piece<E>(
        &mut self,
        bytes: &[u8],
        mut store: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for bytes in bytes.chunks(WINDOW) {
            self.text.extend_from_slice(bytes);
            if self.text.len() >= WINDOW {
                let shown = self.look_through(KEPT_MAX);
                store(&shown)?;
            }
        }
        Ok(())
    }

    /// What may be stored of the end of the body.
    pub(crate) fn end(&mut self) -> Vec<u8> {
        self.look_through(0)
    }

    /// What may be stored of the text so far. At most `keep` bytes of it are kept back.
    fn look_through(&mut self, keep: usize) -> Vec<u8> {
        let text = std::mem::take(&mut self.text);
        let redaction = self.redaction.clone();
        let Some(rules) = &redaction.0.rules.streamed else {
            return text;
        };
        let mut done = 0;
        if let Some(secret) = &mut self.inside {
            match secret.end_in(&text) {
                Some(end) => (self.inside, done) = (None, end),
                None => return Vec::new(),
            }
        }
        let mut shown = Vec::with_capacity(text.len());
        let begun = done;
        for found in rules.secret.captures_iter(&text[begun..]) {
            let kinds = [
                SecretKind::Value { is_escaped: false },
                SecretKind::NestedValue,
                SecretKind::Parameter,
            ];
            let groups = (1..).zip(kinds);
            let mut groups = groups.filter_map(|(group, kind)| Some((found.get(group)?, kind)));
            let whole = || Some((found.get(0)?, SecretKind::Token));
            let Some((secret, mut kind)) = groups.next().or_else(whole) else {
                continue;
            };
            shown.extend_from_slice(&text[done..begun + secret.start()]);
            self.hide(&mut shown);
            done = begun + secret.end();
            // The text may also end in the middle of an escape.
            if kind.end_in(&text[done..]).is_none() {
                done = text.len();
                self.inside = Some(kind);
                break;
            }
        }
        let rest = &text[done..];
        let beginning = rules.beginning.find(rest).map_or(0, |found| found.len());
        let cut_token = rules.cut_token.find(rest).filter(|_| keep > 0);
        match cut_token.filter(|_| beginning > keep) {
            // Longer than all that can be kept, and most likely a token.
            Some(token) => {
                shown.extend_from_slice(&rest[..token.start()]);
                self.hide(&mut shown);
                self.inside = Some(SecretKind::Token);
            }
            None => {
                let (passed, kept) = rest.split_at(rest.len() - beginning.min(keep));
                shown.extend_from_slice(passed);
                self.text.extend_from_slice(kept);
            }
        }
        shown
    }

    /// Puts a mark.
    fn hide(&mut self, shown: &mut Vec<u8>) {
        self.hidden = self.hidden.saturating_add(1);
        let mark = self.redaction.0.mark.text(self.hidden);
        shown.extend_from_slice(mark.as_bytes());
    }
}

impl SecretKind {
    /// Where the rest of such a secret ends in a text. `None` if it continues behind the text.
    fn end_in(&mut self, text: &[u8]) -> Option<usize> {
        text.iter().position(|byte| !self.continues_with(*byte))
    }

    fn continues_with(&mut self, byte: u8) -> bool {
        match self {
            SecretKind::Token => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'),
            SecretKind::Value { is_escaped } => {
                let ends = byte == b'"' && !*is_escaped;
                *is_escaped = byte == b'\\' && !*is_escaped;
                !ends
            }
            SecretKind::NestedValue => !matches!(byte, b'"' | b'\\'),
            SecretKind::Parameter => {
                SecretKind::NestedValue.continues_with(byte)
                    && !byte.is_ascii_whitespace()
                    && !matches!(byte, b'&' | b'\'' | b'#')
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RedactionPreset, RedactionRules};
    use super::*;
    use mcp_proxy_wire::Message;

    const TOKEN: &str =
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEiLCJleHAiOjF9.c2lnbmF0dXJlLWFuZC1tb3Jl";

    fn redaction() -> Redaction {
        let rules = RedactionRules {
            presets: vec![RedactionPreset::RelayTokens],
            ..RedactionRules::default()
        };
        Redaction::new(&rules).unwrap().unwrap()
    }

    /// What is stored of a body that comes in pieces of this length, and how much of it was hidden.
    fn passed(text: &str, length: usize) -> (String, u32) {
        let redaction = redaction();
        let mut body = redaction.streamed_body().unwrap();
        let mut stored = Vec::new();
        for piece in text.as_bytes().chunks(length) {
            let store = |bytes: &[u8]| {
                stored.extend_from_slice(bytes);
                Ok::<(), ()>(())
            };
            body.piece(piece, store).unwrap();
            assert!(body.text.len() < WINDOW);
        }
        stored.extend(body.end());
        let stored = String::from_utf8(stored).unwrap();
        let nonce = &redaction.facts().nonce;
        (stored.replace(nonce.as_str(), "N"), body.hidden())
    }

    #[test]
    fn tokens_are_hidden_wherever_a_body_is_cut() {
        let body = format!(
            r#"{{"id":1,"result":{{"accessToken" : "Bearer sh\/o\"rt","url":"https://a.test/?t={TOKEN}&access_token=s2&x","text":"{{\"access_token\":\"s3\"}}","line":"a:\n{TOKEN}","end":"{TOKEN}"}}}}"#
        );
        let expected = r#"{"id":1,"result":{"accessToken" : "[redacted:N:1]","url":"https://a.test/?t=[redacted:N:2]&access_token=[redacted:N:3]&x","text":"{\"access_token\":\"[redacted:N:4]\"}","line":"a:\n[redacted:N:5]","end":"[redacted:N:6]"}}"#;
        // The text is cut where a window is full, so the front moves that place through all of it.
        for front in (0..=body.len()).map(|length| " ".repeat(WINDOW - length)) {
            let (body, expected) = (format!("{front}{body}"), format!("{front}{expected}"));
            assert_eq!(passed(&body, 64), (expected, 6), "{}", front.len());
        }
    }

    #[test]
    fn what_is_no_token_stays_as_it_is() {
        let long = "eyJ".repeat(40_000);
        let body = format!(
            r#"{{"id":1,"result":{{"data":"{long}","host":"eyeglasses.example-shop.test","access":"token","accessToken":"","accessToken":null,"x":"access_token"}}}}"#
        );
        for length in [7, 1000, 65_536, body.len()] {
            assert_eq!(passed(&body, length), (body.clone(), 0), "{length}");
        }
    }

    #[test]
    fn a_token_in_a_run_of_letters_that_is_longer_than_what_is_kept_is_hidden() {
        let body = format!("{}.{TOKEN}", "a".repeat(200_000));
        for length in [1000, 65_536, 131_072, body.len()] {
            assert_eq!(passed(&body, length).1, 1, "{length}");
        }
    }

    #[test]
    fn a_token_that_is_longer_than_what_is_kept_is_hidden() {
        let token = format!("{TOKEN}{}", "x".repeat(40_000)).replacen(
            '.',
            &format!(".{}", "y".repeat(40_000)),
            1,
        );
        for front in (0..40).map(|place| " ".repeat(place * 1000)) {
            let body = format!("{front}\"{token}\",\"z\"");
            let expected = format!("{front}\"[redacted:N:1]\",\"z\"");
            assert_eq!(passed(&body, 1000), (expected, 1), "{}", front.len());
        }
    }

    #[test]
    fn a_mark_of_the_sender_is_hidden() {
        let redaction = redaction();
        let mut body = redaction.streamed_body().unwrap();
        let fake = format!("\"[redacted:{}:1]\"", redaction.facts().nonce);
        body.piece(fake.as_bytes(), |_| Ok::<(), ()>(())).unwrap();
        assert_ne!(body.end(), fake.as_bytes());
        assert_eq!(body.hidden(), 1);
    }

    #[test]
    fn whole_messages_lose_the_same_and_what_is_escaped() {
        let escaped = TOKEN.replace('.', "\\u002e");
        for (text, hidden) in [
            (format!(r#"{{"id":1,"result":{{"t":"{TOKEN}"}}}}"#), 1),
            (
                format!(r#"{{"id":1,"result":{{"t":"Token:\n{TOKEN}\n"}}}}"#),
                1,
            ),
            (
                format!(r#"{{"id":1,"result":{{"t":"%3Ft%3D{TOKEN}"}}}}"#),
                1,
            ),
            (
                format!(r#"{{"id":1,"result":{{"t":"{TOKEN}-{TOKEN}"}}}}"#),
                1,
            ),
            (format!(r#"{{"id":1,"result":{{"t":"{escaped}"}}}}"#), 1),
            (r#"{"id":1,"result":{"accessToken":"short"}}"#.to_owned(), 1),
            (
                r#"{"id":1,"result":{"access\u005ftoken":"s"}}"#.to_owned(),
                1,
            ),
            (r#"{"id":1,"result":{"tabs":[]}}"#.to_owned(), 0),
            (r#"{"id":1,"result":{"password":"x"}}"#.to_owned(), 0),
        ] {
            let redacted = redaction().message(&Message::parse(text.clone()));
            assert_eq!(
                redacted.map_or(0, |redacted| redacted.count),
                hidden,
                "{text}"
            );
        }
    }

    #[test]
    fn other_rules_need_whole_bodies() {
        let rules = RedactionRules {
            keys: vec!["ssn".to_owned()],
            presets: vec![RedactionPreset::RelayTokens],
            ..RedactionRules::default()
        };
        let redaction = Redaction::new(&rules).unwrap().unwrap();
        assert!(redaction.streamed_body().is_none());
    }
}
