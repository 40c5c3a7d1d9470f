//! Keys by name: whole keys of JSON objects, and as well as can be in other text.

use super::preset::PresetKeys;
use super::{RedactionError, text};
use mcp_proxy_wire::Span;
use regex::bytes::Regex;

/// Names of keys whose values are hidden.
#[derive(Debug)]
pub(super) struct SecretKeyNames {
    asked: Option<Regex>,
    preset: Option<Regex>,
    /// Names that the preset's are part of, and that are not secrets.
    harmless: Option<Regex>,
}

/// Who gave a key its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyNameSource {
    /// The user asked for it: whatever it holds is hidden.
    User,
    /// The preset guesses.
    Preset,
}

/// What `_` stands for.
#[derive(Clone, Copy)]
enum WordSeparator {
    Itself,
    /// However people join two words.
    AnyOrNone,
}

impl SecretKeyNames {
    /// `asked` for by the user, and `preset` by us. `None` if there are none.
    pub(super) fn new(
        asked: &[String],
        preset: &PresetKeys,
    ) -> Result<Option<SecretKeyNames>, RedactionError> {
        if asked.iter().any(String::is_empty) {
            return Err(RedactionError::EmptyKey);
        }
        let keys = SecretKeyNames {
            asked: one_of(
                asked
                    .iter()
                    .map(|glob| fragment(glob, WordSeparator::Itself)),
                "",
            )?,
            preset: one_of(preset.secret.iter().map(preset_fragment), NUMBERED)?,
            harmless: one_of(preset.harmless.iter().map(preset_fragment), NUMBERED)?,
        };
        Ok((keys.asked.is_some() || keys.preset.is_some()).then_some(keys))
    }

    /// Who named `key`, escapes resolved, if anybody did.
    pub(super) fn named(&self, key: &[u8]) -> Option<KeyNameSource> {
        if says(&self.asked, key) {
            return Some(KeyNameSource::User);
        }
        (says(&self.preset, key) && !says(&self.harmless, key)).then_some(KeyNameSource::Preset)
    }

    /// Whether the preset knows `key` as one that only looks like a credential's.
    pub(super) fn is_harmless(&self, key: &[u8]) -> bool {
        says(&self.harmless, key)
    }

    /// The values in `text` that seem to belong to one of them.
    pub(super) fn in_text(&self, text: &[u8]) -> Vec<Span> {
        text::values(text, self)
    }
}

/// What may follow a preset's name: `password2`.
const NUMBERED: &str = "[-_]?[0-9]{0,3}";

fn says(names: &Option<Regex>, key: &[u8]) -> bool {
    names.as_ref().is_some_and(|names| names.is_match(key))
}

/// What finds one of the names, whichever; `None` if there are none.
fn one_of(
    names: impl Iterator<Item = String>,
    ending: &str,
) -> Result<Option<Regex>, RedactionError> {
    let any = names.collect::<Vec<_>>().join("|");
    if any.is_empty() {
        return Ok(None);
    }
    // Bytes, not characters: that keeps the automaton small, and keys are often no longer than a word.
    Regex::new(&format!("(?is-u)^(?:{any}){ending}$"))
        .map(Some)
        .map_err(RedactionError::TooLarge)
}

fn preset_fragment(glob: &&str) -> String {
    fragment(glob, WordSeparator::AnyOrNone)
}

/// The regular expression for a name.
fn fragment(glob: &str, joint: WordSeparator) -> String {
    let mut pattern = String::new();
    for letter in glob.chars() {
        match (letter, joint) {
            ('*', _) => pattern.push_str(".*"),
            ('_', WordSeparator::AnyOrNone) => pattern.push_str("[-_. ]?"),
            ('-', WordSeparator::AnyOrNone) => pattern.push_str("[-_. ]"),
            (letter, _) if letter.is_ascii() => {
                pattern.push_str(&regex::escape(letter.encode_utf8(&mut [0; 4])));
            }
            (letter, _) => pattern.push_str(&format!("(?u:{letter})")),
        }
    }
    pattern
}
