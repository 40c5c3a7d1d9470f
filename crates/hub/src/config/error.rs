//! What is wrong with a config file: where, which key, what and why. Values are never quoted, because they may be secrets.

use std::fmt;

/// A place in a config file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// The file, as it was named.
    pub file: String,
    /// Where in the file.
    pub position: TextPosition,
    /// The key, as a path from the top of the file. Empty for the file itself.
    pub key: String,
    /// What is wrong.
    pub fault: ConfigFault,
}

/// A place in a text, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPosition {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// What is wrong at a place in a config file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigFault {
    /// The text is not JSON with comments.
    Syntax(&'static str),
    /// The same key, or the same server, twice.
    Duplicate,
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
        expected: Vec<&'static str>,
        /// The one that was probably meant.
        suggestion: Option<&'static str>,
    },
    /// A value that makes no sense.
    BadValue(&'static str),
    /// A variable that is not set and has no default. Editors' own variables, such as `input:token`, never are.
    MissingVariable(String),
}

/// Why a server is not offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerProblem {
    /// Its entry says `"disabled": true` or `"enabled": false`.
    #[error("turned off in the config")]
    Disabled,
    /// Its entry cannot be used.
    #[error(transparent)]
    Broken(#[from] ConfigError),
}

impl ServerProblem {
    /// Whether both are the same problem, wherever in the file.
    pub(super) fn is_same(&self, other: &ServerProblem) -> bool {
        match (self, other) {
            (ServerProblem::Disabled, ServerProblem::Disabled) => true,
            (ServerProblem::Broken(one), ServerProblem::Broken(other)) => {
                one.key == other.key && one.fault == other.fault
            }
            _ => false,
        }
    }
}

impl TextPosition {
    /// The place of a byte in a text.
    pub(super) fn of(text: &str, byte: usize) -> TextPosition {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        TextPosition {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TextPosition { line, column } = self.position;
        write!(f, "{}:{line}:{column}: ", self.file)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}", self.fault)
    }
}

impl std::error::Error for ConfigFault {}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigFault::Syntax(why) => write!(f, "not valid JSON: {why}"),
            ConfigFault::Duplicate => write!(f, "appears twice"),
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
        }
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
