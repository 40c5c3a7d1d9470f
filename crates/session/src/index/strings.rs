//! The index's string table: every method, name and server once.
//!
//! Real traffic has a few dozen of them. A hostile peer can make every one different, so the table is bounded: long strings are
//! cut, and when the table is full the rest are shown as `…` (their lines still have them).

use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;

const LONGEST: usize = 256;
const MOST_BYTES: usize = 16 << 20;
const MOST_STRINGS: usize = 1 << 19;

/// The number of a string in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StringId(pub(super) u32);

impl StringId {
    pub(super) const NONE: StringId = StringId(u32::MAX);
    const UNLISTED: StringId = StringId(u32::MAX - 1);
}

/// All strings, end to end.
#[derive(Debug, Default)]
pub(crate) struct StringTable {
    pub(super) text: String,
    /// Where each string ends in `text`.
    pub(super) ends: Vec<u32>,
    by_hash: FxHashMap<u64, u32>,
}

impl StringTable {
    pub(crate) fn get(&self, id: StringId) -> Option<&str> {
        match id {
            StringId::NONE => None,
            StringId::UNLISTED => Some("…"),
            StringId(index) => {
                let index = index as usize;
                let start = if index == 0 {
                    0
                } else {
                    *self.ends.get(index - 1)? as usize
                };
                self.text.get(start..*self.ends.get(index)? as usize)
            }
        }
    }

    /// The number of `text`, new or known.
    pub(super) fn intern(&mut self, text: &str) -> StringId {
        let text = cut(text);
        let mut hash = hash(text.as_bytes());
        while let Some(index) = self.by_hash.get(&hash) {
            let known = StringId(*index);
            if self.get(known) == Some(text) {
                return known;
            }
            hash = hash.wrapping_add(1);
        }
        if self.ends.len() >= MOST_STRINGS || self.text.len() + text.len() > MOST_BYTES {
            return StringId::UNLISTED;
        }
        self.push(text, hash)
    }

    /// The table as it was stored.
    pub(super) fn from_parts(text: String, ends: Vec<u32>) -> Option<StringTable> {
        let mut strings = StringTable::default();
        let mut start = 0;
        for end in ends {
            strings.intern(text.get(start..end as usize)?);
            start = end as usize;
        }
        (strings.text == text).then_some(strings)
    }

    fn push(&mut self, text: &str, hash: u64) -> StringId {
        let index = self.ends.len() as u32;
        self.text.push_str(text);
        self.ends.push(self.text.len() as u32);
        self.by_hash.insert(hash, index);
        StringId(index)
    }
}

/// At most [`LONGEST`] bytes of whole characters.
fn cut(text: &str) -> &str {
    let end = (0..=text.len().min(LONGEST))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

pub(super) fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_has_one_number() {
        let mut strings = StringTable::default();
        let first = strings.intern("tools/call");
        let second = strings.intern("");
        assert_eq!(strings.intern("tools/call"), first);
        assert_eq!(strings.get(first), Some("tools/call"));
        assert_eq!(strings.get(second), Some(""));
        assert_eq!(strings.get(StringId::NONE), None);
        let stored = StringTable::from_parts(strings.text.clone(), strings.ends.clone()).unwrap();
        assert_eq!(stored.get(first), Some("tools/call"));
    }

    #[test]
    fn long_and_endless_strings_are_bounded() {
        let mut strings = StringTable::default();
        let long = strings.intern(&"é".repeat(1000));
        assert_eq!(strings.get(long).map(str::len), Some(256));
        for number in 0..MOST_STRINGS + 10 {
            strings.intern(&format!("m{number}"));
        }
        assert!(strings.text.len() <= MOST_BYTES);
        let unlisted = strings.intern("one more");
        assert_eq!(strings.get(unlisted), Some("…"));
    }
}
