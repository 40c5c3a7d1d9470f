//! How many bytes of messages may wait in memory, all peers and queues of a run together.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use mcp_proxy_wire::{ErrorCode, Id, Message, Side, error_response};

use crate::link::LinkEnd;

/// Room unless `--memory-budget` says otherwise.
pub const DEFAULT_MEMORY_BUDGET: usize = 512 << 20;

/// Smaller messages do not count while they are read, so that a client which leaves large ones unread does not keep others from
/// working. Queues bound those that wait.
pub const COUNTED_FROM: usize = 64 << 10;

/// One counter for everything that waits: bodies that are being read, messages in queues, answers that are not read.
///
/// A message's part is given back when the last clone of its bytes is dropped, wherever they were passed on to.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Arc<Counter>);

#[derive(Debug)]
struct Counter {
    limit: AtomicUsize,
    used: AtomicUsize,
    refused: AtomicU64,
}

/// A part of the budget, until it is dropped.
#[derive(Debug)]
pub struct MemoryPermit {
    budget: MemoryBudget,
    bytes: usize,
}

/// There is no room for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverBudget {
    /// How large it is, as far as it has been read.
    pub bytes: usize,
    /// All the room there is.
    pub limit: usize,
}

/// Bytes, and their part of the budget.
struct HeldBytes {
    bytes: Bytes,
    _permit: MemoryPermit,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Default for MemoryBudget {
    fn default() -> MemoryBudget {
        MemoryBudget::new(DEFAULT_MEMORY_BUDGET)
    }
}

impl MemoryBudget {
    /// Room for this many bytes.
    pub fn new(limit: usize) -> MemoryBudget {
        MemoryBudget(Arc::new(Counter {
            limit: AtomicUsize::new(limit),
            used: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        }))
    }

    /// Changes how much room there is.
    pub fn set_limit(&self, bytes: usize) {
        self.0.limit.store(bytes, Ordering::Relaxed);
    }

    /// All the room there is.
    pub fn limit(&self) -> usize {
        self.0.limit.load(Ordering::Relaxed)
    }

    /// How many bytes wait now.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// How many messages there was no room for.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// A part that has no bytes yet.
    pub fn permit(&self) -> MemoryPermit {
        MemoryPermit {
            budget: self.clone(),
            bytes: 0,
        }
    }

    /// Counts these bytes as long as they exist, if there is room for them.
    pub fn hold(&self, bytes: Bytes) -> Result<Bytes, OverBudget> {
        let mut permit = self.permit();
        permit.reserve(bytes.len())?;
        Ok(permit.hold(bytes))
    }

    /// Counts these bytes even if there is no room: they replace others that were counted.
    pub fn hold_anyway(&self, bytes: Bytes) -> Bytes {
        let mut permit = self.permit();
        permit.bytes = bytes.len();
        self.0.used.fetch_add(permit.bytes, Ordering::Relaxed);
        permit.hold(bytes)
    }
}

impl MemoryPermit {
    /// Counts what has been read of a message, if it is large. If there is no room for it, it is refused, and its
    /// part is given back.
    pub fn resize(&mut self, bytes: usize) -> Result<(), OverBudget> {
        self.reserve(if bytes < COUNTED_FROM { 0 } else { bytes })
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), OverBudget> {
        let counter = &self.budget.0;
        if bytes == self.bytes {
            return Ok(());
        }
        if bytes < self.bytes {
            counter
                .used
                .fetch_sub(self.bytes - bytes, Ordering::Relaxed);
            self.bytes = bytes;
            return Ok(());
        }
        let more = bytes - self.bytes;
        let limit = counter.limit.load(Ordering::Relaxed);
        let before = counter.used.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more) > limit {
            counter.used.fetch_sub(more, Ordering::Relaxed);
            counter.refused.fetch_add(1, Ordering::Relaxed);
            self.release();
            return Err(OverBudget { bytes, limit });
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Gives it back.
    pub fn release(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.budget.0.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// These bytes keep it from now on.
    pub fn hold(self, bytes: Bytes) -> Bytes {
        match self.bytes {
            0 => bytes,
            _ => Bytes::from_owner(HeldBytes {
                bytes,
                _permit: self,
            }),
        }
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        self.release();
    }
}

impl OverBudget {
    /// The error for who waits for the message, or for its answer.
    pub fn answer(&self, id: Option<&Id>) -> Message {
        error_response(id, ErrorCode::MEMORY_BUDGET, &self.to_string(), None)
    }

    /// The end of what cannot continue without a message from this side.
    pub fn end(&self, side: Side) -> LinkEnd {
        LinkEnd::failed(side, ErrorCode::MEMORY_BUDGET, self.to_string())
    }
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the memory budget is full: this message has at least {} bytes, and all waiting messages may take {} (--memory-budget); try again later",
            self.bytes, self.limit
        )
    }
}

impl std::error::Error for OverBudget {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a5_what_does_not_fit_is_refused_until_something_has_gone() {
        let budget = MemoryBudget::new(100);
        let first = budget.hold(Bytes::from_static(&[0; 60])).unwrap();
        let part = first.slice(10..20);
        let over = budget.hold(Bytes::from_static(&[0; 60])).unwrap_err();
        let (bytes, limit) = (60, 100);
        assert_eq!(over, OverBudget { bytes, limit });
        assert_eq!((budget.used(), budget.refused()), (60, 1));
        drop(first);
        assert_eq!(budget.used(), 60, "a part of it is still there");
        drop(part);
        let more = budget.hold_anyway(Bytes::from_static(&[0; 160]));
        assert_eq!(budget.used(), 160);
        drop(more);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a5_what_is_read_counts_once_it_is_large() {
        let budget = MemoryBudget::new(100 << 10);
        let mut permit = budget.permit();
        permit.resize(COUNTED_FROM - 1).unwrap();
        assert_eq!(budget.used(), 0);
        permit.resize(COUNTED_FROM).unwrap();
        assert_eq!(budget.used(), COUNTED_FROM);
        let bytes = 101 << 10;
        let limit = budget.limit();
        assert_eq!(permit.resize(bytes), Err(OverBudget { bytes, limit }));
        assert_eq!(budget.used(), 0, "what is refused is not kept");
        permit.resize(95 << 10).unwrap();
        permit.resize(90 << 10).unwrap();
        assert_eq!(budget.used(), 90 << 10);
        permit.resize(20).unwrap();
        assert_eq!(budget.used(), 0);
    }
}
