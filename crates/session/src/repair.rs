//! Repair of a torn tail: what a machine that lost power, or a disk that was full, left after the last whole line.
//!
//! What is cut off is evidence, so it is kept in a file next to the record before the record is touched.

use crate::{Error, SessionHeader, lock, private_files, record_location};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A torn tail that was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// How many bytes stood after the last whole line.
    pub bytes: u64,
    /// Where they are now: `<record>.torn`, or `<record>.torn.2` and so on.
    pub kept: PathBuf,
}

/// Cuts off what stands after the last whole line, and says what that was; `None` if there was nothing.
///
/// Only a record that nobody is writing is touched: a live one gives [`Error::Locked`]. One that may not be written to stays as it is.
pub fn repair(path: impl AsRef<Path>) -> Result<Option<TornTail>, Error> {
    let path = path.as_ref();
    let reading = private_files::open_record(path).map_err(|error| Error::open(path, error))?;
    check_header(&reading, path)?;
    let facts = reading
        .metadata()
        .map_err(|error| Error::io("read", path, error))?;
    // Most records are whole, and are not opened for writing.
    if torn_from(&reading, path)? == facts.len() {
        return Ok(None);
    }
    if facts.permissions().readonly() {
        // The system would let root write to it all the same.
        let error = io::Error::from(ErrorKind::PermissionDenied);
        return Err(Error::io("repair", path, error));
    }
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|error| Error::io("repair", path, error))?;
    if !lock::try_acquire_lock(&file).map_err(|error| Error::io("lock", path, error))? {
        return Err(Error::Locked {
            path: path.to_path_buf(),
        });
    }
    // Again, now that nobody else can change it.
    check_header(&file, path)?;
    let size = file
        .metadata()
        .map_err(|error| Error::io("read", path, error))?
        .len();
    let whole = torn_from(&file, path)?;
    if whole >= size {
        return Ok(None);
    }
    let kept = keep(&file, whole, path)?;
    file.set_len(whole)
        .and_then(|()| file.sync_data())
        .map_err(|error| Error::io("repair", path, error))?;
    Ok(Some(TornTail {
        bytes: size - whole,
        kept,
    }))
}

/// Never cut a file that is not a record of ours.
fn check_header(file: &File, path: &Path) -> Result<(), Error> {
    match crate::lines::LineScanner::header(file).next_line() {
        Ok(Some(line)) => SessionHeader::read(line.bytes, path).map(drop),
        Ok(None) => Err(Error::without_header(path)),
        Err(error) => Err(Error::io("read", path, error)),
    }
}

/// Where the torn tail begins; the end of the file if there is none.
fn torn_from(file: &File, path: &Path) -> Result<u64, Error> {
    file.metadata()
        .and_then(|facts| last_newline(file, facts.len()))
        .map_err(|error| Error::io("read", path, error))
}

/// Offset after the last newline, found from the end so that a large record is not read.
fn last_newline(file: &File, size: u64) -> io::Result<u64> {
    let mut buffer = vec![0; 64 * 1024];
    let mut end = size;
    while end > 0 {
        let len = end.min(buffer.len() as u64) as usize;
        let start = end - len as u64;
        file.read_exact_at(&mut buffer[..len], start)?;
        if let Some(at) = memchr::memrchr(b'\n', &buffer[..len]) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Copies everything from `from` on to a new file next to the record, and syncs it.
fn keep(record: &File, from: u64, path: &Path) -> Result<PathBuf, Error> {
    let first = kept_path(path);
    let mut number = 1;
    let (kept, mut copy) = loop {
        let kept = record_location::numbered(&first, number);
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&kept)
        {
            Ok(file) => break (kept, file),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(Error::io("create", &kept, error)),
        }
    };
    let mut tail = record;
    let copied = tail
        .seek(SeekFrom::Start(from))
        .and_then(|_| io::copy(&mut tail.take(u64::MAX), &mut copy))
        .and_then(|_| copy.sync_all());
    match copied {
        Ok(()) => Ok(kept),
        Err(error) => {
            let _ = std::fs::remove_file(&kept);
            Err(Error::io("write to", &kept, error))
        }
    }
}

/// Where the torn tail of `record` is kept.
pub(crate) fn kept_path(record: &Path) -> PathBuf {
    let mut name = record.as_os_str().to_owned();
    name.push(".torn");
    PathBuf::from(name)
}
