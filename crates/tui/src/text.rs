//! What bodies look like on a screen: laid out, coloured, folded, searched, compared. Pure functions of bytes.
//!
//! A [`BodyLayout`] is a list of [`BodyLine`]s, and a line is a list of [`TextPiece`]s that say what they are, not how they look: colours,
//! cutting and wrapping are the panes' work. Bodies are hostile, so no piece holds a character that acts on a terminal or
//! cannot be seen on one; such a character is an escape of its own kind. Nothing here reads a file or knows the screen.

mod client_config;
mod compare;
mod curl;
mod folds;
mod head;
mod json;
mod lines;
mod pieces;
mod search;
mod shell;
#[cfg(test)]
mod tests;
mod units;
mod wrapping;

pub(crate) use client_config::client_config;
pub use compare::{DiffRow, LineDifference};
pub(crate) use compare::{IdComparison, compare};
pub(crate) use curl::curl;
pub(crate) use folds::Folds;
pub(crate) use search::has;
pub(crate) use units::short_time;
pub use wrapping::TextRow;

use std::ops::Range;

use mcp_proxy_session::{HttpHead, SseFields};
use mcp_proxy_wire::Message;

/// Of a longer body only this much of its beginning is laid out.
pub(crate) const LAID_OUT: usize = 1 << 20;

/// Nor are there ever more lines than this: a body of nothing but commas would take a hundred times its size.
const MOST_LINES: usize = 200_000;

/// A body, laid out, perhaps with what carried it above and its answer below.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BodyLayout {
    lines: Vec<BodyLine>,
    form: BodyFormat,
    /// Which of the lines are those of the body itself.
    body: Range<usize>,
    /// The first lines of HTTP heads, which fold.
    heads: Vec<usize>,
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

    /// The lines of the body itself.
    fn body(&self) -> &[BodyLine] {
        self.lines.get(self.body.clone()).unwrap_or_default()
    }

    /// The first lines of the HTTP heads.
    pub(crate) fn heads(&self) -> &[usize] {
        &self.heads
    }

    /// Whether nothing of the body was left out.
    pub fn is_whole(&self) -> bool {
        let last = self.body().last();
        let mut pieces = last.into_iter().flat_map(|line| &line.pieces);
        !pieces.any(|piece| piece.kind == TextPieceKind::Note)
    }

    /// The same with the head above it that carried the body, if there is one.
    #[must_use]
    pub(crate) fn below_head(self, http: Option<&HttpHead>, sse: Option<&SseFields>) -> BodyLayout {
        let mut lines = head::lay_out(http, sse);
        let before = lines.len();
        let heads = match lines.first() {
            Some(first) if first.opens.is_some() => vec![0],
            _ => Vec::new(),
        };
        lines.extend(self.lines.into_iter().map(|line| line.moved_down(before)));
        BodyLayout {
            lines,
            form: self.form,
            body: self.body.start + before..self.body.end + before,
            heads,
        }
    }

    /// The same with another layout below it, after a line that says what that is.
    #[must_use]
    pub(crate) fn above(mut self, heading: String, below: BodyLayout) -> BodyLayout {
        self.lines.push(BodyLine::default());
        self.lines.push(BodyLine::note(heading));
        let before = self.lines.len();
        let heads = below.heads.iter();
        self.heads.extend(heads.map(|line| line + before));
        let below = below.lines.into_iter();
        self.lines.extend(below.map(|line| line.moved_down(before)));
        self
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
        let body = 0..lines.len();
        BodyLayout {
            lines,
            form,
            body,
            heads: Vec::new(),
        }
    }
}

impl BodyLine {
    /// What stands on it, without the columns before.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.push_text(&mut text);
        text
    }

    /// The length of the text in bytes.
    pub(crate) fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.text.len()).sum()
    }

    fn push_text(&self, out: &mut String) {
        for piece in &self.pieces {
            out.push_str(&piece.text);
        }
    }

    /// The same with this many lines above it.
    fn moved_down(self, lines: usize) -> BodyLine {
        BodyLine {
            opens: self.opens.map(|closing| closing + lines),
            ..self
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

/// A body as the text that is shown, without a newline at its end. What stands above and below it is left out.
pub fn plain(body: &BodyLayout) -> String {
    let mut out = String::new();
    for (index, line) in body.body().iter().enumerate() {
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
