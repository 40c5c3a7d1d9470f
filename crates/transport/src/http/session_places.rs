//! How many sessions there may be, and how many servers run for them.
//!
//! A session counts until it is told to end. Its server counts until it has ended, which takes longer: a new session waits
//! for that, so that there are never more servers than sessions allowed.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Ends an idle session; whether there was one.
type EndIdleSession = Box<dyn Fn() -> bool + Send + Sync>;

/// The places of one or several endpoints together.
pub struct SessionPlaces {
    max: usize,
    taken: Mutex<usize>,
    servers: Arc<Semaphore>,
    end_idle: OnceLock<EndIdleSession>,
}

impl SessionPlaces {
    /// Room for this many sessions.
    pub fn new(max: usize) -> Arc<SessionPlaces> {
        Arc::new(SessionPlaces {
            max,
            taken: Mutex::new(0),
            servers: Arc::new(Semaphore::new(max)),
            end_idle: OnceLock::new(),
        })
    }

    /// How many sessions there may be.
    pub fn max(&self) -> usize {
        self.max
    }

    /// Sets what ends an idle session when all places are taken.
    pub(crate) fn set_end_idle(&self, end_idle: impl Fn() -> bool + Send + Sync + 'static) {
        let _ = self.end_idle.set(Box::new(end_idle));
    }

    /// A place for a new session. If all are taken, an idle session makes room; `None` if none is idle.
    pub(crate) fn enter_or_make_room(self: &Arc<Self>) -> Option<SessionPlace> {
        self.enter().or_else(|| {
            let made = self.end_idle.get().is_some_and(|end_idle| end_idle());
            made.then(|| self.enter()).flatten()
        })
    }

    /// A place for a new session, if one is free.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<SessionPlace> {
        let mut taken = self.taken();
        (*taken < self.max).then(|| {
            *taken += 1;
            SessionPlace(Arc::clone(self))
        })
    }

    /// Waits until another server may run.
    pub(crate) async fn server(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.servers).acquire_owned().await.ok()
    }

    fn taken(&self) -> MutexGuard<'_, usize> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a session that has not been told to end.
pub(crate) struct SessionPlace(Arc<SessionPlaces>);

impl Drop for SessionPlace {
    fn drop(&mut self) {
        *self.0.taken() -= 1;
    }
}
