//! The thread that forces the record onto the disk, because that takes milliseconds and no I/O thread may wait for it.
//!
//! With `--durability interval` it does so at most once a second, and only after a write. With `fsync` it does so after
//! every write, and messages wait for it before they are forwarded ([`DiskSync::poll_synced`]); everything that is
//! written during one sync shares the next.

use super::fault::RecorderFaults;
use crate::{Durability, Error, RecordErrorPolicy};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(1);

/// How far the record has reached the disk.
#[derive(Debug, Clone)]
pub struct DiskSync(Arc<SyncSignal>);

/// Owns the thread.
#[derive(Debug)]
pub(super) struct SyncThread {
    shared: DiskSync,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct SyncSignal {
    /// How often the record was written.
    written: AtomicU64,
    /// The thread knows that there is something to do.
    busy: AtomicBool,
    state: Mutex<State>,
    wake: Condvar,
    pause: Duration,
    policy: RecordErrorPolicy,
}

/// A file that is forced onto the disk.
#[derive(Debug, Clone)]
pub(super) struct SyncTarget {
    file: Arc<File>,
    path: PathBuf,
}

#[derive(Debug)]
struct State {
    /// The file of the newest part.
    target: SyncTarget,
    /// The files of parts that have ended since the last sync.
    ended: Vec<SyncTarget>,
    /// The writes that are on the disk.
    synced: u64,
    waiting: Vec<Waker>,
    /// Why nothing will be synced any more.
    failed: Option<String>,
    stop: bool,
}

impl DiskSync {
    /// How often the record was written so far.
    pub fn written(&self) -> u64 {
        self.0.written.load(Ordering::Acquire)
    }

    /// Waits until the first `upto` writes are on the disk. An error says why they never will be.
    pub fn poll_synced(&self, cx: &mut Context<'_>, upto: u64) -> Poll<Result<(), String>> {
        let mut state = self.0.lock();
        if let Some(why) = &state.failed {
            return Poll::Ready(Err(why.clone()));
        }
        if state.synced >= upto {
            return Poll::Ready(Ok(()));
        }
        if !state.waiting.iter().any(|it| it.will_wake(cx.waker())) {
            state.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Something was written. Takes the lock only if the thread has nothing to do yet.
    pub(super) fn note_write(&self) {
        self.0.written.fetch_add(1, Ordering::AcqRel);
        if !self.0.busy.swap(true, Ordering::AcqRel) {
            drop(self.0.lock());
            self.0.wake.notify_one();
        }
    }
}

impl SyncThread {
    /// Starts the thread that `durability` needs, if it needs one. A recorder without a thread is still a recorder: failing
    /// to start it is treated like any other record error.
    pub(super) fn start(
        durability: Durability,
        policy: RecordErrorPolicy,
        file: &File,
        path: &Path,
        faults: &Arc<RecorderFaults>,
    ) -> Result<Option<SyncThread>, Error> {
        let pause = match durability {
            Durability::None => return Ok(None),
            Durability::Interval => INTERVAL,
            Durability::Fsync => Duration::ZERO,
        };
        let target = SyncTarget::new(file, path);
        let target = match target {
            Ok(target) => target,
            Err(error) => {
                return faults
                    .by_policy(policy, cannot_start(path, error))
                    .map(|()| None);
            }
        };
        let shared = Arc::new(SyncSignal {
            written: AtomicU64::new(0),
            busy: AtomicBool::new(false),
            state: Mutex::new(State {
                target,
                ended: Vec::new(),
                synced: 0,
                waiting: Vec::new(),
                failed: None,
                stop: false,
            }),
            wake: Condvar::new(),
            pause,
            policy,
        });
        match spawn(&shared, Arc::clone(faults)) {
            Ok(thread) => Ok(Some(SyncThread {
                shared: DiskSync(shared),
                thread: Some(thread),
            })),
            Err(error) => faults
                .by_policy(policy, cannot_start(path, error))
                .map(|()| None),
        }
    }

    /// A new part has begun. The one before is forced onto the disk once more.
    pub(super) fn switch_to(&self, target: SyncTarget) {
        let mut state = self.shared.0.lock();
        let ended = std::mem::replace(&mut state.target, target);
        state.ended.push(ended);
        drop(state);
        self.shared.note_write();
    }

    /// How far it has come.
    pub(super) fn progress(&self) -> &DiskSync {
        &self.shared
    }
}

impl SyncTarget {
    pub(super) fn new(file: &File, path: &Path) -> io::Result<SyncTarget> {
        Ok(SyncTarget {
            file: Arc::new(file.try_clone()?),
            path: path.to_path_buf(),
        })
    }

    fn sync(&self) -> Result<(), Error> {
        let synced = self.file.sync_data();
        synced.map_err(|error| Error::io("force onto the disk", &self.path, error))
    }
}

fn cannot_start(path: &Path, error: io::Error) -> Error {
    Error::io("start the sync thread for", path, error)
}

fn spawn(shared: &Arc<SyncSignal>, faults: Arc<RecorderFaults>) -> io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new()
        .name("record-sync".to_owned())
        .stack_size(64 * 1024)
        .spawn(move || shared.run(&faults))
}

impl SyncSignal {
    fn run(&self, faults: &RecorderFaults) {
        let mut state = self.lock();
        loop {
            if self.written.load(Ordering::Acquire) == state.synced {
                if state.stop {
                    return;
                }
                state = self.wait(state);
                continue;
            }
            if !self.pause.is_zero() && !state.stop {
                state = self
                    .wake
                    .wait_timeout_while(state, self.pause, |state| !state.stop)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
            }
            // A swap, so that it also sees the write of a thread that found `busy` set and therefore woke nobody.
            self.busy.swap(false, Ordering::AcqRel);
            let upto = self.written.load(Ordering::Acquire);
            // Together with `upto`: what was written until then is in these files.
            let ended = std::mem::take(&mut state.ended);
            let target = state.target.clone();
            drop(state);
            let synced = ended.iter().try_for_each(SyncTarget::sync);
            let synced = synced.and_then(|()| target.sync());
            drop((ended, target));
            state = self.lock();
            state.synced = upto;
            if let Err(error) = synced {
                let why = error.chain();
                if faults.by_policy(self.policy, error).is_err() {
                    state.failed = Some(why);
                }
            }
            state.waiting.drain(..).for_each(Waker::wake);
        }
    }

    fn wait<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.wake
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SyncThread {
    fn drop(&mut self) {
        self.shared.0.lock().stop = true;
        self.shared.0.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_has_ended_is_synced_before_later_writes_count() {
        let faults = Arc::new(RecorderFaults::default());
        let policy = RecordErrorPolicy::Stop;
        // A device cannot be synced, so the attempt is seen.
        let old = File::open("/dev/null").unwrap();
        let started = SyncThread::start(Durability::Fsync, policy, &old, Path::new("old"), &faults);
        let thread = started.unwrap().unwrap();
        let new = tempfile::NamedTempFile::new().unwrap();
        thread.switch_to(SyncTarget::new(new.as_file(), new.path()).unwrap());
        let disk = thread.progress().clone();
        // Its end waits for the sync.
        drop(thread);
        let mut context = Context::from_waker(Waker::noop());
        let synced = disk.poll_synced(&mut context, disk.written());
        assert!(
            matches!(&synced, Poll::Ready(Err(why)) if why.contains("old")),
            "{synced:?}"
        );
    }
}
