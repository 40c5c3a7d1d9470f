//! Keys by name: whole keys of JSON objects, and as well as can be in other text.

use super::preset::PresetKeys;
use super::{RedactionError, text};
use mcp_proxy_wire::Span;
use regex::bytes::Regex;

/// Names of keys whose values are hidden.
#[derive(Debug)]
pub(super) struct Keys {
    asked: Option<Regex>,
    preset: Option<Regex>,
    /// Names that the preset's are part of, and that are no secrets.
    harmless: Option<Regex>,
}

/// What `_` stands for.
#[derive(Clone, Copy)]
enum Joint {
    Itself,
    /// However people join two words.
    AnyOrNone,
}

impl Keys {
    /// `asked` for by the user, and `preset` by us. `None` if there are none.
    pub(super) fn new(
        asked: &[String],
        preset: &PresetKeys,
    ) -> Result<Option<Keys>, RedactionError> {
        if asked.iter().any(String::is_empty) {
            return Err(RedactionError::EmptyKey);
        }
        let keys = Keys {
            asked: one_of(asked.iter().map(|glob| fragment(glob, Joint::Itself)))?,
            preset: one_of(preset.secret.iter().map(preset_fragment))?,
            harmless: one_of(preset.harmless.iter().map(preset_fragment))?,
        };
        Ok((keys.asked.is_some() || keys.preset.is_some()).then_some(keys))
    }

    /// Whether `key`, escapes resolved, is one of them.
    pub(super) fn is(&self, key: &[u8]) -> bool {
        let says = |names: &Option<Regex>| names.as_ref().is_some_and(|names| names.is_match(key));
        says(&self.asked) || (says(&self.preset) && !says(&self.harmless))
    }

    /// The values in `text` that seem to belong to one of them: `"key": value`, `key: value` and `key = value`.
    pub(super) fn in_text<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = Span> + 'a {
        let mut done = 0;
        memchr::memchr2_iter(b'=', b':', text).filter_map(move |at| {
            if at < done {
                return None;
            }
            let value = text::value_of(text, at, |key| self.is(key))?;
            done = value.end;
            Some(value)
        })
    }
}

/// What finds one of the names, whichever; `None` if there are none.
fn one_of(names: impl Iterator<Item = String>) -> Result<Option<Regex>, RedactionError> {
    let any = names.collect::<Vec<_>>().join("|");
    if any.is_empty() {
        return Ok(None);
    }
    // Bytes, not characters: that keeps the automaton small, and keys are often no longer than a word.
    Regex::new(&format!("(?is-u)^(?:{any})$"))
        .map(Some)
        .map_err(RedactionError::TooLarge)
}

fn preset_fragment(glob: &&str) -> String {
    fragment(glob, Joint::AnyOrNone)
}

/// The regular expression for a name.
fn fragment(glob: &str, joint: Joint) -> String {
    let mut pattern = String::new();
    for letter in glob.chars() {
        match (letter, joint) {
            ('*', _) => pattern.push_str(".*"),
            ('_', Joint::AnyOrNone) => pattern.push_str("[-_. ]?"),
            (letter, _) if letter.is_ascii() => {
                pattern.push_str(&regex::escape(letter.encode_utf8(&mut [0; 4])));
            }
            (letter, _) => pattern.push_str(&format!("(?u:{letter})")),
        }
    }
    pattern
}
