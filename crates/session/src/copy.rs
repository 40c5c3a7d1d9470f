//! A copy of a record with its side files, of one that is still being written too.
//!
//! Whole lines only, side files first, the record last and under its name only when it is whole: whoever finds the copy can
//! open it.

use crate::{Error, Session, side_folder};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Copies the record at `from` to `to`, where nothing may be yet. Returns the bytes of record and side files.
pub fn copy_record(from: &Path, to: &Path) -> Result<u64, Error> {
    let session = Session::open(from)?;
    let sides = side_folder(to);
    for taken in [to, &sides] {
        if taken.symlink_metadata().is_ok() {
            let error = io::Error::new(io::ErrorKind::AlreadyExists, "there is something already");
            return Err(Error::io("copy to", taken, error));
        }
    }
    let mut unfinished = to.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = Unfinished(PathBuf::from(unfinished));
    let mut bytes = copy_file(from, &unfinished.0, session.bytes())?;
    let own = side_folder(from);
    if own.is_dir() {
        bytes += copy_sides(&own, &sides)?;
    }
    // Not `rename`: that would overwrite what has come meanwhile.
    std::fs::hard_link(&unfinished.0, to).map_err(|error| Error::io("copy to", to, error))?;
    Ok(bytes)
}

/// Gone whatever happens.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn copy_sides(from: &Path, to: &Path) -> Result<u64, Error> {
    DirBuilder::new()
        .mode(0o700)
        .create(to)
        .map_err(|error| Error::io("make the folder", to, error))?;
    let read = |error| Error::io("read", from, error);
    let mut bytes = 0;
    for entry in std::fs::read_dir(from).map_err(read)? {
        let entry = entry.map_err(read)?;
        let is_whole = entry
            .path()
            .extension()
            .is_some_and(|ending| ending != "part");
        if entry.file_type().map_err(read)?.is_file() && is_whole {
            bytes += copy_file(&entry.path(), &to.join(entry.file_name()), u64::MAX)?;
        }
    }
    Ok(bytes)
}

fn copy_file(from: &Path, to: &Path, limit: u64) -> Result<u64, Error> {
    let source = File::open(from).map_err(|error| Error::io("read", from, error))?;
    let wrong = |error| Error::io("write to", to, error);
    let mut target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)
        .map_err(wrong)?;
    let bytes = io::copy(&mut source.take(limit), &mut target).map_err(wrong)?;
    target.sync_all().map_err(wrong)?;
    Ok(bytes)
}
