//! JSON that is read in windows, so that no copy of it has to fit into memory.

use std::borrow::Cow;
use std::io;

use super::unescape::SLACK;
use super::{CheckedJson, Checker, Compactor, JsonRoot, Unescaping};

/// How much of a text is unescaped or compacted at once. Little in unit tests, whose texts shall have several windows too.
const WINDOW: usize = if cfg!(test) { 512 } else { 64 << 10 };

/// A JSON text that has been checked.
#[derive(Clone, Debug)]
pub(crate) struct JsonText<'a> {
    source: TextSource<'a>,
    /// Without white space between tokens.
    compact_length: usize,
    has_gaps: bool,
}

/// What a text is read from.
#[derive(Clone, Debug)]
enum TextSource<'a> {
    /// The text itself.
    Plain(&'a [u8]),
    /// A string whose content is the text.
    Escaped(Unescaping<'a>),
}

/// The compact form of a text, a window at a time.
pub(crate) struct JsonWindows<'a> {
    source: TextSource<'a>,
    /// Nothing if there is no white space to take out.
    compactor: Option<Compactor>,
    /// Empty if the text can be read where it is.
    buffer: Vec<u8>,
    filled: usize,
}

/// A part of a text.
pub(crate) struct JsonWindow<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) is_last: bool,
}

impl<'a> JsonText<'a> {
    /// A text as it was checked.
    pub(crate) fn plain(text: &'a [u8], checked: &CheckedJson) -> JsonText<'a> {
        JsonText {
            source: TextSource::Plain(text),
            compact_length: text.len() - checked.gap_bytes,
            has_gaps: checked.gap_bytes > 0,
        }
    }

    /// The content of a string token, if that is an object or an array.
    pub(crate) fn in_string(token: &'a [u8]) -> Option<JsonText<'a>> {
        let source = TextSource::Escaped(Unescaping::of(token)?);
        let mut windows = JsonWindows::new(source.clone(), None);
        let mut checker = Checker::new();
        let mut length = 0;
        loop {
            let JsonWindow { text, is_last } = windows.fill()?;
            // A number as long as a window is not worth the memory that it would take.
            let taken = checker
                .take(text, is_last)
                .filter(|taken| is_last || *taken > 0)?;
            length += taken;
            if is_last {
                break;
            }
            windows.consume(taken);
        }
        let checked = checker.finish();
        (checked.root != JsonRoot::Scalar).then_some(JsonText {
            source,
            compact_length: length - checked.gap_bytes,
            has_gaps: checked.gap_bytes > 0,
        })
    }

    pub(crate) fn compact_length(&self) -> usize {
        self.compact_length
    }

    /// Reads it from the beginning.
    pub(crate) fn windows(&self) -> JsonWindows<'a> {
        let compactor = self.has_gaps.then(Compactor::default);
        JsonWindows::new(self.source.clone(), compactor)
    }

    /// All of it at once.
    pub(crate) fn to_compact(&self) -> io::Result<Cow<'a, [u8]>> {
        if let (TextSource::Plain(text), false) = (&self.source, self.has_gaps) {
            return Ok(Cow::Borrowed(text));
        }
        let mut compact = Vec::with_capacity(self.compact_length);
        self.for_each_window(|window| {
            compact.extend_from_slice(window.text);
            Ok(window.text.len())
        })?;
        Ok(compact.into())
    }

    /// Reads all of it. `take` tells how much of a window it is done with; the rest comes again.
    pub(crate) fn for_each_window(
        &self,
        mut take: impl FnMut(&JsonWindow<'_>) -> io::Result<usize>,
    ) -> io::Result<()> {
        let mut windows = self.windows();
        loop {
            // It could be read when it was checked.
            let window = windows.fill().ok_or(io::ErrorKind::InvalidData)?;
            let taken = take(&window)?;
            if window.is_last {
                return Ok(());
            }
            windows.consume(taken);
        }
    }
}

impl<'a> JsonWindows<'a> {
    fn new(source: TextSource<'a>, compactor: Option<Compactor>) -> JsonWindows<'a> {
        let is_ready = matches!((&source, &compactor), (TextSource::Plain(_), None));
        JsonWindows {
            source,
            compactor,
            buffer: vec![0; if is_ready { 0 } else { WINDOW }],
            filled: 0,
        }
    }

    /// As much as there is room for. Nothing if it is not text.
    pub(crate) fn fill(&mut self) -> Option<JsonWindow<'_>> {
        if let (TextSource::Plain(text), None) = (&self.source, &self.compactor) {
            return Some(JsonWindow {
                text,
                is_last: true,
            });
        }
        while !self.source.is_done() && self.buffer.len() - self.filled >= SLACK {
            let room = &mut self.buffer[self.filled..];
            let mut length = self.source.fill(room)?;
            if let Some(compactor) = &mut self.compactor {
                length = compactor.compact(&mut room[..length]);
            }
            self.filled += length;
        }
        Some(JsonWindow {
            text: &self.buffer[..self.filled],
            is_last: self.source.is_done(),
        })
    }

    /// The first bytes of the window are not needed any more.
    pub(crate) fn consume(&mut self, length: usize) {
        self.buffer.copy_within(length..self.filled, 0);
        self.filled -= length;
    }
}

impl TextSource<'_> {
    fn is_done(&self) -> bool {
        match self {
            TextSource::Plain(rest) => rest.is_empty(),
            TextSource::Escaped(rest) => rest.is_done(),
        }
    }

    fn fill(&mut self, room: &mut [u8]) -> Option<usize> {
        match self {
            TextSource::Plain(rest) => {
                let length = rest.len().min(room.len());
                let (piece, behind) = rest.split_at(length);
                room[..length].copy_from_slice(piece);
                *rest = behind;
                Some(length)
            }
            TextSource::Escaped(rest) => rest.fill(room),
        }
    }
}
