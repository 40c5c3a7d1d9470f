//! Text cut into pieces, so that what acts on a terminal, or hides on it, stands apart as an escape.

use super::{TextPiece, TextPieceKind};
use mcp_proxy_wire::terminal_text::{push_json, sanitize};
use std::fmt::Write as _;

/// Adds harmless text.
pub(super) fn push(pieces: &mut Vec<TextPiece>, text: &str, kind: TextPieceKind) {
    match pieces.last_mut() {
        Some(last) if last.kind == kind => last.text.push_str(text),
        _ => pieces.push(TextPiece {
            text: text.to_owned(),
            kind,
        }),
    }
}

/// Adds text that is not JSON; `\u{1b}` for an escape character.
pub(super) fn push_plain(pieces: &mut Vec<TextPiece>, text: &str, kind: TextPieceKind) {
    let mut utf8 = [0; 4];
    for character in text.chars() {
        let text = character.encode_utf8(&mut utf8);
        match is_hidden(character) {
            false => push(pieces, text, kind),
            true => push(pieces, &sanitize(text), TextPieceKind::Hidden),
        }
    }
}

/// Adds bytes that are not text.
pub(super) fn push_bytes(pieces: &mut Vec<TextPiece>, bytes: &[u8]) {
    let mut escapes = String::with_capacity(bytes.len() * 4);
    for byte in bytes {
        let _ = write!(escapes, "\\x{byte:02x}");
    }
    if !escapes.is_empty() {
        push(pieces, &escapes, TextPieceKind::Hidden);
    }
}

/// Adds a token of JSON, as it is but for hidden characters, which JSON has escapes for. Escapes that stand for such
/// characters already are hidden pieces too: it is the same attack.
pub(super) fn push_token(pieces: &mut Vec<TextPiece>, token: &str, kind: TextPieceKind) {
    let mut rest = token;
    while let Some(at) = rest.find('\\') {
        push_unescaped(pieces, &rest[..at], kind);
        let (len, kind) = match escape(&rest[at..]) {
            Escape::Shown(len) => (len, kind),
            Escape::Hidden(len) => (len, TextPieceKind::Hidden),
        };
        push_unescaped(pieces, &rest[at..at + len], kind);
        rest = &rest[at + len..];
    }
    push_unescaped(pieces, rest, kind);
}

fn push_unescaped(pieces: &mut Vec<TextPiece>, text: &str, kind: TextPieceKind) {
    let mut utf8 = [0; 4];
    for character in text.chars() {
        let text = character.encode_utf8(&mut utf8);
        match character {
            _ if !is_hidden(character) => push(pieces, text, kind),
            // `push_json` lets these stay, as white space; a token has none, unless it is not JSON after all.
            '\n' | '\r' | '\t' => push(pieces, &sanitize(text), TextPieceKind::Hidden),
            hidden => {
                let mut escape = String::new();
                push_json(&mut escape, hidden);
                push(pieces, &escape, TextPieceKind::Hidden);
            }
        }
    }
}

/// What a backslash begins, and how many bytes long it is.
enum Escape {
    /// A character that can be seen.
    Shown(usize),
    /// One that cannot, or none at all.
    Hidden(usize),
}

fn escape(text: &str) -> Escape {
    match text.as_bytes().get(1) {
        Some(b'b' | b'f') => Escape::Hidden(2),
        Some(b'u') => match (unit(text), text.get(6..).and_then(unit)) {
            (Some(high @ 0xd800..0xdc00), Some(low @ 0xdc00..0xe000)) => {
                let both = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                escaped(both, 12)
            }
            (Some(unit), _) => escaped(unit, 6),
            (None, _) => Escape::Shown(1),
        },
        Some(b'"' | b'\\' | b'/' | b'n' | b'r' | b't') => Escape::Shown(2),
        _ => Escape::Shown(1),
    }
}

fn escaped(scalar: u32, len: usize) -> Escape {
    match char::from_u32(scalar) {
        Some('\n' | '\r' | '\t') => Escape::Shown(len),
        Some(character) if !is_hidden(character) => Escape::Shown(len),
        // A lone half of a pair is not a character.
        _ => Escape::Hidden(len),
    }
}

/// The code unit of a `\u0041` at the beginning.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    // `from_str_radix` takes a sign too.
    let all_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    all_hex.then(|| u32::from_str_radix(digits, 16).ok())?
}

/// Whether a character has to be shown as an escape, by the one rule that there is for it.
pub(super) fn is_hidden(character: char) -> bool {
    if character.is_ascii() || character.is_control() {
        return character.is_control();
    }
    let mut shown = String::new();
    push_json(&mut shown, character);
    !shown.starts_with(character)
}
