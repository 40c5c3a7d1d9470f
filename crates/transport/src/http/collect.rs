//! Reads a body, but only as far as it is small.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::timeout;

use super::incoming_body::IncomingBody;

/// A peer that is silent for this long in the middle of a body is given up.
const PIECE_DEADLINE: Duration = Duration::from_secs(60);

/// What was read.
pub enum CollectedBody {
    /// All of it.
    Whole(Bytes),
    /// More than the limit: what was read so far, and the rest.
    Partial(Bytes, IncomingBody),
    /// The body broke off or stalled; what was read so far.
    Broken(Bytes, String),
}

impl CollectedBody {
    /// How many bytes were read.
    pub fn bytes_read(&self) -> usize {
        match self {
            CollectedBody::Whole(read)
            | CollectedBody::Partial(read, _)
            | CollectedBody::Broken(read, _) => read.len(),
        }
    }

    /// What was read, whether or not it is all.
    pub fn into_bytes(self) -> Bytes {
        match self {
            CollectedBody::Whole(read)
            | CollectedBody::Partial(read, _)
            | CollectedBody::Broken(read, _) => read,
        }
    }
}

/// Reads up to `limit` bytes.
pub async fn collect(body: impl Into<IncomingBody>, limit: usize) -> CollectedBody {
    collect_while(body, |length| length <= limit).await
}

/// Reads as long as what was read fits.
pub(crate) async fn collect_while(
    body: impl Into<IncomingBody>,
    mut fits: impl FnMut(usize) -> bool,
) -> CollectedBody {
    let mut body = body.into();
    let mut first = Bytes::new();
    let mut joined: Option<BytesMut> = None;
    loop {
        if body.is_done() {
            break;
        }
        let read = |joined: Option<BytesMut>, first: Bytes| joined.map_or(first, BytesMut::freeze);
        let piece = match timeout(PIECE_DEADLINE, body.next()).await {
            Ok(Some(Ok(piece))) => piece,
            Ok(None) => break,
            Ok(Some(Err(error))) => {
                return CollectedBody::Broken(read(joined, first), error.to_string());
            }
            Err(_) => {
                let why = format!("no byte came for {} s", PIECE_DEADLINE.as_secs());
                return CollectedBody::Broken(read(joined, first), why);
            }
        };
        // Almost every body is one piece: it is not copied.
        let length = match &mut joined {
            Some(buffer) => {
                buffer.extend_from_slice(&piece);
                buffer.len()
            }
            None if first.is_empty() => {
                first = piece;
                first.len()
            }
            None => {
                let mut buffer = BytesMut::with_capacity(first.len() + piece.len());
                buffer.extend_from_slice(&first);
                buffer.extend_from_slice(&piece);
                let length = buffer.len();
                joined = Some(buffer);
                length
            }
        };
        if !fits(length) {
            return CollectedBody::Partial(read(joined, first), body);
        }
    }
    CollectedBody::Whole(joined.map_or(first, BytesMut::freeze))
}
