//! Files below configured directories, and no others.
//!
//! Each part of a path is opened in the directory before it, and no symbolic link is followed, so there is no moment between
//! a check and its use in which a path could come to mean something else.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, statat};

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// Opens a regular file by its absolute path. Returns its size with it: what is added later is not read.
pub(crate) fn open_below(roots: &[PathBuf], file: &str) -> Option<(File, u64)> {
    let path = Path::new(file);
    roots
        .iter()
        .filter_map(|root| Some((root, path.strip_prefix(root).ok()?)))
        .find_map(|(root, below)| open_file(root, below))
}

fn open_file(root: &Path, below: &Path) -> Option<(File, u64)> {
    let mut directory = rustix::fs::open(root, DIRECTORY, Mode::empty()).ok()?;
    let mut parts = below.components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else {
            return None;
        };
        if parts.peek().is_none() {
            return open_regular(&directory, Path::new(name));
        }
        let flags = DIRECTORY | OFlags::NOFOLLOW;
        directory = openat(&directory, name, flags, Mode::empty()).ok()?;
    }
    None
}

fn open_regular(directory: &OwnedFd, name: &Path) -> Option<(File, u64)> {
    // Opening a pipe or a device can have effects of its own, so look first. The second look is at what was opened.
    let before = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if FileType::from_raw_mode(before.st_mode) != FileType::RegularFile {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = flags | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(directory, name, flags, Mode::empty()).ok()?;
    let opened = fstat(&file).ok()?;
    let is_regular = FileType::from_raw_mode(opened.st_mode) == FileType::RegularFile;
    let size = u64::try_from(opened.st_size).ok()?;
    is_regular.then(|| (File::from(file), size))
}
