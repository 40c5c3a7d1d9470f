//! Where a record goes: the user's state directory, or a file that was named.
//!
//! A record never overwrites anything. If `x.jsonl` exists, `x.2.jsonl`, `x.3.jsonl` and so on are tried; creating is exclusive, so
//! two proxies started at the same moment with the same name get two files.

use crate::{Error, SessionHeader, lock, store};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Where a new record goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordLocation {
    /// A new file in [`store::state_dir`].
    Default,
    /// A new file in this folder, named like those in the default place.
    Folder(PathBuf),
    /// This file, or a numbered one if it exists: `x.2.jsonl` for `x.jsonl`.
    File(PathBuf),
    /// A file in the folder for temporary files that has no name, and so is gone when it is closed.
    Temporary,
}

impl RecordLocation {
    /// Creates the file, 0600 and locked, and the folders above it, 0700.
    pub(crate) fn create(&self, header: &SessionHeader) -> Result<(File, PathBuf), Error> {
        let wanted = match self {
            RecordLocation::Temporary => return create_temporary(),
            RecordLocation::Default => store::state_dir()?.join(default_name(header)),
            RecordLocation::Folder(folder) => folder.join(default_name(header)),
            RecordLocation::File(path) => path.clone(),
        };
        if std::fs::metadata(&wanted).is_ok_and(|facts| !facts.is_file()) {
            let error = std::io::Error::new(
                ErrorKind::InvalidInput,
                "it is a folder or a device, not a file",
            );
            return Err(Error::io("record to", &wanted, error));
        }
        if let Some(folder) = wanted
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(|error| Error::io("create", folder, error))?;
            if *self == RecordLocation::Default {
                close_to_others(folder);
            }
        }
        let mut number = 1;
        loop {
            let path = numbered_record(&wanted, number);
            match OpenOptions::new()
                .read(true)
                .append(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)
            {
                Ok(file) => {
                    lock::acquire_lock(&file).map_err(|error| Error::io("lock", &path, error))?;
                    return Ok((file, path));
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(Error::io("create", &path, error)),
            }
        }
    }
}

/// The path leads to the open file, as long as this process has it open.
fn create_temporary() -> Result<(File, PathBuf), Error> {
    let folder = std::env::temp_dir();
    let failed = |error| Error::io("create a temporary record in", &folder, error);
    let file = tempfile::Builder::new().append(true).tempfile();
    let file = file.map_err(failed)?.into_file();
    lock::acquire_lock(&file).map_err(failed)?;
    let number = file.as_raw_fd();
    let path = match cfg!(target_os = "linux") {
        true => format!("/proc/{}/fd/{number}", std::process::id()),
        false => format!("/dev/fd/{number}"),
    };
    Ok((file, path.into()))
}

/// `x.jsonl` for the first, `x.2.jsonl` and so on for the others: the ending still tells what the file is.
pub fn numbered_record(path: &Path, number: u32) -> PathBuf {
    match path.extension() {
        _ if number == 1 => path.to_path_buf(),
        None => numbered(path, number),
        Some(ending) => {
            let mut name = path.file_stem().unwrap_or_default().to_owned();
            name.push(format!(".{number}."));
            name.push(ending);
            path.with_file_name(name)
        }
    }
}

/// `path` for the first, `path.2` and so on for the others.
pub(crate) fn numbered(path: &Path, number: u32) -> PathBuf {
    if number == 1 {
        return path.to_path_buf();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// `20261115T180000Z-5f0c3a21.jsonl`: sorts by time, and the tail of the session id makes it unique.
fn default_name(header: &SessionHeader) -> String {
    let text = crate::timestamp::to_text(header.started_at);
    let compact: String = text[..19]
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    let tail: String = header
        .id
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    format!("{compact}Z-{}.jsonl", &tail[tail.len().saturating_sub(8)..])
}

/// The default folder may have been made by someone else with a wider mode; what it holds is sensitive. Best effort.
fn close_to_others(folder: &Path) {
    if let Ok(facts) = std::fs::metadata(folder)
        && facts.permissions().mode() & 0o077 != 0
    {
        let _ = std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700));
    }
}
