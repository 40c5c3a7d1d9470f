//! The parts of a container, without a look into them.

use std::ops::Range;

use super::block::gap_end;
use super::{CheckedJson, string_length};

/// The members of an object, or the elements of an array, in JSON that has been checked.
pub(crate) struct Members<'a> {
    text: &'a [u8],
    long: &'a Range<usize>,
    /// The ends of the next values, as far as they are known.
    ends: &'a [usize],
    /// On the bracket or the comma in front of the next one; at the end of the text if there is none.
    at: usize,
    is_object: bool,
}

/// A member or an element.
pub(crate) struct Member<'a> {
    /// With its quotes; empty in an array.
    pub(crate) key: &'a [u8],
    pub(crate) value: Range<usize>,
}

impl<'a> Members<'a> {
    /// Of the outermost container.
    pub(crate) fn of_root(text: &'a [u8], checked: &'a CheckedJson) -> Members<'a> {
        Members {
            ends: &checked.root_ends,
            ..Members::at(text, checked, gap_end(text, 0))
        }
    }

    /// Of the container that begins at `start`. If something else does, it has none.
    pub(crate) fn at(text: &'a [u8], checked: &'a CheckedJson, start: usize) -> Members<'a> {
        let opening = text.get(start);
        Members {
            text,
            long: &checked.longest_string,
            ends: &[],
            at: match opening {
                Some(b'{' | b'[') => start,
                _ => text.len(),
            },
            is_object: opening == Some(&b'{'),
        }
    }

    fn string_end(&self, at: usize) -> usize {
        match at == self.long.start {
            true => self.long.end,
            false => at + string_length(&self.text[at..]),
        }
    }

    fn value_end(&self, mut at: usize) -> usize {
        let mut open = 0_usize;
        while let Some(byte) = self.text.get(at) {
            match byte {
                b'"' => {
                    at = self.string_end(at);
                    if open == 0 {
                        return at;
                    }
                    continue;
                }
                b'{' | b'[' => open += 1,
                b'}' | b']' if open <= 1 => return at + open,
                b'}' | b']' => open -= 1,
                b',' | b' ' | b'\t' | b'\r' | b'\n' if open == 0 => return at,
                _ => {}
            }
            at += 1;
        }
        at
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Member<'a>> {
        let start = gap_end(self.text, self.at + 1);
        let (key, value) = match (self.text.get(start)?, self.is_object) {
            (b'}' | b']', _) => return None,
            (_, true) => {
                let end = self.string_end(start);
                let colon = gap_end(self.text, end);
                (start..end, gap_end(self.text, colon + 1))
            }
            (_, false) => (start..start, start),
        };
        let (end, behind) = match self.ends.split_first() {
            Some((&behind, others)) => {
                self.ends = others;
                (
                    value + self.text[value..behind].trim_ascii_end().len(),
                    behind,
                )
            }
            None => {
                let end = self.value_end(value);
                (end, gap_end(self.text, end))
            }
        };
        self.at = match self.text.get(behind) {
            Some(b',') => behind,
            _ => self.text.len(),
        };
        Some(Member {
            key: &self.text[key],
            value: value..end,
        })
    }
}

/// The one item, if there is just one.
pub(crate) fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let item = items.next()?;
    items.next().is_none().then_some(item)
}
