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
