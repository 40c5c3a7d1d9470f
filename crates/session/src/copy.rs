//! A copy of a session's record with its side files, of one that is still being written too. Several parts become one file.
//!
//! Whole lines only, and under its name only when its side files are there too: a copy that exists can be opened.

use crate::export::write_lines;
use crate::{Error, SessionRecord, new_salt, private_files, side_folder};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Copies the session that `from` is a record of to `to`, where nothing may be yet. Returns the bytes of record and side files.
pub fn copy_record(from: &Path, to: &Path) -> Result<u64, Error> {
    let session = SessionRecord::open_session(from)?;
    let sides = side_folder(to);
    for taken in [to, &sides] {
        if taken.symlink_metadata().is_ok() {
            let error = io::Error::new(
                io::ErrorKind::AlreadyExists,
                "it exists already and is never overwritten; give another name",
            );
            return Err(Error::io("copy to", taken, error));
        }
    }
    let mut unfinished = to.as_os_str().to_owned();
    unfinished.push(format!(".{}-{:x}.new", std::process::id(), new_salt()));
    let unfinished = PathBuf::from(unfinished);
    let mut made = CopyCleanup::default();
    let place = CopyTarget {
        path: &unfinished,
        shown: to,
    };
    let mut bytes = copy_lines(&session, &place, &mut made)?;
    // The parts count on, so no two files have one name.
    for own in session.paths().map(side_folder) {
        if own.symlink_metadata().is_ok_and(|facts| facts.is_dir()) {
            bytes += copy_sides(&own, &sides, &mut made)?;
        }
    }
    // Not `rename` where that can be helped: it would overwrite what has come meanwhile.
    let placed = std::fs::hard_link(&unfinished, to).or_else(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Err(error),
        _ => std::fs::rename(&unfinished, to),
    });
    placed.map_err(|error| Error::io("copy to", to, error))?;
    made.files.truncate(1);
    made.folder = None;
    Ok(bytes)
}

/// What was made so far, and goes if the copy fails: never what was there before. The first file goes in any case.
#[derive(Default)]
struct CopyCleanup {
    files: Vec<PathBuf>,
    folder: Option<PathBuf>,
}

impl Drop for CopyCleanup {
    fn drop(&mut self) {
        for file in &self.files {
            let _ = std::fs::remove_file(file);
        }
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Where a file goes.
struct CopyTarget<'a> {
    path: &'a Path,
    /// What people are told if that fails: the name they gave.
    shown: &'a Path,
}

fn copy_sides(from: &Path, to: &Path, made: &mut CopyCleanup) -> Result<u64, Error> {
    if made.folder.is_none() {
        DirBuilder::new()
            .mode(0o700)
            .create(to)
            .map_err(|error| Error::io("make the folder", to, error))?;
        made.folder = Some(to.to_owned());
    }
    let read = |error| Error::io("read", from, error);
    let mut bytes = 0;
    for entry in std::fs::read_dir(from).map_err(read)? {
        let entry = entry.map_err(read)?;
        let is_whole = entry
            .path()
            .extension()
            .is_some_and(|ending| ending != "part");
        if entry.file_type().map_err(read)?.is_file() && is_whole {
            let path = &to.join(entry.file_name());
            let place = CopyTarget { path, shown: path };
            bytes += copy_file(&entry.path(), &place, made)?;
        }
    }
    Ok(bytes)
}

/// The whole lines of all parts.
fn copy_lines(
    session: &SessionRecord,
    to: &CopyTarget<'_>,
    made: &mut CopyCleanup,
) -> Result<u64, Error> {
    let target = create(to, made)?;
    let mut out = BufWriter::with_capacity(1 << 16, &target);
    write_lines(session, &mut out, &mut |_, _| {})?;
    let wrong = |error| Error::io("write to", to.shown, error);
    out.flush().map_err(wrong)?;
    target.sync_all().map_err(wrong)?;
    Ok(session.bytes())
}

fn copy_file(from: &Path, to: &CopyTarget<'_>, made: &mut CopyCleanup) -> Result<u64, Error> {
    let mut source =
        private_files::open_record(from).map_err(|error| Error::io("read", from, error))?;
    let wrong = |error| Error::io("write to", to.shown, error);
    let mut target = create(to, made)?;
    let bytes = io::copy(&mut source, &mut target).map_err(wrong)?;
    target.sync_all().map_err(wrong)?;
    Ok(bytes)
}

fn create(to: &CopyTarget<'_>, made: &mut CopyCleanup) -> Result<File, Error> {
    let target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to.path)
        .map_err(|error| Error::io("write to", to.shown, error))?;
    made.files.push(to.path.to_owned());
    Ok(target)
}
