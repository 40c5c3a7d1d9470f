//! JSON in lines: small values on one line, large ones with one member or element on each.
//!
//! So a line is worth reading by itself, and a search shows whole small records. Only white space is added. A container is
//! written in lines first, and on one line after all if it turns out to be short when it ends.

use std::io::{self, Write};

use mcp_proxy_wire::json::{Items, string_end};
use mcp_proxy_wire::string_content;

use crate::ResultShape;

/// A container whose compact form is longer is broken into lines.
const LINE: usize = 120;
/// Deeper levels are not indented further, or lines would be mostly white space.
const DEEPEST_INDENT: usize = 64;
/// How many keys of the outermost object are told.
const KEYS: usize = 20;
/// What is decided is written when there is this much of it.
const BUFFER: usize = 64 << 10;

/// Writes `json`, which is compact, in lines.
pub(crate) fn write_laid_out(json: &[u8], out: &mut impl Write) -> io::Result<ResultShape> {
    let mut layout = Layout {
        json,
        out,
        text: Vec::new(),
        open: Vec::new(),
    };
    layout.write()?;
    Ok(shape(json))
}

struct Layout<'a, W> {
    json: &'a [u8],
    out: &'a mut W,
    /// What has been laid out and not written.
    text: Vec<u8>,
    /// The containers around the place at hand.
    open: Vec<OpenContainer>,
}

struct OpenContainer {
    /// Where it begins in the JSON.
    start: usize,
    /// Where it begins in the text. It has no meaning once the container is longer than a line.
    text_start: usize,
}

impl<W: Write> Layout<'_, W> {
    fn write(&mut self) -> io::Result<()> {
        let json = self.json;
        let mut at = 0;
        while let Some(&byte) = json.get(at) {
            let end = match byte {
                b'"' => string_end(json, at),
                _ => at + 1,
            };
            match byte {
                b'{' | b'[' => self.open(at),
                b'}' | b']' => self.close(at),
                _ => self.text.extend_from_slice(&json[at..end]),
            }
            if byte == b',' {
                self.break_line();
            }
            at = end;
            if self.text.len() > BUFFER {
                self.write_decided(at)?;
            }
        }
        self.out.write_all(&self.text)
    }

    fn open(&mut self, at: usize) {
        self.open.push(OpenContainer {
            start: at,
            text_start: self.text.len(),
        });
        self.text.push(self.json[at]);
        self.break_line();
    }

    fn close(&mut self, at: usize) {
        let Some(container) = self.open.pop() else {
            return;
        };
        let whole = &self.json[container.start..=at];
        if whole.len() <= LINE {
            self.text.truncate(container.text_start);
            self.text.extend_from_slice(whole);
        } else {
            self.break_line();
            self.text.push(self.json[at]);
        }
    }

    fn break_line(&mut self) {
        let indent = self.open.len().min(DEEPEST_INDENT);
        self.text.push(b'\n');
        self.text.resize(self.text.len() + indent, b' ');
    }

    /// Writes the text in front of the first container that may still fit on a line.
    fn write_decided(&mut self, at: usize) -> io::Result<()> {
        let decided = self.open.partition_point(|open| at - open.start > LINE);
        let undecided = &mut self.open[decided..];
        let end = undecided
            .first()
            .map_or(self.text.len(), |first| first.text_start);
        for container in undecided {
            container.text_start -= end;
        }
        self.out.write_all(&self.text[..end])?;
        self.text.drain(..end);
        Ok(())
    }
}

fn shape(json: &[u8]) -> ResultShape {
    let mut items = Items::of(json, 0);
    match json.first() {
        Some(b'{') => {
            let first: Vec<_> = items.by_ref().take(KEYS).collect();
            let text = |token| string_content(token).unwrap_or_default();
            let keys: Vec<_> = first
                .iter()
                .map(|item| String::from_utf8_lossy(&text(&json[item.key.range()])).into_owned())
                .collect();
            ResultShape::Object {
                key_count: (keys.len() + items.count()) as u64,
                keys,
            }
        }
        Some(b'[') => ResultShape::Array {
            length: items.count() as u64,
        },
        _ => ResultShape::Other,
    }
}

#[cfg(test)]
mod tests;
