//! Redaction: values that must not be stored are replaced before they are.
//!
//! A [`Redaction`] is made of what the user asked for: names of keys, patterns over values, JSON paths, presets. The recorder
//! asks it about each body and each line of text, and an export may ask it again. Only the value's own bytes change; what is
//! forwarded never does. In the place of a value stands a mark that holds a random word of this session, and the record's
//! line counts the marks outside of the body, so a peer can fake neither.
//!
//! It is not [`crate::CredentialRedaction`], which hides credentials in headers and command lines and is always on.

mod find;
mod key;
mod line;
mod mark;
mod path;
mod preset;
mod text;

pub use mark::{MissingFills, RedactedPlace, UnknownMarks, fill_redactions, redacted_places};
pub use preset::RedactionPreset;

use bytes::Bytes;
use find::SecretFinder;
use key::SecretKeyNames;
use mark::RedactionMark;
use mcp_proxy_wire::{Kind, Message};
use path::RedactionPaths;
use preset::{PresetKeys, any_pattern};
use regex::bytes::Regex;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What to hide, as it was asked for.
#[derive(Debug, Clone, Default)]
pub struct RedactionRules {
    /// Keys of objects, at any depth, case-insensitive; `*` matches any characters.
    pub keys: Vec<String>,
    /// Regular expressions over the content of strings and numbers.
    pub values: Vec<String>,
    /// JSON paths from the message: `$.params.arguments.password`.
    pub paths: Vec<String>,
    /// Lists of ours.
    pub presets: Vec<RedactionPreset>,
}

/// Why rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RedactionError {
    /// A key that names nothing.
    #[error("an empty key names nothing; write a name, or * for every key")]
    EmptyKey,
    /// A pattern that is none.
    #[error("{pattern:?} is not a pattern")]
    Value {
        /// As given.
        pattern: String,
        /// What is wrong with it.
        #[source]
        source: regex::Error,
    },
    /// A path that is none.
    #[error(
        "{path:?} is not a path: {why}; write $.params.arguments.password, $..password or $.result.content[*].text"
    )]
    Path {
        /// As given.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The rules are too many or too long together.
    #[error("the rules are too large together")]
    TooLarge(#[source] regex::Error),
}

/// What a record's header says about redaction. Patterns are counted and not told: one may be the secret itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedactionFacts {
    /// The word in every mark of this session.
    pub nonce: String,
    /// `--redact-preset`
    #[serde(default)]
    pub presets: Vec<String>,
    /// `--redact-key`
    #[serde(default)]
    pub keys: Vec<String>,
    /// `--redact-path`
    #[serde(default)]
    pub paths: Vec<String>,
    /// How many `--redact-value` there were.
    #[serde(default)]
    pub values: u64,
}

/// Rules ready for use, and the word that marks what they hid. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Redaction(Arc<CompiledRedaction>);

#[derive(Debug)]
struct CompiledRedaction {
    rules: Arc<CompiledRedactionRules>,
    mark: RedactionMark,
    facts: RedactionFacts,
}

/// The rules, compiled.
#[derive(Debug)]
struct CompiledRedactionRules {
    keys: Option<SecretKeyNames>,
    paths: RedactionPaths,
    values: Vec<Regex>,
    /// Shapes of credentials. No key is called like that, so they are looked for in keys too.
    tokens: Vec<Regex>,
    /// Whether any of them is in a text: one look for nearly all texts.
    any_token: Option<Regex>,
}

/// A message whose secrets are gone.
#[derive(Debug, Clone)]
pub struct RedactedMessage {
    /// What is left; every byte outside of the hidden values is as it was.
    pub message: Message,
    /// How many values were hidden.
    pub count: u32,
}

impl Redaction {
    /// Checks and compiles rules. `None` if there are none: nothing is hidden then, and nothing is looked at.
    pub fn new(asked: &RedactionRules) -> Result<Option<Redaction>, RedactionError> {
        let RedactionRules {
            keys,
            values,
            paths,
            presets,
        } = asked;
        if keys.is_empty() && values.is_empty() && paths.is_empty() && presets.is_empty() {
            return Ok(None);
        }
        let mut patterns = Vec::new();
        let mut tokens = Vec::new();
        for pattern in values {
            patterns.push(Regex::new(pattern).map_err(|source| RedactionError::Value {
                pattern: pattern.clone(),
                source,
            })?);
        }
        let for_relay = presets.contains(&RedactionPreset::RelayTokens);
        let shapes = match presets.iter().any(RedactionPreset::has_tokens) {
            true => preset::TOKENS,
            false if for_relay => &[preset::JWT],
            false => &[],
        };
        let mut any_token = None;
        if !shapes.is_empty() {
            any_token = Some(any_pattern(shapes).map_err(RedactionError::TooLarge)?);
            for pattern in shapes {
                tokens.push(Regex::new(pattern).map_err(RedactionError::TooLarge)?);
            }
        }
        let preset_keys = match presets.iter().any(RedactionPreset::has_keys) {
            true => preset::PRESET_KEYS,
            false if for_relay => preset::RELAY_KEYS,
            false => PresetKeys::default(),
        };
        let nonce = format!("{:016x}", crate::new_salt());
        let facts = RedactionFacts {
            nonce,
            presets: presets.iter().map(RedactionPreset::to_string).collect(),
            keys: keys.clone(),
            paths: paths.clone(),
            values: values.len() as u64,
        };
        let rules = CompiledRedactionRules {
            keys: SecretKeyNames::new(keys, &preset_keys)?,
            paths: RedactionPaths::new(paths)?,
            values: patterns,
            tokens,
            any_token,
        };
        Ok(Some(Redaction(Arc::new(CompiledRedaction {
            rules: Arc::new(rules),
            mark: RedactionMark::for_peers(&facts.nonce).map_err(RedactionError::TooLarge)?,
            facts,
        }))))
    }

    /// What a header says about it.
    pub fn facts(&self) -> &RedactionFacts {
        &self.0.facts
    }

    /// The message without its secrets; `None` if it has none.
    pub fn message(&self, message: &Message) -> Option<RedactedMessage> {
        self.message_after(message, 0)
    }

    /// An edited copy of what [`Redaction::message`] shows of `original`, with the hidden values back in the place of their
    /// marks.
    ///
    /// # Errors
    /// It has marks that match no hidden value of the original.
    pub fn restore(&self, edited: &[u8], original: &Message) -> Result<Bytes, UnknownMarks> {
        let hits = self.hits(original);
        self.0.mark.restore(edited, original.raw(), &hits)
    }

    fn hits(&self, message: &Message) -> Vec<find::RedactionHit> {
        match message.kind() {
            Kind::Malformed => self.finder().in_text(message.raw()),
            _ => self.finder().in_message(message),
        }
    }

    /// The same rules for messages out of a record, which may hold marks already. Those stay, and new ones have the same word.
    pub(crate) fn for_record(&self, before: Option<&RedactionFacts>) -> Redaction {
        let now = self.facts();
        let facts = match before {
            None => now.clone(),
            Some(before) => RedactionFacts {
                nonce: before.nonce.clone(),
                presets: joined(&before.presets, &now.presets),
                keys: joined(&before.keys, &now.keys),
                paths: joined(&before.paths, &now.paths),
                values: before.values + now.values,
            },
        };
        Redaction(Arc::new(CompiledRedaction {
            rules: Arc::clone(&self.0.rules),
            mark: RedactionMark::for_record(&facts.nonce),
            facts,
        }))
    }

    /// [`Redaction::message`] for a message that already has this many marks.
    pub(crate) fn message_after(&self, message: &Message, marks: u32) -> Option<RedactedMessage> {
        let hits = self.hits(message);
        let count = u32::try_from(hits.len()).unwrap_or(u32::MAX);
        (count > 0).then(|| RedactedMessage {
            message: Message::parse(self.0.mark.put(message.raw(), &hits, marks)),
            count,
        })
    }

    /// Text from outside of messages (a header's value, a word of a command line), with `[masked]` for what is hidden.
    pub(crate) fn masked(&self, text: &[u8]) -> Option<Bytes> {
        let hits = self.finder().in_text(text);
        (!hits.is_empty()).then(|| RedactionMark::mask(text, &hits))
    }

    fn finder(&self) -> SecretFinder<'_> {
        SecretFinder {
            rules: &self.0.rules,
            mark: &self.0.mark,
        }
    }

    /// Whether the HTTP header with this name, in lower case, is to be hidden.
    pub(crate) fn names_header(&self, name: &str) -> bool {
        let key = name.strip_prefix(PARAM_HEADER).unwrap_or(name);
        let keys = self.0.rules.keys.as_ref();
        keys.is_some_and(|keys| keys.named(key.as_bytes()).is_some())
    }
}

/// What the headers begin with that modern HTTP says a tool's arguments in.
const PARAM_HEADER: &str = "mcp-param-";

/// Whether an HTTP header says some of the body again, and so must go with what is hidden there.
pub(crate) fn repeats_body(name: &str) -> bool {
    name == "mcp-name" || name.starts_with(PARAM_HEADER)
}

fn joined(before: &[String], now: &[String]) -> Vec<String> {
    let new = now.iter().filter(|word| !before.contains(word));
    before.iter().chain(new).cloned().collect()
}
