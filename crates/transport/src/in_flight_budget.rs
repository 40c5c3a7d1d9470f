//! Room for messages that no queue holds: requests on their way to a server, each in a task of its own.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// All the room: a mebibyte for each of the 256 requests that may be in flight, or one message that is larger.
const ALL: usize = 256 << 20;
/// What a message takes at least, so that their number is bounded too: 16,384.
const LEAST: usize = 16 << 10;

/// Room for [`ALL`] bytes of messages.
#[derive(Clone)]
pub(crate) struct InFlightBudget(Arc<Semaphore>);

/// A message's part of the room, until it is dropped.
pub(crate) struct BudgetPermit {
    _permit: Option<OwnedSemaphorePermit>,
}

impl InFlightBudget {
    /// All of it is free.
    pub(crate) fn new() -> InFlightBudget {
        InFlightBudget(Arc::new(Semaphore::new(ALL)))
    }

    /// Waits until there is room for a message of this many bytes.
    pub(crate) async fn take(&self, bytes: usize) -> BudgetPermit {
        let bytes = u32::try_from(bytes.clamp(LEAST, ALL)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.0).acquire_many_owned(bytes).await;
        // It is never closed.
        BudgetPermit {
            _permit: permit.ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::runtimes::by_runtime;

    on_both_runtimes!(what_does_not_fit_waits_until_something_has_gone);
    async fn what_does_not_fit_waits_until_something_has_gone() {
        let room = InFlightBudget::new();
        let first = room.take(ALL * 2).await;
        // Paused time moves on only when nothing else can.
        let limit = by_runtime(Duration::from_secs(1), Duration::from_millis(100));
        let second = timeout(limit, room.take(0)).await;
        assert!(second.is_err());
        drop(first);
        let mut small = Vec::new();
        for _ in 0..ALL / LEAST {
            small.push(room.take(0).await);
        }
        let more = timeout(limit, room.take(0)).await;
        assert!(more.is_err());
    }
}
