//! Hostile text made harmless: what a peer sent is untrusted input to the terminal.
//!
//! Control characters, direction overrides, tags and letters without a shape are shown as escapes, so that nothing
//! can move the cursor, recolour the screen, turn the reading direction or hide. Not for machines: `--raw` and a
//! piped `--json` give what is in the record.

use std::fmt::Write as _;

/// A number of bytes: `58 B`, `1.2 KiB`, `34 MiB`. All that people read has these units.
pub fn size_text(bytes: u64) -> String {
    let mut amount = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if amount < 1000.0 {
            let decimals = usize::from(unit != "B" && amount < 10.0);
            return format!("{amount:.decimals$} {unit}");
        }
        amount /= 1024.0;
    }
    format!("{amount:.1} TiB")
}

/// One line of text: `\n` for a newline, `\u{1b}` for an escape character.
pub fn sanitize(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        push(&mut out, character);
    }
    out
}

/// The same for text of several lines, whose newlines stay.
pub fn sanitize_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => out.push('\n'),
            other => push(&mut out, other),
        }
    }
    out
}

/// The same for bytes; what is not UTF-8 becomes `\xff`.
pub fn sanitize_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            push(&mut out, character);
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// The same for a JSON text, which stays the same JSON: such characters occur only inside its strings, and JSON has
/// escapes of its own. Newlines and tabs between its values stay.
pub fn sanitize_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        push_json(&mut out, character);
    }
    out
}

/// One character of a JSON text.
pub fn push_json(out: &mut String, character: char) {
    if !is_hidden(character) || matches!(character, '\n' | '\r' | '\t') {
        out.push(character);
        return;
    }
    let mut units = [0; 2];
    for unit in character.encode_utf16(&mut units) {
        let _ = write!(out, "\\u{unit:04x}");
    }
}

fn push(out: &mut String, character: char) {
    match character {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        hidden if is_hidden(hidden) => {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(hidden));
        }
        plain => out.push(plain),
    }
}

/// Whether a character acts on the screen or cannot be seen on it.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180b}'..='\u{180f}'
            // Zero width, marks and overrides of direction, line separators, invisible operators.
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            // Tags and the variation selectors above them: whole sentences have been hidden in both.
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d33_sizes_are_short_and_in_kib() {
        let sizes = [0, 58, 1000, 1229, 35_651_584, 1 << 40].map(size_text);
        assert_eq!(
            sizes,
            ["0 B", "58 B", "1.0 KiB", "1.2 KiB", "34 MiB", "1.0 TiB"]
        );
    }

    #[test]
    fn what_acts_on_a_terminal_is_shown_as_an_escape() {
        let text = "a\u{1b}[31m\n\u{9b}2J\u{202e}b\u{e0041}\u{7f}\u{200b}é►";
        assert_eq!(
            sanitize(text),
            r"a\u{1b}[31m\n\u{9b}2J\u{202e}b\u{e0041}\u{7f}\u{200b}é►"
        );
        assert_eq!(sanitize_lines("a\n\u{1b}"), "a\n\\u{1b}");
        assert_eq!(sanitize_bytes(b"a\xff\xfe\x00"), r"a\xff\xfe\u{0}");
    }

    #[test]
    fn json_stays_the_same_json() {
        let json = "{\"a\":\"\u{202e}\u{e0041}\u{9b}é\"}";
        let shown = sanitize_json(json);
        assert_eq!(shown, r#"{"a":"\u202e\udb40\udc41\u009bé"}"#);
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&shown), value(json));
    }
}
