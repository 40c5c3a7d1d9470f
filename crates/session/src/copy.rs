//! A copy of a session's record, of one that is still being written too. Several files become one.
//!
//! Whole lines only, and under its name only when it is complete: a copy that exists can be opened.

use crate::export::write_lines;
use crate::{Error, SessionRecord, new_salt, private_files};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Copies the session that `from` is a record of to `to`, where nothing may be yet. Returns the bytes of the copy.
pub fn copy_record(from: &Path, to: &Path) -> Result<u64, Error> {
    let session = SessionRecord::open(from)?;
    let failed = |error| Error::io("copy to", to, error);
    if to.symlink_metadata().is_ok() {
        return Err(failed(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "it exists already and is never overwritten; give another name",
        )));
    }
    let mut unfinished = to.as_os_str().to_owned();
    unfinished.push(format!(".{}-{:x}.new", std::process::id(), new_salt()));
    let unfinished = PathBuf::from(unfinished);
    let copied = write_copy(&session, &unfinished, to).and_then(|()| {
        // Not `rename` where that can be helped: it would overwrite a file that was made meanwhile.
        let placed = std::fs::hard_link(&unfinished, to).or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Err(error),
            _ => std::fs::rename(&unfinished, to),
        });
        placed.map_err(failed)
    });
    // Gone already if it was renamed.
    let _ = std::fs::remove_file(&unfinished);
    copied.map(|()| session.bytes())
}

/// Writes the whole lines of all files to `path`. Errors name `shown`, the name that the user gave.
fn write_copy(session: &SessionRecord, path: &Path, shown: &Path) -> Result<(), Error> {
    let failed = |error| Error::io("write to", shown, error);
    let target = private_files::create_new(path).map_err(failed)?;
    let mut out = BufWriter::with_capacity(1 << 16, &target);
    write_lines(session, &mut out, &mut |_, _| {})?;
    out.flush().map_err(failed)?;
    target.sync_all().map_err(failed)
}
