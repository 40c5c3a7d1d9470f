//! Read buffers for large bodies, shared by the connections to one server.
//!
//! What is read is forwarded in the buffer it was read into. A new buffer of 128 KiB for each read costs page faults, which
//! take a fifth of the time of a large answer, so a buffer is used again once all of its pieces have been sent.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;

/// The size of every buffer. Larger reads bring nothing: what is read is forwarded at once, and smaller pieces stay in the
/// processor's cache.
pub(super) const READ_MAX: usize = 128 * 1024;
/// About what four large answers have between two sockets at a time.
const KEPT: usize = 16;

/// Buffers of earlier reads. Pieces of them may still be waiting to be sent.
#[derive(Default)]
pub struct ReadBuffers(Mutex<Vec<BytesMut>>);

impl ReadBuffers {
    /// A buffer all of whose pieces have been sent, or a new one.
    pub fn take(&self) -> BytesMut {
        let mut kept = self.kept();
        let free = kept.iter_mut().position(|it| it.try_reclaim(READ_MAX));
        match free {
            Some(index) => kept.swap_remove(index),
            None => BytesMut::with_capacity(READ_MAX),
        }
    }

    /// Takes back a buffer of [`ReadBuffers::take`] in which nothing is unread.
    pub fn give_back(&self, buffer: BytesMut) {
        let mut kept = self.kept();
        if kept.len() < KEPT {
            kept.push(buffer);
        }
    }

    /// Frees them; a buffer with pieces still to be sent, with the last of these.
    pub fn clear(&self) {
        *self.kept() = Vec::new();
    }

    fn kept(&self) -> MutexGuard<'_, Vec<BytesMut>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_once_its_pieces_are_gone() {
        let buffers = ReadBuffers::default();
        let mut first = buffers.take();
        first.resize(READ_MAX, b'x');
        let piece = first.split().freeze();
        let start = piece.as_ptr();
        buffers.give_back(first);

        let second = buffers.take();
        assert_ne!(second.as_ptr(), start);
        assert_eq!(piece.len(), READ_MAX);
        drop(piece);
        let third = buffers.take();
        assert_eq!(third.as_ptr(), start);
        assert!(third.is_empty());
    }
}
