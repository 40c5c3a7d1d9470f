//! What is shown of a definition.

use std::borrow::Cow;

use bytes::Bytes;
use mcp_proxy_wire::{Message, Span, string_content};

use super::object::JsonObject;
use super::{AnnotationUse, DispatchFormat};
use crate::json;

/// The most characters of a description in compact form.
pub(super) const MAX_SUMMARY: usize = 160;

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
    pub(super) fn describe(&self, shown: &mut JsonObject, format: DispatchFormat) {
        let texts = ["description", "title"].into_iter();
        let mut texts = texts.filter_map(|name| self.text(name));
        let Some(text) = texts.find(|text| !text.trim().is_empty()) else {
            return;
        };
        match format {
            DispatchFormat::Compact => shown.text("description", &first_sentence(&text)),
            DispatchFormat::Detail => shown.text("description", &text),
        }
    }

    /// Adds annotations. `name` is what is shown already.
    pub(super) fn annotate(&self, shown: &mut JsonObject, used: AnnotationUse, name: &str) {
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
                let mut notable = JsonObject::new();
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
    pub(super) fn copy(&self, shown: &mut JsonObject, name: &str) {
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

/// The first sentence of `text` on one line, cut after [`MAX_SUMMARY`] characters.
fn first_sentence(text: &str) -> String {
    // Some servers send manuals. White space counts too, but nobody begins with this much of it.
    let beginning = match text.char_indices().nth(8 * MAX_SUMMARY) {
        Some((end, _)) => &text[..end],
        None => text,
    };
    let mut sentence = String::new();
    let mut lines = beginning.trim_start().lines().map(str::trim);
    // A blank line ends a sentence, a line break alone does not.
    for word in lines
        .by_ref()
        .take_while(|line| !line.is_empty())
        .flat_map(str::split_whitespace)
    {
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        sentence.push_str(word);
        if ends_sentence(word) {
            break;
        }
    }
    cut(sentence, MAX_SUMMARY)
}

fn ends_sentence(word: &str) -> bool {
    let word = word.trim_end_matches(['"', '\'', ')', '`', '*']);
    let abbreviation = ["e.g.", "i.e.", "etc.", "vs.", "cf."]
        .iter()
        .any(|abbreviation| {
            word.trim_start_matches('(')
                .eq_ignore_ascii_case(abbreviation)
        });
    word.ends_with(['.', '!', '?', '。']) && !abbreviation
}

/// `text` with at most this many characters, the last one `…` if there were more.
pub(super) fn cut(mut text: String, most: usize) -> String {
    if text.chars().nth(most).is_some() {
        let end = text
            .char_indices()
            .nth(most.saturating_sub(1))
            .map_or(0, |(end, _)| end);
        text.truncate(end);
        text.truncate(text.trim_end().len());
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_one_sentence_on_one_line() {
        let cases = [
            ("Add two numbers", "Add two numbers"),
            ("  Reads a file.  Paths are relative.", "Reads a file."),
            (
                "Reads\n  a file (e.g. a.txt). More.",
                "Reads a file (e.g. a.txt).",
            ),
            ("Lists v1.2 items! Really", "Lists v1.2 items!"),
            ("A title\n\nThe rest.", "A title"),
            ("\n\n# Heading\nText", "# Heading Text"),
            ("", ""),
            ("ファイルを読む。 続き", "ファイルを読む。"),
        ];
        for (text, expected) in cases {
            assert_eq!(first_sentence(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_long_sentence_is_cut() {
        let cut = first_sentence(&"é ".repeat(1000));
        assert_eq!(cut.chars().count(), MAX_SUMMARY);
        assert!(cut.ends_with("é…"));
        assert_eq!(first_sentence(&"é".repeat(160)), "é".repeat(160));
        assert_eq!(
            first_sentence(&"é".repeat(161)).chars().count(),
            MAX_SUMMARY
        );
    }
}
