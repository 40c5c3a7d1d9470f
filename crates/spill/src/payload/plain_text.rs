//! The texts of a result as one text with lines of its own.

use std::io::{self, Write};

use crate::json::{SLACK, Unescaping};
use crate::spilled_result::{PREVIEW_CHARS, preview};

/// How much of a text is unescaped at once.
const WINDOW: usize = 64 << 10;

/// One or more texts, each of which begins on a line.
#[derive(Clone, Debug)]
pub(crate) struct PlainText<'a> {
    texts: Vec<Unescaping<'a>>,
    length: usize,
}

impl<'a> PlainText<'a> {
    /// Of string tokens, quotes included. Nothing if one of them is not text.
    pub(super) fn of(tokens: &[&'a [u8]]) -> Option<PlainText<'a>> {
        let texts = tokens.iter().map(|token| Unescaping::of(token));
        let mut text = PlainText {
            texts: texts.collect::<Option<_>>()?,
            length: 0,
        };
        let mut length = 0;
        text.for_each_window(|window| {
            length += window.len();
            Ok(())
        })
        .ok()?;
        text.length = length;
        Some(text)
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    pub(crate) fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        self.for_each_window(|window| out.write_all(window))
    }

    pub(super) fn preview(&self) -> String {
        // No character has more than four bytes.
        let mut start = vec![0; PREVIEW_CHARS * 4 + SLACK];
        let first = self.texts.first().cloned();
        let length = first.and_then(|mut text| text.fill(&mut start));
        preview(&start[..length.unwrap_or(0)])
    }

    fn for_each_window(&self, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut window = vec![0; WINDOW];
        let mut ends_line = true;
        for text in &self.texts {
            if !ends_line {
                take(b"\n")?;
                ends_line = true;
            }
            let mut text = text.clone();
            while !text.is_done() {
                let length = text.fill(&mut window).ok_or(io::ErrorKind::InvalidData)?;
                take(&window[..length])?;
                ends_line = window[..length].ends_with(b"\n");
            }
        }
        Ok(())
    }
}
