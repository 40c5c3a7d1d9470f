//! The directory of one run of the program, and the removal of those whose run is over.
//!
//! Next to each directory `<name>` stands a file `<name>.lock`, which the run holds locked for as long as it lives, however it
//! ends. The lock is taken before the directory exists and released after it is gone, so a directory whose lock is free
//! belongs to nobody.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, openat, unlinkat};
use rustix::io::Errno;

use crate::SpillError;
use crate::handle::random_name;

const LOCK_EXTENSION: &str = "lock";
const PREFIX: &str = "run-";
const NAME_LENGTH: usize = PREFIX.len() + 26;
/// Another start may sweep a lock file away in the moment before it is locked.
const ATTEMPTS: usize = 16;

/// The private directory of this run. It is removed with all that is in it when it is dropped.
#[derive(Debug)]
pub(crate) struct RunDirectory {
    path: PathBuf,
    directory: OwnedFd,
    lock_path: PathBuf,
    /// Locked while it is open.
    _lock: File,
}

impl RunDirectory {
    /// Creates a directory in `parent`, and `parent` if it is missing.
    pub(crate) fn create(parent: &Path) -> Result<RunDirectory, SpillError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)?;
        check_private(parent)?;
        for _ in 0..ATTEMPTS {
            let path = parent.join(format!("{PREFIX}{}", random_name()?));
            let lock_path = path.with_extension(LOCK_EXTENSION);
            let lock = create_private_file(&lock_path)?;
            if !try_lock(&lock)? || lock.metadata()?.nlink() == 0 {
                continue;
            }
            let directory = create_and_open(&path).inspect_err(|_| {
                let _ = fs::remove_file(&lock_path);
            })?;
            return Ok(RunDirectory {
                path,
                directory,
                lock_path,
                _lock: lock,
            });
        }
        Err(io::Error::from(io::ErrorKind::WouldBlock).into())
    }

    /// The file that is locked while the run lives.
    pub(crate) fn lock_path(&self) -> &Path {
        &self.lock_path
    }

    /// Creates a file that nobody else can read.
    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.directory, name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(File::from(file))
    }

    /// Opens a file, and nothing else that somebody put in its place, such as a pipe, which would block.
    pub(crate) fn open_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = flags | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(&self.directory, name, flags, Mode::empty())?;
        let file = File::from(file);
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Removes a file. That it cannot be removed is not worth telling: the whole directory is removed in the end.
    pub(crate) fn remove_file(&self, name: &str) {
        let _ = unlinkat(&self.directory, name, AtFlags::empty());
    }

    /// Removes the directory with all that is in it. Nothing can be created in it after that.
    pub(crate) fn remove(&self) {
        // If it fails, the lock file stays, and the next start removes both.
        if remove_directory(&self.path).is_ok() {
            let _ = fs::remove_file(&self.lock_path);
        }
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Removes the directories of runs that are over. What cannot be removed now is left to the next start.
pub(crate) fn sweep(parent: &Path) -> Result<(), SpillError> {
    let entries = match fs::read_dir(parent) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    check_private(parent)?;
    for entry in entries {
        let name = entry?.file_name();
        if is_lock_name(&name) {
            let _ = sweep_run(&parent.join(name));
        }
    }
    Ok(())
}

/// Waits until the run that holds this lock is over, however it ends, and removes what it has left.
pub fn sweep_after(lock_path: &Path) -> io::Result<()> {
    let lock = match open_lock(lock_path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    while let Err(error) = flock(&lock, FlockOperation::LockExclusive) {
        if error != Errno::INTR {
            return Err(error.into());
        }
    }
    remove_run(lock_path)
}

fn is_lock_name(name: &OsStr) -> bool {
    let name = name
        .to_str()
        .and_then(|name| name.strip_suffix(LOCK_EXTENSION));
    let name = name.and_then(|name| name.strip_suffix('.'));
    name.is_some_and(|name| name.starts_with(PREFIX) && name.len() == NAME_LENGTH)
}

fn sweep_run(lock_path: &Path) -> io::Result<()> {
    let lock = open_lock(lock_path)?;
    match lock.metadata()?.is_file() && try_lock(&lock)? {
        true => remove_run(lock_path),
        false => Ok(()),
    }
}

fn open_lock(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.cast_signed())
        .open(path)
}

/// Removes a run whose lock the caller has.
fn remove_run(lock_path: &Path) -> io::Result<()> {
    remove_directory(&lock_path.with_extension(""))?;
    match fs::remove_file(lock_path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn create_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

fn create_and_open(path: &Path) -> io::Result<OwnedFd> {
    DirBuilder::new().mode(0o700).create(path)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Takes the lock if it is free.
fn try_lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn remove_directory(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Anybody who can write to the directory could put something of their own in the place of ours.
fn check_private(parent: &Path) -> Result<(), SpillError> {
    let metadata = fs::metadata(parent)?;
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    match is_ours && metadata.mode() & 0o022 == 0 {
        true => Ok(()),
        false => Err(SpillError::NotPrivate),
    }
}
