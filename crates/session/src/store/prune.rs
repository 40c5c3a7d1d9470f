//! Removing records: by age, by size, by name; never one of a running session.

use super::companion_files::{self, FolderListing};
use super::{RecordListing, list};
use crate::{Error, lock, private_files};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A file without a header this young may belong to a proxy that is just starting.
const JUST_STARTED: Duration = Duration::from_secs(60);

/// Which records to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PruneSelection {
    /// Those that started before this time.
    StartedBefore(SystemTime),
    /// The oldest, until the rest takes no more bytes than this. The newest finished session stays in any case.
    OldestOver(u64),
    /// These, named by their first files.
    Records(Vec<PathBuf>),
    /// All finished ones.
    All,
}

/// What was, or would be, removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneSummary {
    /// The records, by their first files.
    pub removed: Vec<PathBuf>,
    /// What that freed.
    pub bytes: u64,
    /// Records that were meant but belong to a running session.
    pub live: Vec<PathBuf>,
}

/// Removes records from `folder` with all files that belong to them.
pub fn prune(folder: &Path, which: &PruneSelection) -> Result<PruneSummary, Error> {
    let listed = list(folder)?;
    let mut total: u64 = listed.iter().map(|record| record.bytes).sum();
    let mut pruned = PruneSummary::default();
    // It is what somebody will want to look at next.
    let newest = listed.iter().find(|record| !record.live);
    let is_newest = |record: &RecordListing| newest.is_some_and(|newest| newest.id == record.id);
    // From the oldest.
    for record in listed.iter().rev() {
        let path = record.path().to_path_buf();
        let meant = match which {
            PruneSelection::StartedBefore(time) => record.started_at < *time,
            PruneSelection::OldestOver(limit) => total > *limit && !is_newest(record),
            PruneSelection::Records(paths) => paths.contains(&path),
            PruneSelection::All => true,
        };
        if !meant {
            continue;
        }
        if !record.live && remove(record)? {
            total = total.saturating_sub(record.bytes);
            pruned.bytes += record.bytes;
            pruned.removed.push(path);
        } else {
            pruned.live.push(path);
        }
    }
    Ok(pruned)
}

/// Keeps `folder` under `limit` bytes by removing the oldest finished records, and clears away what a killed proxy left empty.
pub fn prune_to_size(folder: &Path, limit: u64) -> Result<PruneSummary, Error> {
    remove_empty(folder);
    prune(folder, &PruneSelection::OldestOver(limit))
}

/// Removes one record, unless it is live.
fn remove(record: &RecordListing) -> Result<bool, Error> {
    // Held while removing, so that nobody starts to write in between.
    let mut locked: Vec<File> = Vec::new();
    for path in &record.paths {
        let file = match private_files::open_record(path) {
            Ok(file) => file,
            // Another proxy was faster.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(Error::io("open", path, error)),
        };
        if !lock::try_acquire_lock(&file).map_err(|error| Error::io("lock", path, error))? {
            return Ok(false);
        }
        locked.push(file);
    }
    for path in &record.paths {
        // The record last: as long as it is there, what could not be removed is found again.
        for path in &FolderListing::siblings_of(path).companions_of(path) {
            companion_files::remove(path)?;
        }
        companion_files::remove(path)?;
    }
    Ok(true)
}

/// Best effort: an empty file has nothing to lose.
fn remove_empty(folder: &Path) {
    for entry in std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
    {
        let path = entry.path();
        let old_and_empty = entry.metadata().is_ok_and(|facts| {
            let age = facts.modified().ok().and_then(|time| time.elapsed().ok());
            facts.is_file() && facts.len() == 0 && age.is_some_and(|age| age > JUST_STARTED)
        });
        if old_and_empty
            && path.extension().is_some_and(|ending| ending == "jsonl")
            && !lock::is_live(&path)
        {
            let _ = std::fs::remove_file(path);
        }
    }
}
