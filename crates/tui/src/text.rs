//! What bodies look like on a screen: laid out, coloured, folded, searched, compared. Pure functions of bytes.
//!
//! A [`Body`] is a list of [`Line`]s, and a line is a list of [`Piece`]s that say what they are, not how they look: colours,
//! cutting and wrapping are for whoever draws. Bodies are hostile, so no piece holds a character that acts on a terminal or
//! cannot be seen on one; such a character is an escape of its own kind. Nothing here reads a file or knows the screen.

mod compare;
mod curl;
mod folds;
mod json;
mod lines;
mod pieces;
mod search;
mod shell;
#[cfg(test)]
mod tests;

pub use compare::{Compared, Difference, compare};
pub use curl::curl;
pub use folds::Folds;
pub use search::has;

use mcp_proxy_wire::Message;

/// Of a longer body only this much of its beginning is laid out.
pub const LAID_OUT: usize = 1 << 20;

/// Nor are there ever more lines than this: a body of nothing but commas would take a hundred times its size.
const MOST_LINES: usize = 200_000;

/// A body, laid out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Body {
    lines: Vec<Line>,
    form: Form,
}

/// What a body was laid out as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    /// JSON: over several lines, moved to the right by its depth.
    Json,
    /// Anything else: line by line, as it came.
    #[default]
    Text,
}

/// One line of a body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// How many columns it is moved to the right.
    pub indent: u16,
    /// What stands on it.
    pub pieces: Vec<Piece>,
    /// For a line that opens a bracket: the line that closes it.
    pub opens: Option<usize>,
    /// How many values stand between the brackets.
    members: u32,
}

/// A part of a line that is all of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// What to show. Never a control character, nor one that cannot be seen.
    pub text: String,
    /// What it is.
    pub kind: PieceKind,
}

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PieceKind {
    /// The name of a member, with its quotes.
    Key,
    /// A string, with its quotes.
    Text,
    /// A number.
    Number,
    /// `true`, `false` or `null`.
    Word,
    /// Brackets, commas and colons.
    Punctuation,
    /// An escape that stands for a hostile or invisible character, or for a byte that is no text; written by us or by the peer.
    Hidden,
    /// Text that is no JSON.
    Plain,
    /// Ours: it is not in the body.
    Note,
}

impl Body {
    /// Lays out a whole body.
    pub fn of(bytes: &[u8]) -> Body {
        let shown = beginning(bytes);
        match std::str::from_utf8(shown) {
            Ok(text) if Message::parse(bytes.to_vec()).is_json() => Body::json(text, bytes.len()),
            _ => Body::text(shown, bytes.len()),
        }
    }

    /// Lays out a body of `len` bytes of which only `start` is at hand. Whether it is JSON is then a guess.
    pub fn of_start(start: &[u8], len: u64) -> Body {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if len <= start.len() {
            return Body::of(start);
        }
        let whole = whole_characters(start);
        match std::str::from_utf8(beginning(whole)) {
            Ok(text) if json::looks_like_json(text) => Body::json(text, len),
            _ => Body::text(beginning(whole), len),
        }
    }

    /// Its lines.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// What it was laid out as.
    pub fn is_whole(&self) -> bool {
        let last = self.lines.last();
        let mut pieces = last.into_iter().flat_map(|line| &line.pieces);
        !pieces.any(|piece| piece.kind == PieceKind::Note)
    }

    /// How it is laid out.
    pub fn form(&self) -> Form {
        self.form
    }

    fn json(text: &str, len: usize) -> Body {
        let (lines, used) = json::lay_out(text);
        Body::noted(lines, Form::Json, len.saturating_sub(used))
    }

    fn text(bytes: &[u8], len: usize) -> Body {
        let (lines, used) = lines::lay_out(bytes);
        Body::noted(lines, Form::Text, len.saturating_sub(used))
    }

    fn noted(mut lines: Vec<Line>, form: Form, left_out: usize) -> Body {
        if left_out > 0 {
            let plural = if left_out == 1 { "" } else { "s" };
            lines.push(Line::note(format!("… and {left_out} more byte{plural}")));
        }
        Body { lines, form }
    }
}

impl Line {
    /// What stands on it, without the columns before.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.push_text(&mut text);
        text
    }

    fn push_text(&self, out: &mut String) {
        for piece in &self.pieces {
            out.push_str(&piece.text);
        }
    }

    fn note(text: String) -> Line {
        Line {
            pieces: vec![Piece {
                text,
                kind: PieceKind::Note,
            }],
            ..Line::default()
        }
    }
}

/// A body as the text that is shown, without a newline at its end.
pub fn plain(body: &Body) -> String {
    let mut out = String::new();
    for (index, line) in body.lines.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        out.extend(std::iter::repeat_n(' ', usize::from(line.indent)));
        line.push_text(&mut out);
    }
    out
}

/// What of a body is laid out, without cutting a character in two.
fn beginning(bytes: &[u8]) -> &[u8] {
    match bytes.get(..LAID_OUT) {
        Some(start) if bytes.len() > LAID_OUT => whole_characters(start),
        _ => bytes,
    }
}

/// Without the part of a character at the end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}
