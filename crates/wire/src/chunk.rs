//! A piece of a message that is on its way before its end has come.

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
