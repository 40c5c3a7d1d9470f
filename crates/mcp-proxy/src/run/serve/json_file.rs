//! Files that only the user can read, and that are there whole or not at all.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde::Serialize;

/// Writes a draft, which then takes the place of the file.
pub fn write(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    // One that was left behind may be a link, or readable for others.
    remove(&draft)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let written = options.open(&draft).and_then(|file| {
        let mut file = BufWriter::new(file);
        serde_json::to_writer(&mut file, value)?;
        file.flush()?;
        std::fs::rename(&draft, path)
    });
    written.inspect_err(|_| {
        let _ = remove(&draft);
    })
}

/// Removes a file, if it is there.
pub fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
