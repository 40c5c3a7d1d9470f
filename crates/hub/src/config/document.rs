//! A config file in whatever language it is written: JSON with comments, TOML or YAML becomes one tree, in which every value
//! and key knows its place in the text.

mod json;
mod toml;
mod yaml;

use std::path::Path;

use super::error::{ConfigError, ConfigFault, FileLanguage, TextPosition};
use super::variables::Environment;

/// A config file while it is read.
#[derive(Clone, Copy)]
pub(super) struct FileText<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    pub(super) environment: Environment<'a>,
}

/// A value with its place.
#[derive(Clone)]
pub(super) struct DocumentValue {
    /// The byte that it starts at.
    pub(super) start: usize,
    pub(super) content: DocumentContent,
}

/// What a value is.
#[derive(Clone)]
pub(super) enum DocumentContent {
    Null,
    Boolean(bool),
    /// As it was written.
    Number(String),
    Text(String),
    /// The value of an environment variable that a key of the file names, with what comes before it.
    Variable {
        /// The key, which is next to the table that the value was put into.
        key: &'static str,
        before: &'static str,
        name: String,
    },
    List(Vec<DocumentValue>),
    Table(Vec<DocumentMember>),
}

/// A key and its value.
#[derive(Clone)]
pub(super) struct DocumentMember {
    /// The key that it is read by.
    pub(super) key: String,
    /// The key that is in the file, for people. Empty: it is not in the file, and paths leave it out.
    pub(super) written: String,
    /// The byte that the key starts at.
    pub(super) key_start: usize,
    pub(super) value: DocumentValue,
}

/// Text that is not what its language allows.
struct SyntaxError {
    /// The byte that is wrong.
    at: usize,
    /// Why, without quoting the text.
    why: String,
}

impl<'a> FileText<'a> {
    /// Parses the text in the language of its file name, or in the one that it looks like.
    pub(super) fn parse(&self) -> Result<DocumentValue, ConfigError> {
        let language = language_of_name(self.name).unwrap_or_else(|| language_of_text(self.text));
        let parsed = match language {
            FileLanguage::Json => json::parse(self.text),
            FileLanguage::Toml => toml::parse(self.text),
            FileLanguage::Yaml => yaml::parse(self.text),
        };
        parsed.map_err(|SyntaxError { at, why }| {
            self.error(at, String::new(), ConfigFault::Syntax { language, why })
        })
    }

    /// An error at a byte of the text.
    pub(super) fn error(&self, at: usize, key: String, fault: ConfigFault) -> ConfigError {
        ConfigError {
            file: self.name.to_owned(),
            position: TextPosition::of(self.text, at),
            key,
            fault,
        }
    }
}

fn language_of_name(name: &str) -> Option<FileLanguage> {
    let ending = Path::new(name).extension()?.to_str()?;
    match ending.to_ascii_lowercase().as_str() {
        "json" | "jsonc" | "json5" => Some(FileLanguage::Json),
        "toml" => Some(FileLanguage::Toml),
        "yaml" | "yml" => Some(FileLanguage::Yaml),
        _ => None,
    }
}

/// A file without a telling name, such as a pipe: JSON begins with a bracket or a comment, TOML has a table or `key =` in its
/// first line that says anything.
fn language_of_text(text: &str) -> FileLanguage {
    let lines = text.lines().map(str::trim);
    let mut telling = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let line = telling.next().unwrap_or_default();
    let is_toml_table = line.starts_with('[') && line.ends_with(']') && line.len() > 2;
    let is_toml_key = line.split_once('=').is_some_and(|(key, _)| {
        let key = key.trim();
        let plain = |letter: char| letter.is_alphanumeric() || "_-.\"'".contains(letter);
        !key.is_empty() && key.chars().all(plain)
    });
    match line.chars().next() {
        None | Some('{' | '/') => FileLanguage::Json,
        Some(_) if is_toml_table || is_toml_key => FileLanguage::Toml,
        Some(first) if first.is_alphabetic() || line.contains(": ") || line.starts_with("---") => {
            FileLanguage::Yaml
        }
        Some(_) => FileLanguage::Json,
    }
}

impl DocumentValue {
    /// A text that is not in the file, at the place of what it was made from.
    pub(super) fn text(start: usize, text: impl Into<String>) -> DocumentValue {
        DocumentValue {
            start,
            content: DocumentContent::Text(text.into()),
        }
    }

    /// The members of a table.
    pub(super) fn members(&self) -> Option<&[DocumentMember]> {
        match &self.content {
            DocumentContent::Table(members) => Some(members),
            _ => None,
        }
    }

    /// The text of a string.
    pub(super) fn as_text(&self) -> Option<&str> {
        match &self.content {
            DocumentContent::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a key, if this is a table that has it.
    pub(super) fn get(&self, key: &str) -> Option<&DocumentValue> {
        let mut members = self.members()?.iter();
        let found = members.find(|member| member.key == key)?;
        Some(&found.value)
    }

    /// Rewrites every string in it.
    pub(super) fn rewrite_texts(&mut self, rewrite: fn(&str) -> String) {
        match &mut self.content {
            DocumentContent::Text(text) => *text = rewrite(text),
            DocumentContent::List(items) => {
                for item in items {
                    item.rewrite_texts(rewrite);
                }
            }
            DocumentContent::Table(members) => {
                for member in members {
                    member.value.rewrite_texts(rewrite);
                }
            }
            DocumentContent::Null
            | DocumentContent::Boolean(_)
            | DocumentContent::Number(_)
            | DocumentContent::Variable { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_telling_name_is_known_by_its_text() {
        for (text, language) in [
            ("", FileLanguage::Json),
            ("{\"a\": 1}", FileLanguage::Json),
            ("// note\n{}", FileLanguage::Json),
            ("[]", FileLanguage::Json),
            ("hunter2\"", FileLanguage::Yaml),
            ("# note\n\nmodel = \"x\"\n", FileLanguage::Toml),
            ("[mcp_servers.git]\ncommand = 'x'", FileLanguage::Toml),
            ("# note\nextensions:\n  git:\n", FileLanguage::Yaml),
            ("---\nname: x", FileLanguage::Yaml),
            ("\"a\": 1", FileLanguage::Yaml),
        ] {
            assert_eq!(language_of_text(text), language, "{text}");
        }
        assert_eq!(language_of_name("/etc/x.YML"), Some(FileLanguage::Yaml));
        assert_eq!(language_of_name("/dev/fd/63"), None);
    }
}
