//! `envFile` of VS Code and Cursor: variables for a server's process in a file of their own.
//!
//! The lines are read as these clients read them. Libraries for such files also fill in `$NAME` within values, which would change
//! passwords.

use std::path::{Path, PathBuf};

use super::secret::SecretText;
use super::{ConfigWarning, HubConfig, ServerTarget};

/// A file with variables, and the key that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvFile {
    /// Where it is. A relative path starts at the current folder.
    pub(super) path: PathBuf,
    /// The keys that lead to it.
    pub(super) key: String,
}

impl HubConfig {
    /// Adds the variables of each server's `envFile` to those of its `env`, which win. A file that cannot be read is a warning.
    pub fn read_env_files(&mut self, read: &dyn Fn(&Path) -> Result<String, String>) {
        for server in &mut self.servers {
            let Ok(spec) = &mut server.state else {
                continue;
            };
            let ServerTarget::Command {
                env,
                env_file: Some(file),
                ..
            } = &mut spec.target
            else {
                continue;
            };
            match read(&file.path) {
                Ok(text) => {
                    for (name, value) in variables(&text) {
                        if env.iter().all(|(known, _)| *known != name) {
                            env.push((name, SecretText::new(value)));
                        }
                    }
                    env.sort_by(|(one, _), (other, _)| one.cmp(other));
                }
                Err(why) => self.warnings.push(ConfigWarning::EnvFile {
                    server: server.name.clone(),
                    source: server.source.clone(),
                    key: file.key.clone(),
                    why,
                }),
            }
        }
    }
}

/// The variables of a file. The last of those with one name counts.
fn variables(text: &str) -> Vec<(String, String)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut variables: Vec<(String, String)> = Vec::new();
    for (name, value) in text.lines().filter_map(variable) {
        variables.retain(|(known, _)| *known != name);
        variables.push((name, value));
    }
    variables
}

/// `NAME=value`, also with `export` in front, quotes around the value, or a comment behind it.
fn variable(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    if name.is_empty() || !name.chars().all(is_name) || value.contains('\0') {
        return None;
    }
    let quoted = |quote: char| value.strip_prefix(quote)?.split_once(quote);
    let value = match (quoted('\''), quoted('"')) {
        (Some((inside, _)), _) => inside.to_owned(),
        (_, Some((inside, _))) => inside.replace("\\n", "\n").replace("\\r", "\r"),
        (None, None) => {
            let comment = [" #", "\t#"]
                .iter()
                .filter_map(|mark| value.find(mark))
                .min();
            let end = comment.unwrap_or(value.len());
            value[..end].trim_end().to_owned()
        }
    };
    Some((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_an_env_file() {
        for (line, value) in [
            ("A=b", Some("b")),
            (" A = b c ", Some("b c")),
            ("export A=b", Some("b")),
            ("A=", Some("")),
            ("A=pa$$word${X}", Some("pa$$word${X}")),
            ("A=b#c # d", Some("b#c")),
            ("A=\"b # c\\nd\" # e", Some("b # c\nd")),
            ("A='b\\n$c'", Some("b\\n$c")),
            ("A=\"b", Some("\"b")),
            ("A=b=c", Some("b=c")),
            ("# A=b", None),
            ("A", None),
            ("=b", None),
            ("A B=c", None),
        ] {
            let expected = value.map(|value| ("A".to_owned(), value.to_owned()));
            assert_eq!(variable(line), expected, "{line}");
        }
    }

    #[test]
    fn the_last_of_two_variables_counts() {
        let text = "\u{feff}A=1\r\nB=2\r\n\r\nA=3";
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(variables(text), [pair("B", "2"), pair("A", "3")]);
    }
}
