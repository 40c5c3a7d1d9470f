//! JSON in lines: small values on one line, large ones with one member or element on each.
//!
//! So a line is worth reading by itself, and a search shows whole small records. Only white space is added. Nearly always, one
//! look at the bytes behind its beginning tells whether a container fits on a line. Containers that begin among bytes that
//! were looked at in vain are not looked at again: they are undecided until they end, or until a line's worth of bytes was
//! seen. So each byte is read twice at most, however containers are nested. JSON comes in windows: what is not decided when one
//! ends is less than two lines, and comes again at the beginning of the next.

mod window;

use std::collections::VecDeque;
use std::io::{self, Write};

use crate::ResultShape;
use crate::json::{JsonText, JsonWindow, string_end, unescape};
use window::{WINDOW, container_length};

/// A container whose compact form is longer is broken into lines.
const LINE: usize = 120;
/// Deeper levels are not indented further, or lines would be mostly white space.
const DEEPEST_INDENT: usize = 64;
/// How many keys of the outermost object are told.
const KEYS: u64 = 20;

const LINE_BREAK_AND_INDENT: [u8; DEEPEST_INDENT + 1] = {
    let mut text = [b' '; DEEPEST_INDENT + 1];
    text[0] = b'\n';
    text
};

/// Writes `json` in lines.
pub(crate) fn write_laid_out(json: &JsonText<'_>, out: &mut impl Write) -> io::Result<ResultShape> {
    let mut layout = Layout {
        out,
        at: 0,
        written: 0,
        is_in_string: false,
        level: 0,
        looked_to: 0,
        undecided: VecDeque::new(),
        separators: VecDeque::new(),
        outermost: OutermostMembers::default(),
    };
    json.for_each_window(|window| layout.take(window))?;
    Ok(layout.outermost.shape(json.compact_length()))
}

/// A container that may still fit on a line.
struct UndecidedContainer {
    start: usize,
    level: usize,
}

/// A place where a line would be broken if its container were.
struct Separator {
    /// Behind a comma or an opening bracket.
    at: usize,
    level: usize,
}

/// Places are those of the current window.
struct Layout<'a, W> {
    out: &'a mut W,
    /// Up to here it has been looked at.
    at: usize,
    /// Up to here it is in `out`.
    written: usize,
    /// A string is not over.
    is_in_string: bool,
    /// How many containers are open.
    level: usize,
    /// Up to here a look ahead was in vain.
    looked_to: usize,
    /// Open containers that began at most a line ago; all around them are broken.
    undecided: VecDeque<UndecidedContainer>,
    /// In undecided containers, and in those inside that have ended.
    separators: VecDeque<Separator>,
    outermost: OutermostMembers,
}

impl<W: Write> Layout<'_, W> {
    /// Writes what is decided, and tells how much that is.
    fn take(&mut self, window: &JsonWindow<'_>) -> io::Result<usize> {
        let json = window.text;
        let mut at = self.at;
        if self.is_in_string {
            at = self.pass_string(json, at);
        }
        if !self.is_in_string {
            at = self.pass_tokens(window, at)?;
        }
        self.decide(json, at)?;
        let decided = self.undecided.front().map_or(at, |first| first.start);
        self.write_to(json, decided)?;
        self.at = at;
        self.forget(decided);
        Ok(decided)
    }

    /// Goes on to the end of the window, or to where more of it has to be seen.
    fn pass_tokens(&mut self, window: &JsonWindow<'_>, mut at: usize) -> io::Result<usize> {
        let json = window.text;
        while let Some(&byte) = json.get(at) {
            match byte {
                b'"' => {
                    at = self.pass_string(json, at);
                    if self.is_in_string {
                        break;
                    }
                }
                b'{' | b'[' if json.len() - at < WINDOW && !window.is_last => break,
                b'{' | b'[' => at = self.open(json, at)?,
                b'}' | b']' => {
                    self.decide(json, at + 1)?;
                    self.close(json, at)?;
                    at += 1;
                }
                b',' => {
                    at += 1;
                    self.decide(json, at)?;
                    self.separate(json, at)?;
                }
                _ => at += 1,
            }
        }
        Ok(at)
    }

    /// What is behind `decided` will be the next window.
    fn forget(&mut self, decided: usize) {
        self.at -= decided;
        self.written = 0;
        self.looked_to = self.looked_to.saturating_sub(decided);
        for container in &mut self.undecided {
            container.start -= decided;
        }
        for separator in &mut self.separators {
            separator.at -= decided;
        }
    }

    /// Passes the string that begins at `start`, or the part of one that continues there.
    #[inline]
    fn pass_string(&mut self, json: &[u8], start: usize) -> usize {
        let content = start + usize::from(!self.is_in_string);
        let end = string_end(json, content);
        self.is_in_string = end.is_err();
        let end = end.unwrap_or_else(|end| end);
        if self.outermost.is_at_key {
            self.outermost
                .take_key(&json[start..end], self.is_in_string);
        }
        end
    }

    /// Passes a container that fits on a line as a whole. Enters any other.
    #[inline]
    fn open(&mut self, json: &[u8], at: usize) -> io::Result<usize> {
        self.decide(json, at)?;
        let window = match self.undecided.is_empty() && at >= self.looked_to {
            true => json[at..].first_chunk::<WINDOW>(),
            false => None,
        };
        let length = window.map(container_length);
        if let Some(Some(length)) = length
            && length <= LINE
        {
            return Ok(at + length);
        }
        if self.level == 0 {
            self.outermost.root = json.get(at).copied();
        }
        self.level += 1;
        match length {
            Some(_) => self.looked_to = at + LINE,
            None => self.undecided.push_back(UndecidedContainer {
                start: at,
                level: self.level,
            }),
        }
        self.separate(json, at + 1)?;
        Ok(at + 1)
    }

    /// Breaks the containers that do not fit on a line if they reach up to `end`.
    #[inline]
    fn decide(&mut self, json: &[u8], end: usize) -> io::Result<()> {
        while let Some(first) = self.undecided.front()
            && end - first.start > LINE
        {
            let level = first.level;
            self.undecided.pop_front();
            let next = self.undecided.front().map_or(end, |next| next.start);
            // A separator stands behind a bracket, so the first one of the next container is behind its start.
            while let Some(separator) = self.separators.front()
                && separator.at <= next
            {
                let (at, is_own) = (separator.at, separator.level == level);
                self.separators.pop_front();
                if is_own {
                    self.break_line(json, at, level)?;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn separate(&mut self, json: &[u8], at: usize) -> io::Result<()> {
        if self.level == 1 {
            self.outermost.begin_member();
        }
        match self.undecided.front() {
            Some(_) => {
                let level = self.level;
                self.separators.push_back(Separator { at, level });
                Ok(())
            }
            None => self.break_line(json, at, self.level),
        }
    }

    #[inline]
    fn close(&mut self, json: &[u8], at: usize) -> io::Result<()> {
        let level = self.level;
        self.level -= 1;
        if let Some(last) = self.undecided.back()
            && last.level == level
        {
            self.undecided.pop_back();
            if self.undecided.is_empty() {
                // It fits, and so does all that is in it.
                self.separators.clear();
            }
            return Ok(());
        }
        self.break_line(json, at, level - 1)
    }

    #[inline]
    fn break_line(&mut self, json: &[u8], at: usize, level: usize) -> io::Result<()> {
        self.write_to(json, at)?;
        let indent = level.min(DEEPEST_INDENT);
        self.out.write_all(&LINE_BREAK_AND_INDENT[..=indent])
    }

    #[inline]
    fn write_to(&mut self, json: &[u8], end: usize) -> io::Result<()> {
        self.out.write_all(&json[self.written..end])?;
        self.written = end;
        Ok(())
    }
}

/// The members of the outermost container, counted as they are passed.
#[derive(Default)]
struct OutermostMembers {
    /// Its bracket.
    root: Option<u8>,
    count: u64,
    /// The first ones.
    keys: Vec<String>,
    /// The next string is a key that is told.
    is_at_key: bool,
    /// What has been read of it.
    key: Vec<u8>,
}

impl OutermostMembers {
    fn begin_member(&mut self) {
        self.count += 1;
        self.is_at_key = self.root == Some(b'{') && self.count <= KEYS;
    }

    fn take_key(&mut self, part: &[u8], is_open: bool) {
        self.key.extend_from_slice(part);
        if !is_open {
            let content = unescape(&std::mem::take(&mut self.key));
            let text = content.map(|content| String::from_utf8_lossy(&content).into_owned());
            self.keys.extend(text);
            self.is_at_key = false;
        }
    }

    fn shape(self, length: usize) -> ResultShape {
        // An empty container has a place for a first member too.
        let is_empty = length == 2;
        let count = if is_empty { 0 } else { self.count };
        match self.root {
            Some(b'{') => ResultShape::Object {
                keys: self.keys,
                key_count: count,
            },
            Some(b'[') => ResultShape::Array { length: count },
            _ => ResultShape::Other,
        }
    }
}

#[cfg(test)]
mod tests;
