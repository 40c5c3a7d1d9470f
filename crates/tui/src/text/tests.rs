//! Layout, folds, search and comparison; `curl` lines have a file of their own.

mod curl;
mod folding;
mod layout;
mod properties;

use super::*;

/// What the pieces of a line are, for short assertions.
fn kinds(line: &BodyLine) -> Vec<(&str, TextPieceKind)> {
    let pieces = line.pieces.iter();
    pieces
        .map(|piece| (piece.text.as_str(), piece.kind))
        .collect()
}

/// A JSON array of `count` small objects.
fn many(count: usize) -> String {
    let items: Vec<String> = (0..count)
        .map(|number| format!("{{\"n\":{number}}}"))
        .collect();
    format!("[{}]", items.join(","))
}
