//! The beginning of a line, until its end comes.
//!
//! Parts of a short line are kept as they were read and joined once, into memory of the right size. A buffer that grows with
//! the line would copy it several times, and would need three times its size to do so.
//!
//! A long line is copied into a mapping of its own as it comes, which the system takes back when the line is dropped. The
//! allocator would keep the memory of the parts, once for each thread that reads: after a few results of 10 MB, a hub stayed
//! five times as large as one of them.

use bytes::{Bytes, BytesMut};
use memmap2::{MmapMut, MmapOptions};

/// Smaller parts are copied together, so that a line that comes in very small parts does not need more memory for the
/// parts than for itself.
const OWN_PART: usize = 4 * 1024;
/// Parts that were copied together are closed at this size.
const JOINED_MAX: usize = 64 * 1024;
/// Longer lines have a mapping of their own.
const MAPPED_MIN: usize = 1024 * 1024;
/// The least room in a mapping, so that hardly any line has to move to a larger one. Only what is written takes up memory.
const ROOM_MIN: usize = 64 * 1024 * 1024;
/// A mapping that is too small is replaced by one with this many times the room that is needed.
const ROOM_FACTOR: usize = 4;

/// Parts of one line, in order.
#[derive(Debug, Default)]
pub(super) struct HeldParts {
    /// All of a long line. Then there are no parts.
    mapping: Option<MmapMut>,
    parts: Vec<Bytes>,
    /// Small parts behind those.
    tail: BytesMut,
    length: usize,
}

impl HeldParts {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(super) fn ends_with_cr(&self) -> bool {
        let last = match &self.mapping {
            Some(mapping) => self.length.checked_sub(1).and_then(|at| mapping.get(at)),
            None if self.tail.is_empty() => self.parts.last().and_then(|part| part.last()),
            None => self.tail.last(),
        };
        last == Some(&b'\r')
    }

    pub(super) fn push(&mut self, part: Bytes) {
        let end = self.length + part.len();
        if end >= MAPPED_MIN {
            self.make_room(end);
        }
        match &mut self.mapping {
            Some(mapping) => mapping[self.length..end].copy_from_slice(&part),
            None if part.len() < OWN_PART => {
                self.tail.extend_from_slice(&part);
                if self.tail.len() >= JOINED_MAX {
                    self.close_tail();
                }
            }
            None => {
                self.close_tail();
                self.parts.push(part);
            }
        }
        self.length = end;
    }

    /// All of it as one piece. Nothing is held any more, memory included.
    pub(super) fn take(&mut self) -> Bytes {
        self.close_mapping();
        self.close_tail();
        let HeldParts {
            mut parts, length, ..
        } = std::mem::take(self);
        match parts.len() {
            0 => Bytes::new(),
            1 => parts.swap_remove(0),
            _ => {
                let mut whole = BytesMut::with_capacity(length);
                for part in parts {
                    whole.extend_from_slice(&part);
                }
                whole.freeze()
            }
        }
    }

    /// Moves all that is held to a mapping with room up to `end`. If the system has none, the line stays in parts.
    fn make_room(&mut self, end: usize) {
        if self
            .mapping
            .as_ref()
            .is_some_and(|mapping| mapping.len() >= end)
        {
            return;
        }
        self.close_mapping();
        self.close_tail();
        let Some(mut mapping) = map(end.saturating_mul(ROOM_FACTOR).max(ROOM_MIN)) else {
            return;
        };
        let mut filled = 0;
        // Each part is freed as soon as it is copied.
        for part in self.parts.drain(..) {
            mapping[filled..][..part.len()].copy_from_slice(&part);
            filled += part.len();
        }
        self.mapping = Some(mapping);
    }

    fn close_mapping(&mut self) {
        if let Some(mapping) = self.mapping.take() {
            self.parts
                .push(Bytes::from_owner(mapping).slice(..self.length));
        }
    }

    fn close_tail(&mut self) {
        if !self.tail.is_empty() {
            let tail = std::mem::take(&mut self.tail);
            self.parts.push(tail.freeze());
        }
    }
}

fn map(room: usize) -> Option<MmapMut> {
    let mapping = MmapOptions::new().len(room).no_reserve_swap().map_anon();
    let mapping = mapping.ok()?;
    // Every page is written once and soon given back: with small ones that costs a fifth of the time of a result in a file.
    #[cfg(target_os = "linux")]
    let _ = mapping.advise(memmap2::Advice::HugePage);
    Some(mapping)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_any_size_are_joined_in_order() {
        for size in [1, 7, OWN_PART - 1, OWN_PART, JOINED_MAX, 3 * JOINED_MAX] {
            let line: Vec<u8> = (0..MAPPED_MIN + 5).map(|at| (at % 251) as u8).collect();
            let mut held = HeldParts::default();
            assert!(held.is_empty());
            for part in line.chunks(size) {
                held.push(Bytes::copy_from_slice(part));
            }
            assert_eq!(held.len(), line.len());
            assert_eq!(held.take(), line);
            assert!(held.is_empty() && held.take().is_empty());
        }
    }

    #[test]
    fn small_and_large_parts_can_be_mixed() {
        let mut held = HeldParts::default();
        let large = Bytes::from(vec![b'x'; OWN_PART]);
        let parts = [
            large.clone(),
            Bytes::from_static(b"a\r"),
            large,
            Bytes::from_static(b"\r"),
        ];
        for part in &parts {
            held.push(part.clone());
            assert_eq!(held.ends_with_cr(), part.ends_with(b"\r"));
        }
        assert_eq!(held.take(), parts.concat());
        assert!(!held.ends_with_cr());
    }

    #[test]
    fn a_line_longer_than_its_mapping_moves_to_a_larger_one() {
        let mut held = HeldParts::default();
        let part = Bytes::from(vec![b'x'; ROOM_MIN - 1]);
        held.push(Bytes::from_static(b"a"));
        held.push(part.clone());
        held.push(Bytes::from_static(b"\r"));
        assert!(held.ends_with_cr());
        held.push(Bytes::from_static(b"b"));
        assert!(!held.ends_with_cr());
        let line = held.take();
        assert_eq!(line.len(), ROOM_MIN + 2);
        assert_eq!(line[1..][..part.len()], part);
        assert_eq!((line[0], &line[ROOM_MIN..]), (b'a', &b"\rb"[..]));
    }
}
