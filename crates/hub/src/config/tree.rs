//! A config file in whatever language it is written: JSON with comments, TOML or YAML becomes one tree.

mod json;
mod toml;
mod yaml;

use std::path::Path;

use serde_path_to_error::Segment;

use super::error::{ConfigFault, FileLanguage};

/// A value of a config file.
#[derive(Clone)]
pub(super) enum Tree {
    Null,
    Boolean(bool),
    /// As it was written.
    Number(String),
    Text(String),
    List(Vec<Tree>),
    /// In the order of the file. A key can be there twice.
    Table(Vec<Member>),
}

/// A key and its value.
#[derive(Clone)]
pub(super) struct Member {
    /// The key that it is read by.
    pub(super) key: String,
    /// The key that is in the file, for people. Empty: it is not in the file, and paths leave it out.
    pub(super) written: String,
    pub(super) value: Tree,
}

/// Text that is not what its language allows.
struct SyntaxError {
    /// The line that is wrong, from 1.
    line: usize,
    /// Why, without quoting the text.
    why: String,
}

/// Parses a text in the language of its file name, or in the one that it looks like.
pub(super) fn parse(name: &str, text: &str) -> Result<Tree, ConfigFault> {
    let language = language_of_name(name).unwrap_or_else(|| language_of_text(text));
    let parsed = match language {
        FileLanguage::Json => json::parse(text),
        FileLanguage::Toml => toml::parse(text),
        FileLanguage::Yaml => yaml::parse(text),
    };
    parsed.map_err(|SyntaxError { line, why }| ConfigFault::Syntax {
        language,
        line,
        why,
    })
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

impl Member {
    pub(super) fn new(key: impl Into<String>, value: Tree) -> Member {
        let key = key.into();
        Member {
            written: key.clone(),
            key,
            value,
        }
    }
}

impl Tree {
    /// The members of a table.
    pub(super) fn members(&self) -> Option<&[Member]> {
        match self {
            Tree::Table(members) => Some(members),
            _ => None,
        }
    }

    /// The items of a list.
    pub(super) fn items(&self) -> Option<&[Tree]> {
        match self {
            Tree::List(items) => Some(items),
            _ => None,
        }
    }

    /// The text of a string.
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Tree::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The member of a table with this key.
    pub(super) fn member(&self, key: &str) -> Option<&Member> {
        self.members()?.iter().find(|member| member.key == key)
    }

    /// The value of a key, if this is a table that has it.
    pub(super) fn get(&self, key: &str) -> Option<&Tree> {
        self.member(key).map(|member| &member.value)
    }

    /// The path and the value of a key with dots, which is a single key or leads through tables. Null is nothing.
    pub(super) fn lookup(&self, key: &str) -> Option<(String, &Tree)> {
        if let Some(value) = self.get(key) {
            return (!value.is_null()).then(|| (join("", key), value));
        }
        let (outer, inner) = key.split_once('.')?;
        let (path, value) = self.get(outer)?.lookup(inner)?;
        Some((format!("{outer}.{path}"), value))
    }

    /// Removes the members of a table with this key.
    pub(super) fn remove(&mut self, key: &str) {
        if let Tree::Table(members) = self {
            members.retain(|member| member.key != key);
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Tree::Null)
    }

    /// Removes every member of a table that is null, and those of the tables in it.
    pub(super) fn remove_nulls(&mut self) {
        if let Tree::Table(members) = self {
            members.retain(|member| !member.value.is_null());
            for member in members {
                member.value.remove_nulls();
            }
        }
    }

    /// Calls a function with every string in it.
    pub(super) fn for_each_text(&self, see: &mut dyn FnMut(&str)) {
        match self {
            Tree::Text(text) => see(text),
            Tree::List(items) => items.iter().for_each(|item| item.for_each_text(see)),
            Tree::Table(members) => {
                for member in members {
                    member.value.for_each_text(see);
                }
            }
            Tree::Null | Tree::Boolean(_) | Tree::Number(_) => {}
        }
    }

    /// Rewrites every string in it.
    pub(super) fn rewrite_texts(&mut self, rewrite: fn(&str) -> String) {
        match self {
            Tree::Text(text) => *text = rewrite(text),
            Tree::List(items) => items
                .iter_mut()
                .for_each(|item| item.rewrite_texts(rewrite)),
            Tree::Table(members) => {
                for member in members {
                    member.value.rewrite_texts(rewrite);
                }
            }
            Tree::Null | Tree::Boolean(_) | Tree::Number(_) => {}
        }
    }

    /// The keys that lead to a value in this tree, as they are in the file. `base` leads to the tree.
    pub(super) fn written_path(&self, base: &str, path: &serde_path_to_error::Path) -> String {
        let mut shown = base.to_owned();
        let mut at = Some(self);
        for segment in path {
            match segment {
                Segment::Map { key } => {
                    let member = at.and_then(|table| table.member(key));
                    shown = join(&shown, member.map_or(key, |member| &member.written));
                    at = member.map(|member| &member.value);
                }
                Segment::Seq { index } => {
                    shown += &format!("[{index}]");
                    at = at.and_then(|list| list.items()?.get(*index));
                }
                // A variant is a value.
                Segment::Enum { .. } | Segment::Unknown => {}
            }
        }
        shown
    }

    /// What it is, for people.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Tree::Text(_) => "a string",
            Tree::Number(_) => "a number",
            Tree::Boolean(_) => "a boolean",
            Tree::Table(_) => "an object",
            Tree::List(_) => "a list",
            Tree::Null => "null",
        }
    }
}

/// Whether these are the members of a server that is turned off.
pub(super) fn is_off(entry: &[Member]) -> bool {
    entry
        .iter()
        .any(|member| match (member.key.as_str(), &member.value) {
            ("enabled", Tree::Boolean(enabled)) => !enabled,
            ("disabled", Tree::Boolean(disabled)) => *disabled,
            _ => false,
        })
}

/// A path with one key more. A key that is not a plain word is quoted.
pub(super) fn join(path: &str, key: &str) -> String {
    if key.is_empty() && !path.is_empty() {
        return path.to_owned();
    }
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '$');
    let key = match !key.is_empty() && key.chars().all(is_plain) {
        true => key.to_owned(),
        false => format!("{key:?}"),
    };
    match path {
        "" => key,
        path => format!("{path}.{key}"),
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
