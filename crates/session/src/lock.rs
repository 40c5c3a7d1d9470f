//! The lock on a record: held by the proxy that writes it, for as long as it lives.
//!
//! `flock` on the record itself, because the system drops it with the process, however that dies. Viewers never take it; they
//! only ask whether it is held.

use crate::private_files;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::Path;

/// Takes the lock. Waits, because a viewer's question holds it for an instant.
pub(crate) fn acquire_lock(file: &File) -> io::Result<()> {
    loop {
        match flock(file, FlockOperation::LockExclusive) {
            Err(Errno::INTR) => {}
            other => return other.map_err(io::Error::from),
        }
    }
}

/// Takes the lock if it is free.
pub(crate) fn try_acquire_lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Gives the lock back while the file is still open somewhere.
pub(crate) fn release_lock(file: &File) {
    // Closing the file does the same later.
    let _ = flock(file, FlockOperation::Unlock);
}

/// Whether a running proxy holds the record at `path`.
pub fn is_live(path: &Path) -> bool {
    // A shared lock, so that two viewers asking at once do not take each other for a proxy.
    private_files::open_record(path).is_ok_and(|file| {
        flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
    })
}
