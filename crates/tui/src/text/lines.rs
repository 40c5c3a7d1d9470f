//! Bodies that are not JSON: their own lines, with escapes for what is not text.

use super::pieces::{push_bytes, push_plain};
use super::{BodyLine, MOST_LINES, TextPieceKind};

/// The lines of a body, and how many bytes of it they hold.
pub(super) fn lay_out(bytes: &[u8]) -> (Vec<BodyLine>, usize) {
    let mut lines = Vec::new();
    let mut used = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        if lines.len() >= MOST_LINES {
            break;
        }
        used += line.len();
        lines.push(lay_out_line(line.strip_suffix(b"\n").unwrap_or(line)));
    }
    (lines, used)
}

fn lay_out_line(bytes: &[u8]) -> BodyLine {
    let mut line = BodyLine::default();
    for chunk in bytes.utf8_chunks() {
        push_plain(&mut line.pieces, chunk.valid(), TextPieceKind::Plain);
        push_bytes(&mut line.pieces, chunk.invalid());
    }
    line
}
