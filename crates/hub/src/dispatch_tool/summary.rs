//! What is shown of a definition.

use std::borrow::Cow;

use bytes::Bytes;
use mcp_proxy_wire::{Message, Span, string_content};

use super::{AnnotationUse, DispatchFormat};
use crate::json;
use crate::wording::first_sentence;
use mcp_proxy_wire::json::ObjectWriter;

/// A definition that a server sent, for look-ups.
pub(super) struct Definition(Message);

impl Definition {
    pub(super) fn new(definition: Bytes) -> Definition {
        Definition(json::parse(definition).unwrap_or_else(|| Message::parse("{}")))
    }

    pub(super) fn message(&self) -> &Message {
        &self.0
    }

    /// Where a member stands that is not `null`.
    pub(super) fn member(&self, name: &str) -> Option<Span> {
        let member = self.0.member(self.0.root(), name)?;
        (self.0.slice(member) != b"null").then_some(member)
    }

    pub(super) fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.0.text_at(self.member(name)?)
    }

    /// Adds the description: all of it, or its first sentence. A definition without one may have a title.
    pub(super) fn describe(&self, shown: &mut ObjectWriter, format: DispatchFormat) {
        let texts = ["description", "title"].into_iter();
        let mut texts = texts.filter_map(|name| self.text(name));
        let Some(text) = texts.find(|text| !text.trim().is_empty()) else {
            return;
        };
        match format {
            DispatchFormat::Text | DispatchFormat::Compact => {
                shown.text("description", &first_sentence(&text))
            }
            DispatchFormat::Detail => shown.text("description", &text),
        }
    }

    /// Adds annotations. `name` is what is shown already.
    pub(super) fn annotate(&self, shown: &mut ObjectWriter, used: AnnotationUse, name: &str) {
        match used {
            AnnotationUse::None => {}
            AnnotationUse::All => self.copy(shown, "annotations"),
            AnnotationUse::Notable => {
                let Some(annotations) = self.member("annotations") else {
                    return;
                };
                let members = json::members(&self.0, annotations);
                let is_read_only = members.iter().any(|(key, value)| {
                    json::key_text(&self.0, *key) == "readOnlyHint"
                        && self.0.slice(*value) == b"true"
                });
                let mut notable = ObjectWriter::new();
                for (key, value) in members {
                    let (key, value) = (json::key_text(&self.0, key), self.0.slice(value));
                    let says_something = match &*key {
                        // A description says more.
                        "title" => self.text("description").is_none() && is_other(value, name),
                        // They are about changes.
                        "destructiveHint" | "idempotentHint" if is_read_only => false,
                        key => value != b"null" && !DEFAULT_HINTS.contains(&(key, value)),
                    };
                    if says_something {
                        notable.compact(&key, value);
                    }
                }
                if !notable.is_empty() {
                    shown.object("annotations", notable);
                }
            }
        }
    }

    /// Adds a member as it is, without white space.
    pub(super) fn copy(&self, shown: &mut ObjectWriter, name: &str) {
        if let Some(member) = self.member(name) {
            shown.compact(name, self.0.slice(member));
        }
    }
}

/// Hints that say what the specification assumes anyway, and what they are then.
const DEFAULT_HINTS: [(&str, &[u8]); 4] = [
    ("readOnlyHint", b"false"),
    ("destructiveHint", b"true"),
    ("idempotentHint", b"false"),
    ("openWorldHint", b"true"),
];

/// Whether a title has other letters than a name.
fn is_other(title: &[u8], name: &str) -> bool {
    let letters = |text: &str| -> String {
        let kept = text.chars().filter(|c| c.is_alphanumeric());
        kept.flat_map(char::to_lowercase).collect()
    };
    string_content(title)
        .is_some_and(|title| letters(&String::from_utf8_lossy(&title)) != letters(name))
}
