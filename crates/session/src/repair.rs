//! Repair of a torn tail: what a machine that lost power, or a disk that was full, left after the last whole line.

use crate::{Error, SessionHeader, lock};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Cuts off what stands after the last whole line. Returns how many bytes that were.
///
/// Only a record that nobody is writing is touched; a live one gives [`Error::Locked`].
pub fn repair(path: impl AsRef<Path>) -> Result<u64, Error> {
    let path = path.as_ref();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|error| Error::io("open", path, error))?;
    if !lock::try_hold(&file).map_err(|error| Error::io("lock", path, error))? {
        return Err(Error::Locked {
            path: path.to_path_buf(),
        });
    }
    // Never cut a file that is no record of ours.
    match crate::lines::Lines::new(&file, 0, u64::MAX).next_line() {
        Ok(Some(line)) => SessionHeader::read(line.bytes, path)?,
        Ok(None) => {
            return Err(Error::NotARecord {
                path: path.to_path_buf(),
                why: "it has no whole line".to_owned(),
            });
        }
        Err(error) => return Err(Error::io("read", path, error)),
    };
    let size = file
        .metadata()
        .map_err(|error| Error::io("read", path, error))?
        .len();
    let whole = last_newline(&file, size).map_err(|error| Error::io("read", path, error))?;
    if whole < size {
        file.set_len(whole)
            .map_err(|error| Error::io("repair", path, error))?;
        file.sync_data()
            .map_err(|error| Error::io("repair", path, error))?;
    }
    Ok(size - whole)
}

/// Offset after the last newline, found from the end so that a large record is not read.
fn last_newline(file: &std::fs::File, size: u64) -> std::io::Result<u64> {
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
