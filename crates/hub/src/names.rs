//! How a server's tools and prompts are called in public.
//!
//! The default is `prefix_name`. Many clients accept only `^[A-Za-z0-9_-]{1,64}$`, so any other name gets a short form
//! that ends in a hash of the full name. The hash depends on nothing else, so a name keeps its short form whatever is
//! mounted next to it. A name that has the prefix already gets no second one: `git_log` of the server `git` stays `git_log`,
//! and `git_git_log` is another way to ask for it.

mod allowed;

use std::collections::BTreeMap;

pub use allowed::AllowedNames;

use crate::catalog::ItemKind;

/// The longest name that clients are sure to accept.
pub const MAX_NAME_LENGTH: usize = 64;

/// How the definitions of one server are shown, as configured.
///
/// Names of tools in here are the server's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerNaming {
    /// The name in the configuration.
    pub name: String,
    /// The short name by position: `c1`, `c2` and so on.
    pub alias: String,
    /// What public names begin with, without the separator. `None` leaves names and URIs as they are.
    pub prefix: Option<String>,
    /// What stands between the prefix and a name.
    pub separator: String,
    /// The tools that are mounted.
    pub tools: AllowedNames,
    /// The resources and templates that are mounted, by URI.
    pub resources: AllowedNames,
    /// The prompts that are mounted.
    pub prompts: AllowedNames,
    /// Tools under other names; the prefix is put in front of the new name.
    pub rename: BTreeMap<String, String>,
    /// Descriptions to show instead of the server's.
    pub descriptions: BTreeMap<String, String>,
    /// Arguments that are not shown, for each tool. They are taken out of calls too.
    pub hidden_arguments: BTreeMap<String, Vec<String>>,
    /// Arguments that are not shown and always have this value, for each tool. Values are JSON texts.
    pub fixed_arguments: BTreeMap<String, BTreeMap<String, String>>,
    /// Globs: tools that are listed natively also where others are not.
    pub pinned: Vec<String>,
}

/// What a tool or prompt should be called in public, by its own name and its server's prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NaturalName {
    /// The name.
    pub(crate) wanted: String,
    /// The form with the prefix in front, if `wanted` goes without one because the name has it already. It leads to the same.
    pub(crate) doubled: Option<String>,
}

impl ServerNaming {
    /// The naming of a server without any options: the default prefix and separator.
    pub fn new(name: impl Into<String>, alias: impl Into<String>) -> ServerNaming {
        let name = name.into();
        ServerNaming {
            alias: alias.into(),
            prefix: Some(default_prefix(&name)),
            separator: "_".to_owned(),
            name,
            ..ServerNaming::default()
        }
    }

    /// What the tool or prompt `name` should be called behind this prefix.
    pub(crate) fn natural_name(&self, prefix: Option<&str>, name: &str) -> NaturalName {
        let Some(prefix) = prefix else {
            return NaturalName {
                wanted: public_name(name.to_owned()),
                doubled: None,
            };
        };
        let full = public_name(format!("{prefix}{}{name}", self.separator));
        match has_prefix(name, prefix, &self.separator) {
            true => NaturalName {
                wanted: public_name(name.to_owned()),
                doubled: Some(full),
            },
            false => NaturalName {
                wanted: full,
                doubled: None,
            },
        }
    }

    /// Whether what the server calls `original` is mounted at all.
    pub(crate) fn allows(&self, kind: ItemKind, original: &str) -> bool {
        match kind {
            ItemKind::Tool => self.tools.permits(original),
            ItemKind::Resource | ItemKind::Template => {
                self.resources.permits(original) && !self.resources.denies_spelling(original)
            }
            ItemKind::Prompt => self.prompts.permits(original),
        }
    }

    /// What the tool that the server calls `original` is called, before the prefix.
    pub(crate) fn renamed<'a>(&'a self, original: &'a str) -> &'a str {
        self.rename.get(original).map_or(original, String::as_str)
    }

    /// The server's name of the tool that is called `renamed`. The inverse of [`ServerNaming::renamed`].
    pub(crate) fn original<'a>(&'a self, renamed: &'a str) -> &'a str {
        let mut renames = self.rename.iter();
        renames
            .find(|(_, new)| *new == renamed)
            .map_or(renamed, |(original, _)| original)
    }
}

/// Whether a name needs no prefix: it is the prefix, or begins with it and the separator.
fn has_prefix(name: &str, prefix: &str, separator: &str) -> bool {
    let rest = name.strip_prefix(prefix);
    rest.is_some_and(|rest| {
        let behind = rest.strip_prefix(separator);
        rest.is_empty() || !separator.is_empty() && behind.is_some_and(|behind| !behind.is_empty())
    })
}

/// The prefix of a server that has none configured: its name without what a prefix may not hold.
pub fn default_prefix(server: &str) -> String {
    let prefix: String = server
        .chars()
        .filter(|character| character.is_ascii_alphanumeric() || *character == '-')
        .collect();
    if prefix.is_empty() {
        format!("s-{}", name_hash(&[server]))
    } else {
        prefix
    }
}

/// The public form of a name: `name` itself if clients accept it, else its short form.
pub(crate) fn public_name(name: String) -> String {
    if is_acceptable(&name) {
        return name;
    }
    let hash = name_hash(&[&name]);
    with_suffix(&name, &hash)
}

/// `name` as far as it fits, and a suffix.
pub(crate) fn with_suffix(name: &str, suffix: &str) -> String {
    let room = MAX_NAME_LENGTH.saturating_sub(suffix.len() + 1);
    let plain = |character| {
        if is_name_character(character) {
            character
        } else {
            '_'
        }
    };
    let mut fitted: String = name.chars().map(plain).take(room).collect();
    fitted.push('_');
    fitted.push_str(suffix);
    fitted
}

/// Eight letters and digits that depend only on `parts`. They are part of public names, so they must not change between
/// versions; that rules out the hashers of the standard library.
pub(crate) fn name_hash(parts: &[&str]) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut hash = stable_hash(parts);
    let letters = (0..8).map(|_| {
        let letter = ALPHABET[(hash % 32) as usize];
        hash /= 32;
        char::from(letter)
    });
    letters.collect()
}

/// FNV-1a over the parts and their ends, with the bits mixed once more at the end.
pub(crate) fn stable_hash(parts: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        // 0xff never occurs in UTF-8, so it marks the end of a part.
        for byte in part.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 29)
}

/// Whether one of the globs matches all of `text`.
pub(crate) fn matches_any(globs: &[String], text: &str) -> bool {
    globs.iter().any(|glob| matches_glob(glob, text))
}

/// Whether `glob` matches all of `text`: `*` stands for any characters, `?` for one.
pub(crate) fn matches_glob(glob: &str, text: &str) -> bool {
    let (glob, text) = (glob.as_bytes(), text.as_bytes());
    let (mut g, mut t) = (0, 0);
    // Behind the last `*`, and how much of the text it stands for so far.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match glob.get(g) {
            Some(b'*') => {
                g += 1;
                star = Some((g, t));
            }
            Some(b'?') => {
                g += 1;
                t += character_length(text, t);
            }
            Some(byte) if *byte == text[t] => {
                g += 1;
                t += 1;
            }
            _ => match star {
                Some((behind, taken)) => {
                    g = behind;
                    t = taken + 1;
                    star = Some((behind, t));
                }
                None => return false,
            },
        }
    }
    glob.get(g..)
        .unwrap_or_default()
        .iter()
        .all(|byte| *byte == b'*')
}

fn is_acceptable(name: &str) -> bool {
    (1..=MAX_NAME_LENGTH).contains(&name.len()) && name.chars().all(is_name_character)
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

/// How many bytes the character that begins at `at` is long.
fn character_length(text: &[u8], at: usize) -> usize {
    let rest = text.get(at + 1..).unwrap_or_default();
    1 + rest.iter().take_while(|byte| **byte & 0xc0 == 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_is_the_plain_part_of_the_server_name() {
        assert_eq!(default_prefix("my_files 2"), "myfiles2");
        assert_eq!(default_prefix("a-b"), "a-b");
        assert_eq!(default_prefix("日本"), default_prefix("日本"));
        assert_ne!(default_prefix("日本"), default_prefix("中国"));
        assert!(is_acceptable(&default_prefix("")));
    }

    #[test]
    fn d7_a_prefix_that_the_name_has_is_not_doubled() {
        let naming = ServerNaming::new("git", "");
        let doubled = |name: &str| {
            let natural = naming.natural_name(Some("git"), name);
            (natural.wanted, natural.doubled)
        };
        assert_eq!(
            doubled("git_log"),
            ("git_log".into(), Some("git_git_log".into()))
        );
        assert_eq!(doubled("git"), ("git".into(), Some("git_git".into())));
        for name in ["log", "gitlog", "git_", "Git_log", "git-log"] {
            assert_eq!(doubled(name), (format!("git_{name}"), None));
        }
    }

    #[test]
    fn acceptable_names_stay() {
        for name in ["calc_add", "a", &"x".repeat(64)] {
            assert_eq!(public_name(name.to_owned()), name);
        }
    }

    #[test]
    fn other_names_get_a_stable_short_form() {
        let dotted = public_name("fs_files.read".to_owned());
        assert_eq!(dotted, "fs_files_read_jmkxkq2x");
        assert_ne!(dotted, public_name("fs_files/read".to_owned()));
        let long = public_name("x".repeat(65));
        assert_eq!(long.len(), 64);
        assert_ne!(long, public_name("x".repeat(66)));
        assert!(is_acceptable(&public_name("é世".repeat(50))));
    }

    #[test]
    fn globs_match_the_whole_name() {
        for (glob, text) in [
            ("*", ""),
            ("*", "any"),
            ("get_*", "get_"),
            ("*_file*", "read_files"),
            ("a?c", "aéc"),
            ("a*b*c", "a-b-b-c"),
            ("**x", "aax"),
        ] {
            assert!(matches_glob(glob, text), "{glob} {text}");
        }
        for (glob, text) in [
            ("", "a"),
            ("get_*", "forget_x"),
            ("a?c", "ac"),
            ("a*b", "abc"),
            ("A", "a"),
        ] {
            assert!(!matches_glob(glob, text), "{glob} {text}");
        }
    }
}
