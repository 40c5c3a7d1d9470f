//! What both splitters share: a piece of a message on its way, and the sizes at which they change behaviour.

use bytes::Bytes;

/// A piece of a message that is cut through, that is, passed on before its end has arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// The bytes to write on a link of the same kind when nothing was edited.
    pub wire: Bytes,
    /// The part of the message itself that arrived with them. It may be empty (line ends, field names), and it may
    /// be `\n` with an empty `wire` (the join between two `data` lines of one SSE event).
    pub message: Bytes,
}

impl Chunk {
    pub(crate) fn framing(wire: Bytes) -> Chunk {
        Chunk {
            wire,
            message: Bytes::new(),
        }
    }

    pub(crate) fn content(bytes: Bytes) -> Chunk {
        Chunk {
            wire: bytes.clone(),
            message: bytes,
        }
    }
}

/// The sizes at which a splitter stops collecting a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A message longer than this is cut through. `usize::MAX` collects every message whole.
    pub cut: usize,
    /// A message that is being collected and grows over this is given up: one `TooLarge`, the rest of it skipped.
    /// A message that is cut through needs no memory and is not limited here. Below `cut` nothing is cut through.
    pub max: usize,
}

impl Limits {
    /// Cuts through above `cut` bytes and never gives a message up.
    pub const fn cut_at(cut: usize) -> Limits {
        Limits {
            cut,
            max: usize::MAX,
        }
    }

    /// With the rule that a maximum below the cut size is reached first, so that no chunking makes a difference.
    pub(crate) const fn settled(self) -> Limits {
        if self.max < self.cut {
            Limits::collect(self.max)
        } else {
            self
        }
    }

    /// Collects every message up to `max` bytes.
    pub const fn collect(max: usize) -> Limits {
        Limits {
            cut: usize::MAX,
            max,
        }
    }
}
