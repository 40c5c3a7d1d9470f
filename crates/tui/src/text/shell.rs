//! Words of a POSIX shell's command line, for text that strangers wrote.
//!
//! A command that is copied gets pasted into a terminal, where a control character acts on the line editor before the shell
//! sees any quote. So such characters are never in a word as they are.

use super::pieces::is_hidden;
use std::fmt::Write as _;

/// `text` as one word that stands for just these bytes. A word cannot hold NUL; that is the only error.
pub(super) fn quote(text: &str) -> Result<String, String> {
    if text.contains('\0') {
        return Err("it has a NUL character, which no command line can hold".to_owned());
    }
    if text.contains(is_hidden) {
        return Ok(escaped(text));
    }
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}

/// `$'…'`, which sh (since 2024), bash, zsh and ksh know. Quotes and `!` are escapes as well: the history of bash looks for both
/// before the shell reads the word.
fn escaped(text: &str) -> String {
    let mut out = String::from("$'");
    let mut utf8 = [0; 4];
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            odd if matches!(odd, '\'' | '!') || is_hidden(odd) => {
                for byte in odd.encode_utf8(&mut utf8).bytes() {
                    let _ = write!(out, "\\x{byte:02x}");
                }
            }
            plain => out.push(plain),
        }
    }
    out.push('\'');
    out
}

/// `text` as one word in which variables stand for the values that are masked. A shell that is not told a value refuses to run
/// the command and says why.
pub(super) fn quote_masked(
    text: &str,
    mask: &str,
    names: &mut ShellVariableNames<'_>,
) -> Result<String, String> {
    let mut parts = text.split(mask);
    let mut word = match parts.next() {
        Some("") | None => String::new(),
        Some(first) => quote(first)?,
    };
    for part in parts {
        let name = names.next();
        let _ = write!(word, "\"${{{name}:?was masked in the record}}\"");
        if !part.is_empty() {
            word.push_str(&quote(part)?);
        }
    }
    if word.is_empty() {
        return quote("");
    }
    Ok(word)
}

/// Names of variables for one command: `MCP_AUTHORIZATION`, and with a number from the second on.
pub(super) struct ShellVariableNames<'a> {
    taken: &'a mut Vec<String>,
    stem: String,
}

impl ShellVariableNames<'_> {
    /// Names for the values of `what`. The prefix keeps a header called `path` from taking the shell's own.
    pub(super) fn of<'a>(what: &str, taken: &'a mut Vec<String>) -> ShellVariableNames<'a> {
        let letters = what.chars().map(|letter| match letter {
            letter if letter.is_ascii_alphanumeric() => letter.to_ascii_uppercase(),
            _ => '_',
        });
        let mut stem = letters.collect::<String>();
        if !stem.starts_with("MCP_") {
            stem.insert_str(0, "MCP_");
        }
        ShellVariableNames { taken, stem }
    }

    fn next(&mut self) -> String {
        let before = self.taken.iter().filter(|name| **name == self.stem).count();
        self.taken.push(self.stem.clone());
        match before {
            0 => self.stem.clone(),
            // Two underscores: no header's own name ends like that by accident.
            more => format!("{}__{}", self.stem, more + 1),
        }
    }
}
