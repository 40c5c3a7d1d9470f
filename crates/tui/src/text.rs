//! What bodies look like on a screen: laid out, coloured, folded, searched, compared. Pure functions of bytes.
//!
//! A [`BodyLayout`] is a list of [`BodyLine`]s, and a line is a list of [`TextPiece`]s that say what they are, not how they look: colours,
//! cutting and wrapping are the panes' work. Bodies are hostile, so no piece holds a character that acts on a terminal or
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

pub(crate) use compare::compare;
pub use compare::{DiffRow, LineDifference};
pub(crate) use curl::curl;
pub(crate) use folds::Folds;
pub(crate) use search::has;

use mcp_proxy_wire::Message;

/// Of a longer body only this much of its beginning is laid out.
pub(crate) const LAID_OUT: usize = 1 << 20;

/// Nor are there ever more lines than this: a body of nothing but commas would take a hundred times its size.
const MOST_LINES: usize = 200_000;

/// A body, laid out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BodyLayout {
    lines: Vec<BodyLine>,
    form: BodyFormat,
}

/// What a body was laid out as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BodyFormat {
    /// JSON: over several lines, moved to the right by its depth.
    Json,
    /// Anything else: line by line, as it came.
    #[default]
    Text,
}

/// One line of a body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BodyLine {
    /// How many columns it is moved to the right.
    pub indent: u16,
    /// What stands on it.
    pub pieces: Vec<TextPiece>,
    /// For a line that opens a bracket: the line that closes it.
    pub opens: Option<usize>,
    /// How many values stand between the brackets.
    members: u32,
}

/// A part of a line that is all of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPiece {
    /// What to show. Never a control character, nor one that cannot be seen.
    pub text: String,
    /// What it is.
    pub kind: TextPieceKind,
}

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextPieceKind {
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
    /// An escape that stands for a hostile or invisible character, or for a byte that is not text; written by us or by the peer.
    Hidden,
    /// Text that is not JSON.
    Plain,
    /// Ours: it is not in the body.
    Note,
}

impl BodyLayout {
    /// Lays out a whole body.
    pub fn of(bytes: &[u8]) -> BodyLayout {
        let shown = beginning(bytes);
        match std::str::from_utf8(shown) {
            Ok(text) if Message::parse(bytes.to_vec()).is_json() => {
                BodyLayout::json(text, bytes.len())
            }
            _ => BodyLayout::text(shown, bytes.len()),
        }
    }

    /// Lays out a body of `len` bytes of which only `start` is at hand. Whether it is JSON is then a guess.
    pub fn of_start(start: &[u8], len: u64) -> BodyLayout {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if len <= start.len() {
            return BodyLayout::of(start);
        }
        let whole = whole_characters(start);
        match std::str::from_utf8(beginning(whole)) {
            Ok(text) if json::looks_like_json(text) => BodyLayout::json(text, len),
            _ => BodyLayout::text(beginning(whole), len),
        }
    }

    /// Its lines.
    pub fn lines(&self) -> &[BodyLine] {
        &self.lines
    }

    /// What it was laid out as.
    pub fn is_whole(&self) -> bool {
        let last = self.lines.last();
        let mut pieces = last.into_iter().flat_map(|line| &line.pieces);
        !pieces.any(|piece| piece.kind == TextPieceKind::Note)
    }

    /// How it is laid out.
    pub fn form(&self) -> BodyFormat {
        self.form
    }

    fn json(text: &str, len: usize) -> BodyLayout {
        let (lines, used) = json::lay_out(text);
        BodyLayout::noted(lines, BodyFormat::Json, len.saturating_sub(used))
    }

    fn text(bytes: &[u8], len: usize) -> BodyLayout {
        let (lines, used) = lines::lay_out(bytes);
        BodyLayout::noted(lines, BodyFormat::Text, len.saturating_sub(used))
    }

    fn noted(mut lines: Vec<BodyLine>, form: BodyFormat, left_out: usize) -> BodyLayout {
        if left_out > 0 {
            let plural = if left_out == 1 { "" } else { "s" };
            lines.push(BodyLine::note(format!(
                "… and {left_out} more byte{plural}"
            )));
        }
        BodyLayout { lines, form }
    }
}

impl BodyLine {
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

    fn note(text: String) -> BodyLine {
        BodyLine {
            pieces: vec![TextPiece {
                text,
                kind: TextPieceKind::Note,
            }],
            ..BodyLine::default()
        }
    }
}

/// A body as the text that is shown, without a newline at its end.
pub fn plain(body: &BodyLayout) -> String {
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
