//! Records and the files next to them, opened so that nobody else decides what they are.
//!
//! A record may lie in a folder that other users can write to, and it may come from somebody else. So nothing is written through
//! a link, and what is read must be a regular file: a pipe or a device would make its reader wait forever.

use rustix::fs::{CWD, Mode, OFlags, openat};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Opens a record for reading. A link may lead to it: its path comes from the user.
pub(crate) fn open_record(path: &Path) -> io::Result<File> {
    open_regular(CWD, path, OFlags::empty())
}

/// Opens a file next to a record for reading, if it is not a link and the user or the record's owner made it.
pub(crate) fn open_companion(path: &Path, record: &File) -> io::Result<File> {
    let file = open_regular(CWD, path, OFlags::NOFOLLOW)?;
    let owner = file.metadata()?.uid();
    let is_trusted = is_own(owner) || record.metadata()?.uid() == owner;
    is_trusted
        .then_some(file)
        .ok_or_else(|| ErrorKind::PermissionDenied.into())
}

/// Creates a file that does not exist yet, readable for the user alone.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    create_in(CWD, path)
}

fn open_regular(folder: impl std::os::fd::AsFd, path: &Path, more: OFlags) -> io::Result<File> {
    // Without O_NONBLOCK, opening a pipe waits for a writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | more;
    let file = File::from(openat(folder, path, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(not_a_file()),
    }
}

fn create_in(folder: impl std::os::fd::AsFd, path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(folder, path, flags, Mode::from(0o600))?))
}

fn not_a_file() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")
}

fn is_own(owner: u32) -> bool {
    owner == rustix::process::geteuid().as_raw()
}
