//! Reads a body whole, if it is not too large and there is room for it.

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
    /// It is larger than allowed: the rest.
    TooLarge(IncomingBody),
    /// There is no room for more of it in memory: the rest.
    NoRoom(OverBudget, IncomingBody),
    /// The body broke off or stalled after this many bytes, and why.
    Broken(usize, String),
}

impl CollectedBody {
    /// The whole answer of a server, or how its exchange ends. It may have `max` bytes.
    pub(crate) fn into_answer(self, max: usize) -> Result<Bytes, LinkEnd> {
        Err(match self {
            CollectedBody::Whole(bytes) => return Ok(bytes),
            CollectedBody::TooLarge(_) => too_large(Side::Server, max),
            CollectedBody::NoRoom(over, _) => over.end(Side::Server),
            CollectedBody::Broken(read, why) => answer_broke_off(read, &why),
        })
    }

    /// All of it, or nothing.
    pub fn into_bytes(self) -> Bytes {
        match self {
            CollectedBody::Whole(bytes) => bytes,
            _ => Bytes::new(),
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
    let mut length = 0;
    if body.length().is_some_and(|length| length > limit as u64) {
        return CollectedBody::TooLarge(body);
    }
    while !body.is_done() {
        let piece = match timeout(PIECE_DEADLINE, body.next()).await {
            Ok(Some(Ok(piece))) => piece,
            Ok(None) => break,
            Ok(Some(Err(error))) => {
                return CollectedBody::Broken(length, error.to_string());
            }
            Err(_) => {
                let why = format!("no byte came for {} s", PIECE_DEADLINE.as_secs());
                return CollectedBody::Broken(length, why);
            }
        };
        // Almost every body is one piece: it is not copied.
        length = match &mut joined {
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
            return CollectedBody::TooLarge(body);
        }
        if let Err(over) = permit.resize(length) {
            return CollectedBody::NoRoom(over, body);
        }
    }
    let whole = joined.map_or(first, BytesMut::freeze);
    CollectedBody::Whole(permit.hold(whole))
}
