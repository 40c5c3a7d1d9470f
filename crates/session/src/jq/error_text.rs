//! What went wrong in a program, in a few words.
//!
//! The errors of `jaq` have whole values in them, which may be as large as the document. The reason stands before and behind
//! them, so both ends are kept, and a large object or array is only called what it is.

use std::fmt::{self, Write};

use jaq_json::Val;

/// No error is longer, in characters.
const LONGEST: usize = 200;
/// The most bytes of each end. It is more than is shown.
const END: usize = 1024;

/// Explains an error.
pub(super) fn explained(error: jaq_json::Error) -> String {
    let mut text = TextEnds::default();
    // Writing to memory does not fail.
    let _ = write!(text, "{error}");
    let text = match text.start.starts_with("cannot ") || text.start.starts_with("invalid ") {
        true => text.joined(),
        // The program made it, or it is a text of ours.
        false => match error.into_val() {
            Val::TStr(text) => String::from_utf8_lossy(&text).into_owned(),
            other => other.to_string(),
        },
    };
    shortened(&without_large_value(&text))
}

/// The beginning and the end of a text that is written to it.
#[derive(Default)]
struct TextEnds {
    start: String,
    end: String,
}

impl TextEnds {
    fn joined(self) -> String {
        self.start + &self.end
    }
}

impl Write for TextEnds {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let in_start = match self.end.is_empty() {
            true => boundary(text, END.saturating_sub(self.start.len())),
            false => 0,
        };
        let (start, end) = text.split_at(in_start);
        self.start.push_str(start);
        self.end.push_str(end);
        if self.end.len() > 2 * END {
            let kept = boundary(&self.end, self.end.len() - END);
            self.end.drain(..kept);
        }
        Ok(())
    }
}

/// The last place at or before `at` where a character begins.
fn boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

/// `cannot index [1,2,…] with "rows"` as `cannot index an array with "rows"`, if it is too long as it is.
fn without_large_value(text: &str) -> String {
    if text.chars().nth(LONGEST).is_none() {
        return text.to_owned();
    }
    let shorter = ["cannot index ", "cannot use "].iter().find_map(|words| {
        let kind = match text.strip_prefix(words)?.bytes().next()? {
            b'[' => "an array",
            b'{' => "an object",
            b'"' => "a string",
            _ => return None,
        };
        let reason = text.rfind(" with ").or_else(|| text.rfind(" as "))?;
        Some(format!("{words}{kind}{}", &text[reason..]))
    });
    shorter.unwrap_or_else(|| text.to_owned())
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
