//! What is wrong with a config file: which key, what and why. Values are never quoted, because they may be secrets.

use std::fmt;

use super::formats;

/// A place in a config file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// The file, as it was named.
    pub file: String,
    /// The key, as a path from the top of the file. Empty for the file itself.
    pub key: String,
    /// What is wrong.
    pub fault: ConfigFault,
}

/// What is wrong at a place in a config file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigFault {
    /// The text is not what its language allows.
    Syntax {
        /// The language that it is in by its name or its first line.
        language: FileLanguage,
        /// The line, from 1.
        line: usize,
        /// What is wrong, without values.
        why: String,
    },
    /// No client's key for servers is in the file.
    NoServers {
        /// The keys that are at the top of the file.
        found: Vec<String>,
        /// The key that was probably meant, if one is almost it.
        suggestion: Option<&'static str>,
    },
    /// The servers in the file belong to other folders.
    OtherProjects,
    /// This key twice, under one name or under two.
    Duplicate(String),
    /// A key under `mcp-proxy` that does not exist.
    UnknownKey {
        /// The key that was probably meant.
        suggestion: Option<&'static str>,
    },
    /// A value of another JSON type.
    WrongType {
        /// What the key takes.
        expected: &'static str,
        /// What it was given.
        found: &'static str,
    },
    /// A word that is not one of those that the key takes.
    UnknownWord {
        /// The words that it takes.
        expected: &'static [&'static str],
        /// The one that was probably meant.
        suggestion: Option<&'static str>,
    },
    /// A value that makes no sense.
    BadValue(String),
    /// A variable that is not set and has no default. Editors' own variables, such as `input:token`, never are.
    MissingVariable(String),
    /// A variable that is not set, and that a key names where no default can be given.
    MissingNamedVariable(String),
}

/// What a config file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileLanguage {
    /// JSON with comments.
    Json,
    /// TOML
    Toml,
    /// YAML
    Yaml,
}

/// Why a server is not offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerProblem {
    /// Its entry says `"disabled": true` or `"enabled": false`.
    #[error("it is disabled in the config")]
    Disabled,
    /// The client's settings, next to the entries, say that it is turned off.
    #[error("it is disabled in {file} by `{key}`")]
    TurnedOff {
        /// The file that says so.
        file: String,
        /// The setting.
        key: &'static str,
    },
    /// Its entry cannot be used.
    #[error(transparent)]
    Broken(#[from] ConfigError),
}

impl ServerProblem {
    /// Whether a person wants the server not to run.
    pub fn is_turned_off(&self) -> bool {
        match self {
            ServerProblem::Disabled | ServerProblem::TurnedOff { .. } => true,
            ServerProblem::Broken(_) => false,
        }
    }

    /// Whether both are the same problem, in whatever file.
    pub(super) fn is_same(&self, other: &ServerProblem) -> bool {
        match (self, other) {
            (ServerProblem::Broken(one), ServerProblem::Broken(other)) => {
                one.key == other.key && one.fault == other.fault
            }
            _ => self == other,
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let ConfigFault::Syntax { line, .. } = &self.fault {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.fault)
    }
}

impl fmt::Display for FileLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileLanguage::Json => "JSON",
            FileLanguage::Toml => "TOML",
            FileLanguage::Yaml => "YAML",
        })
    }
}

impl std::error::Error for ConfigFault {}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigFault::Syntax {
                language,
                line,
                why,
            } => {
                write!(f, "not valid {language}: {why}")?;
                match line {
                    // It may be something else altogether.
                    1 => {
                        f.write_str("; a config file is JSON, TOML or YAML, by the end of its name")
                    }
                    _ => Ok(()),
                }
            }
            ConfigFault::NoServers { found, suggestion } => {
                let expected = formats::format_keys().join(", ");
                write!(f, "no servers: expected one of {expected}; found ")?;
                write_found(f, found)?;
                suggest(f, *suggestion)
            }
            ConfigFault::OtherProjects => f.write_str(
                "no servers: those under `projects` belong to other folders; start in one of them",
            ),
            ConfigFault::Duplicate(_) => f.write_str("appears twice"),
            ConfigFault::UnknownKey { suggestion } => {
                write!(f, "unknown key")?;
                suggest(f, *suggestion)
            }
            ConfigFault::WrongType { expected, found } => {
                write!(f, "expected {expected}, found {found}")
            }
            ConfigFault::UnknownWord {
                expected,
                suggestion,
            } => {
                write!(f, "expected one of {}", expected.join(", "))?;
                suggest(f, *suggestion)
            }
            ConfigFault::BadValue(why) => f.write_str(why),
            ConfigFault::MissingVariable(name) if is_for_editors(name) => write!(
                f,
                "only an editor can fill in ${{{name}}}; use an environment variable"
            ),
            ConfigFault::MissingVariable(name) => write!(
                f,
                "variable {name} is not set; set it, or write ${{{name}:-default}}"
            ),
            ConfigFault::MissingNamedVariable(name) => {
                write!(f, "variable {} is not set", shown_key(name))
            }
        }
    }
}

/// Some of the keys: an editor's settings have hundreds.
fn write_found(f: &mut fmt::Formatter<'_>, keys: &[String]) -> fmt::Result {
    const SHOWN: usize = 8;
    if keys.is_empty() {
        return f.write_str("no keys");
    }
    let shown: Vec<String> = keys.iter().take(SHOWN).map(|key| shown_key(key)).collect();
    f.write_str(&shown.join(", "))?;
    match keys.len().saturating_sub(SHOWN) {
        0 => Ok(()),
        more => write!(f, " and {more} more"),
    }
}

/// A key of a file that nobody has checked: without control characters, and not all of a long one.
fn shown_key(key: &str) -> String {
    const LONGEST: usize = 60;
    let shown: String = key.escape_debug().take(LONGEST).collect();
    match key.chars().count() > LONGEST {
        true => format!("{shown}…"),
        false => shown,
    }
}

fn suggest(f: &mut fmt::Formatter<'_>, suggestion: Option<&str>) -> fmt::Result {
    match suggestion {
        Some(word) => write!(f, "; did you mean `{word}`?"),
        None => Ok(()),
    }
}

/// Whether a variable is one of an editor, such as `input:token` or `workspaceFolder`.
fn is_for_editors(name: &str) -> bool {
    let name = name.strip_prefix("env:").unwrap_or(name);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.starts_with("workspaceFolder") || !name.bytes().all(is_plain)
}
