//! Reads a body, as far as it is small and there is room for it.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use mcp_proxy_core::{LinkEnd, MemoryBudget, OverBudget};
use mcp_proxy_wire::Side;
use tokio::time::timeout;

use super::failed_exchange::answer_broke_off;
use super::incoming_body::IncomingBody;
use crate::lines::too_large;

/// A peer that is silent for this long in the middle of a body is given up.
const PIECE_DEADLINE: Duration = Duration::from_secs(60);

/// What was read.
pub enum CollectedBody {
    /// All of it.
    Whole(Bytes),
    /// More than the limit: what was read so far, and the rest.
    Partial(Bytes, IncomingBody),
    /// There is no room for more of it in memory: the rest.
    NoRoom(OverBudget, IncomingBody),
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
            CollectedBody::NoRoom(over, _) => over.bytes,
        }
    }

    /// Why it is not all here. Nothing for one that is.
    pub(crate) fn why_not_whole(&self) -> String {
        match self {
            CollectedBody::Whole(_) | CollectedBody::Partial(..) => String::new(),
            CollectedBody::NoRoom(over, _) => over.to_string(),
            CollectedBody::Broken(_, why) => why.clone(),
        }
    }

    /// The whole answer of a server, or how its exchange ends. It may have `max` bytes.
    pub(crate) fn into_answer(self, max: usize) -> Result<Bytes, LinkEnd> {
        Err(match self {
            CollectedBody::Whole(bytes) => return Ok(bytes),
            CollectedBody::Partial(read, _) => too_large(Side::Server, read.len(), max),
            CollectedBody::NoRoom(over, _) => over.end(Side::Server),
            CollectedBody::Broken(read, why) => answer_broke_off(read.len(), &why),
        })
    }

    /// What was read and kept, whether or not it is all.
    pub fn into_bytes(self) -> Bytes {
        match self {
            CollectedBody::Whole(read)
            | CollectedBody::Partial(read, _)
            | CollectedBody::Broken(read, _) => read,
            CollectedBody::NoRoom(..) => Bytes::new(),
        }
    }
}

/// Reads up to `limit` bytes. A large body counts while it is read, and as long as its bytes exist.
pub async fn collect(
    body: impl Into<IncomingBody>,
    limit: usize,
    memory: &MemoryBudget,
) -> CollectedBody {
    let mut body = body.into();
    let mut permit = memory.permit();
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
        if length > limit {
            return CollectedBody::Partial(read(joined, first), body);
        }
        if let Err(over) = permit.resize(length) {
            return CollectedBody::NoRoom(over, body);
        }
    }
    let whole = joined.map_or(first, BytesMut::freeze);
    CollectedBody::Whole(permit.hold(whole))
}
