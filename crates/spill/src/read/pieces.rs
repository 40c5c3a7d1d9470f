//! A file in pieces.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Reads up to `length` bytes at `offset`; fewer only at `end`, or if the file was cut meanwhile.
pub(super) fn read_piece(file: &File, offset: u64, end: u64, into: &mut [u8]) -> io::Result<usize> {
    let left = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
    let length = into.len().min(left);
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut into[filled..length], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
