//! Whose work is done when: no client takes all places, and short work does not wait for long work.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustc_hash::FxHashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::hub::WorkClient;

/// Pieces of work at once. Each may hold a whole file in memory.
const AT_ONCE: usize = 8;
/// How many of them may be such as take seconds.
const LONG_AT_ONCE: usize = 6;
/// How many may be those of one client.
const OF_ONE_CLIENT: usize = 2;

/// How long a piece of work may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkLength {
    /// As long as it takes to read a file.
    Short,
    /// Seconds of computing.
    Long,
}

/// The places for work.
pub(super) struct WorkTurns {
    all: Arc<Semaphore>,
    long: Arc<Semaphore>,
    /// Of clients that have work now.
    of_clients: Mutex<FxHashMap<WorkClient, Weak<Semaphore>>>,
}

/// A place, until it is dropped.
pub(super) struct WorkTurn {
    _permits: [Option<OwnedSemaphorePermit>; 3],
    /// The client's other work finds its number of places here.
    _client: Arc<Semaphore>,
}

impl WorkTurns {
    pub(super) fn new() -> WorkTurns {
        WorkTurns {
            all: Arc::new(Semaphore::new(AT_ONCE)),
            long: Arc::new(Semaphore::new(LONG_AT_ONCE)),
            of_clients: Mutex::default(),
        }
    }

    /// Waits for a place.
    pub(super) async fn take(&self, client: WorkClient, length: WorkLength) -> WorkTurn {
        let of_client = self.of_client(client);
        // A semaphore that is never closed gives what it is asked for.
        let own = Arc::clone(&of_client).acquire_owned().await.ok();
        let long = match length {
            WorkLength::Short => None,
            WorkLength::Long => Arc::clone(&self.long).acquire_owned().await.ok(),
        };
        let any = Arc::clone(&self.all).acquire_owned().await.ok();
        WorkTurn {
            _permits: [own, long, any],
            _client: of_client,
        }
    }

    fn of_client(&self, client: WorkClient) -> Arc<Semaphore> {
        let mut clients = self
            .of_clients
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(turns) = clients.get(&client).and_then(Weak::upgrade) {
            return turns;
        }
        clients.retain(|_, turns| turns.strong_count() > 0);
        let turns = Arc::new(Semaphore::new(OF_ONE_CLIENT));
        clients.insert(client, Arc::downgrade(&turns));
        turns
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::server_link::ClientId;

    fn take_now(turns: &WorkTurns, client: u64, length: WorkLength) -> Option<WorkTurn> {
        let taken = pin!(turns.take(WorkClient::Session(ClientId(client)), length));
        match taken.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => Some(turn),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a3_the_work_of_one_client_leaves_places_for_others() {
        let turns = WorkTurns::new();
        let greedy: Vec<_> = (0..10)
            .filter_map(|_| take_now(&turns, 1, WorkLength::Long))
            .collect();
        assert_eq!(greedy.len(), OF_ONE_CLIENT);
        assert!(take_now(&turns, 1, WorkLength::Short).is_none());
        assert!(take_now(&turns, 2, WorkLength::Long).is_some());
        drop(greedy);
        assert!(take_now(&turns, 1, WorkLength::Long).is_some());
        assert_eq!(turns.of_clients.lock().unwrap().len(), 1);
    }

    #[test]
    fn a3_short_work_does_not_wait_for_the_long_work_of_many() {
        let turns = WorkTurns::new();
        let long: Vec<_> = (0..10)
            .filter_map(|client| take_now(&turns, client, WorkLength::Long))
            .collect();
        assert_eq!(long.len(), LONG_AT_ONCE);
        assert!(take_now(&turns, 20, WorkLength::Short).is_some());
    }
}
