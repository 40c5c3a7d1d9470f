//! The thread behind `--durability interval`: it forces the record onto the disk at most once a second, and only after a write.
//!
//! It exists because fdatasync takes milliseconds and the traffic must not wait for it.

use super::fault::Faults;
use crate::{Durability, Error, OnRecordError};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Syncer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    dirty: AtomicBool,
    stop: Mutex<bool>,
    wake: Condvar,
}

impl Syncer {
    pub(super) fn start(file: &File, path: PathBuf, faults: Arc<Faults>) -> io::Result<Syncer> {
        let file = file.try_clone()?;
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("record-sync".to_owned())
            .stack_size(64 * 1024)
            .spawn(move || theirs.run(&file, &path, &faults))?;
        Ok(Syncer {
            shared,
            thread: Some(thread),
        })
    }

    /// Something was written. Wakes the thread only if it has nothing to do yet.
    pub(super) fn written(&self) {
        if !self.shared.dirty.swap(true, Ordering::AcqRel) {
            drop(
                self.shared
                    .stop
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner),
            );
            self.shared.wake.notify_one();
        }
    }
}

impl Shared {
    fn run(&self, file: &File, path: &std::path::Path, faults: &Faults) {
        let mut stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        while !*stop {
            if !self.dirty.load(Ordering::Acquire) {
                stop = self.wake.wait(stop).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            stop = self
                .wake
                .wait_timeout_while(stop, INTERVAL, |stop| !*stop)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            self.dirty.store(false, Ordering::Release);
            drop(stop);
            if let Err(error) = file.sync_data() {
                faults.warn(&Error::io("force onto the disk", path, error));
            }
            stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        *self
            .shared
            .stop
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Whether a flush itself must sync.
pub(super) fn sync_now(durability: Durability, file: &File) -> io::Result<()> {
    match durability {
        Durability::Fsync => file.sync_data(),
        Durability::None | Durability::Interval => Ok(()),
    }
}

/// A recorder without a sync thread is still a recorder: failing to start one is treated like any other record error.
pub(super) fn start_for(
    durability: Durability,
    policy: OnRecordError,
    file: &File,
    path: &std::path::Path,
    faults: &Arc<Faults>,
) -> Result<Option<Syncer>, Error> {
    if durability != Durability::Interval {
        return Ok(None);
    }
    match Syncer::start(file, path.to_path_buf(), Arc::clone(faults)) {
        Ok(syncer) => Ok(Some(syncer)),
        Err(error) => faults
            .by_policy(policy, Error::io("start the sync thread for", path, error))
            .map(|()| None),
    }
}
