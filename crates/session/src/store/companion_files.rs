//! What belongs to a record besides its own file: found by name, so that it is counted and removed with it.
//!
//! Index, what repair cut off, and the export that `proxy --output-format` writes at the end of a run. Everything
//! else in the folder is somebody else's.

use crate::record_file::RecordOpening;
use crate::{Error, exporters, index, repair};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The names in a folder, sorted: they are looked up for every record in it.
#[derive(Debug, Default)]
pub(super) struct FolderListing(Vec<OsString>);

impl FolderListing {
    /// All names in `folder`.
    pub(super) fn of(folder: &Path) -> io::Result<FolderListing> {
        let mut names: Vec<OsString> = std::fs::read_dir(folder)?
            .filter_map(|entry| entry.ok().map(|entry| entry.file_name()))
            .collect();
        names.sort();
        Ok(FolderListing(names))
    }

    /// The names in the folder of `record`; none if that cannot be read.
    pub(super) fn siblings_of(record: &Path) -> FolderListing {
        let folder = record.parent().filter(|path| !path.as_os_str().is_empty());
        FolderListing::of(folder.unwrap_or(Path::new("."))).unwrap_or_default()
    }

    /// Where all files are.
    pub(super) fn in_folder<'a>(&'a self, folder: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
        self.0.iter().map(|name| folder.join(name))
    }

    /// The files and folders that belong to `record`.
    pub(super) fn companions_of(&self, record: &Path) -> Vec<PathBuf> {
        let own = record.file_name().unwrap_or_default();
        let exports = exporters()
            .iter()
            .map(|exporter| record.with_extension(exporter.extension()));
        let numbered: Vec<OsString> = exports
            .chain([repair::kept_path(record)])
            .filter_map(|path| path.file_name().map(OsStr::to_owned))
            .filter(|name| name != own)
            .collect();
        let index = index::path_for(record);
        let index = index.file_name().unwrap_or_default();
        // Where records of format 2 have their large bodies.
        let mut bodies = own.to_owned();
        bodies.push(".d");
        let is_ours = |name: &OsStr| {
            name == index
                || name == bodies
                || is_half_an_index(name, index)
                || numbered.iter().any(|first| is_numbered(name, first))
        };
        // Everything that counts begins with the record's name without its ending.
        let stem = record.file_stem().unwrap_or_default();
        let from = self.0.partition_point(|name| name.as_os_str() < stem);
        self.0[from..]
            .iter()
            .take_while(|name| starts_with(name, stem))
            .filter(|name| is_ours(name))
            .map(|name| record.with_file_name(name))
            // An export as `jsonl` is a record, and listed as one.
            .filter(|path| path.is_dir() || RecordOpening::read(path).is_err())
            .collect()
    }
}

/// Bytes of a file, or of all files in a folder.
pub(super) fn size(path: &Path) -> u64 {
    match std::fs::symlink_metadata(path) {
        Ok(facts) if facts.is_dir() => {
            let entries = std::fs::read_dir(path).into_iter().flatten();
            entries
                .filter_map(|entry| entry.and_then(|entry| entry.metadata()).ok())
                .map(|facts| facts.len())
                .sum()
        }
        Ok(facts) => facts.len(),
        Err(_) => 0,
    }
}

/// Removes a file or a folder; one that is gone already is not a failure.
pub(super) fn remove(path: &Path) -> Result<(), Error> {
    let removed = match std::fs::symlink_metadata(path) {
        Ok(facts) if facts.is_dir() => std::fs::remove_dir_all(path),
        _ => std::fs::remove_file(path),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", path, error)),
        _ => Ok(()),
    }
}

/// `first`, or `first.2` and so on.
fn is_numbered(name: &OsStr, first: &OsStr) -> bool {
    match rest(name, first) {
        Some(b"") => true,
        Some([b'.', number @ ..]) => !number.is_empty() && number.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// What a process that was killed left of an index.
fn is_half_an_index(name: &OsStr, index: &OsStr) -> bool {
    rest(name, index).is_some_and(|rest| rest.starts_with(b".") && rest.ends_with(b".part"))
}

fn starts_with(name: &OsStr, start: &OsStr) -> bool {
    rest(name, start).is_some()
}

fn rest<'a>(name: &'a OsStr, start: &OsStr) -> Option<&'a [u8]> {
    name.as_encoded_bytes()
        .strip_prefix(start.as_encoded_bytes())
}
