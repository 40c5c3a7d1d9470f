//! JSON over several lines, token by token: a parser that makes values would lose digits, order and duplicate keys,
//! which are often just what is looked for.

use mcp_proxy_wire::json::string_end;

use super::pieces::{push, push_token};
use super::{BodyLine, MOST_LINES, TextPieceKind};

/// Deeper levels are not moved further to the right, so that a deep message stays readable.
const DEEPEST: usize = 40;

/// Columns a level.
pub(super) const STEP: usize = 2;

const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// The lines of a JSON text, and how many bytes of it they hold. A text that was cut off, or
/// turns out not to be JSON, is laid out as far as possible.
pub(super) fn lay_out(json: &str) -> (Vec<BodyLine>, usize) {
    let mut layout = JsonLayout::default();
    let mut rest = json.trim_start_matches(SPACE);
    while let Some(first) = rest.chars().next() {
        if layout.lines.len() >= MOST_LINES {
            return (layout.lines, json.len() - rest.len());
        }
        let len = match first {
            '"' => string_end(rest.as_bytes(), 0),
            '{' | '[' | '}' | ']' | ',' | ':' => 1,
            _ => scalar_len(rest),
        };
        let (token, after) = rest.split_at(len);
        rest = after.trim_start_matches(SPACE);
        match first {
            '"' => layout.string(token),
            '{' | '[' => match rest.chars().next() {
                Some('}' | ']') => {
                    let (close, after) = rest.split_at(1);
                    layout.punctuation(token);
                    layout.punctuation(close);
                    rest = after.trim_start_matches(SPACE);
                }
                _ => layout.open(token),
            },
            '}' | ']' => layout.close(token),
            ',' => layout.comma(),
            ':' => layout.colon(),
            _ => layout.scalar(token),
        }
    }
    layout.end_line();
    (layout.lines, json.len())
}

/// Whether a text that cannot be read to its end begins like JSON.
pub(super) fn looks_like_json(start: &str) -> bool {
    let start = start.trim_start_matches(SPACE);
    let mut inside = start
        .chars()
        .skip(1)
        .skip_while(|next| SPACE.contains(next));
    match (start.chars().next(), inside.next()) {
        (Some('{'), next) => matches!(next, Some('"' | '}')),
        (Some('['), next) => {
            matches!(
                next,
                Some('{' | '[' | ']' | '"' | '-' | '0'..='9' | 't' | 'f' | 'n')
            )
        }
        (first, _) => first == Some('"'),
    }
}

#[derive(Default)]
struct JsonLayout {
    lines: Vec<BodyLine>,
    /// The line that is being put together.
    line: BodyLine,
    /// The brackets that are open, the outermost first.
    open: Vec<OpenBracket>,
    /// A string that comes now is a key.
    before_key: bool,
}

struct OpenBracket {
    line: usize,
    is_object: bool,
    members: u32,
}

impl JsonLayout {
    fn string(&mut self, token: &str) {
        let kind = if self.before_key {
            TextPieceKind::Key
        } else {
            TextPieceKind::Text
        };
        push_token(&mut self.line.pieces, token, kind);
    }

    fn scalar(&mut self, token: &str) {
        let kind = match token {
            "true" | "false" | "null" => TextPieceKind::Word,
            number
                if number.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) =>
            {
                TextPieceKind::Number
            }
            _ => TextPieceKind::Plain,
        };
        push_token(&mut self.line.pieces, token, kind);
    }

    fn punctuation(&mut self, token: &str) {
        push(&mut self.line.pieces, token, TextPieceKind::Punctuation);
    }

    fn open(&mut self, bracket: &str) {
        self.punctuation(bracket);
        self.open.push(OpenBracket {
            line: self.lines.len(),
            is_object: bracket == "{",
            members: 1,
        });
        self.end_line();
        self.expect_member();
    }

    fn close(&mut self, bracket: &str) {
        let open = self.open.pop();
        self.end_line();
        let closing = self.lines.len();
        if let Some(open) = open
            && let Some(line) = self.lines.get_mut(open.line)
        {
            line.opens = Some(closing);
            line.members = open.members;
        }
        self.punctuation(bracket);
        self.before_key = false;
    }

    fn comma(&mut self) {
        self.punctuation(",");
        self.end_line();
        if let Some(open) = self.open.last_mut() {
            open.members = open.members.saturating_add(1);
        }
        self.expect_member();
    }

    fn colon(&mut self) {
        self.punctuation(": ");
        self.before_key = false;
    }

    fn expect_member(&mut self) {
        self.before_key = self.open.last().is_some_and(|open| open.is_object);
    }

    /// Begins a new line, at the depth that holds now.
    fn end_line(&mut self) {
        let columns = self.open.len().min(DEEPEST) * STEP;
        let indent = u16::try_from(columns).unwrap_or(u16::MAX);
        let next = BodyLine {
            indent,
            ..BodyLine::default()
        };
        let line = std::mem::replace(&mut self.line, next);
        if !line.pieces.is_empty() {
            self.lines.push(line);
        }
    }
}

fn scalar_len(text: &str) -> usize {
    let ends = |next: char| SPACE.contains(&next) || "\"{}[],:".contains(next);
    text.find(ends).unwrap_or(text.len())
}
