//! The beginning of a line, until its end comes.
//!
//! Parts are kept as they were read and joined once, into memory of the right size. A buffer that grows with the line would
//! copy it several times, and would need three times its size to do so.
//!
//! A large line gets a mapping of its own, which the system takes back when the line is dropped. The allocator would keep such
//! memory, once for each thread that reads: after a few results of 10 MB, a hub stayed ten times as large as one of them.

use bytes::{Bytes, BytesMut};
use memmap2::MmapMut;

/// Smaller parts are copied together, so that a line that comes in very small parts does not need more memory for the
/// parts than for itself.
const OWN_PART: usize = 4 * 1024;
/// Parts that were copied together are closed at this size.
const JOINED_MAX: usize = 64 * 1024;
/// Longer lines have a mapping of their own.
const MAPPED_MIN: usize = 1024 * 1024;

/// Parts of one line, in order.
#[derive(Debug, Default)]
pub(super) struct HeldParts {
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
        let last = match self.tail.is_empty() {
            true => self.parts.last().and_then(|part| part.last()),
            false => self.tail.last(),
        };
        last == Some(&b'\r')
    }

    pub(super) fn push(&mut self, part: Bytes) {
        self.length += part.len();
        if part.len() < OWN_PART {
            self.tail.extend_from_slice(&part);
            if self.tail.len() >= JOINED_MAX {
                self.close_tail();
            }
        } else {
            self.close_tail();
            self.parts.push(part);
        }
    }

    /// All of it as one piece. Nothing is held any more, memory included.
    pub(super) fn take(&mut self) -> Bytes {
        let HeldParts {
            mut parts,
            tail,
            length,
        } = std::mem::take(self);
        match parts.len() {
            0 => tail.freeze(),
            1 if tail.is_empty() => parts.swap_remove(0),
            _ => {
                parts.push(tail.freeze());
                join(parts, length)
            }
        }
    }

    fn close_tail(&mut self) {
        if !self.tail.is_empty() {
            let tail = std::mem::take(&mut self.tail);
            self.parts.push(tail.freeze());
        }
    }
}

/// Joins parts of this length together. Each is freed as soon as it is copied.
fn join(parts: Vec<Bytes>, length: usize) -> Bytes {
    if length >= MAPPED_MIN
        && let Ok(mut whole) = MmapMut::map_anon(length)
    {
        let mut end = 0;
        for part in parts {
            whole[end..][..part.len()].copy_from_slice(&part);
            end += part.len();
        }
        return Bytes::from_owner(whole);
    }
    let mut whole = BytesMut::with_capacity(length);
    for part in parts {
        whole.extend_from_slice(&part);
    }
    whole.freeze()
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
}
