//! Which handle stands for which file, whose it is and until when; and how much room is left.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use rustc_hash::{FxHashMap, FxHashSet};

use super::SpillOwner;
use crate::SpillFormat;
use crate::line_index::LineIndex;

/// A file of the store.
#[derive(Debug)]
pub(crate) struct StoredFile {
    /// In the directory of the run. It has nothing to do with the handle.
    pub(crate) name: String,
    pub(crate) format: SpillFormat,
    pub(crate) index: LineIndex,
}

/// What the smallest file takes up on most file systems.
const BLOCK: u64 = 4096;

/// What a file of this size takes up on disk.
pub(super) fn occupied(bytes: u64) -> u64 {
    bytes.max(1).next_multiple_of(BLOCK)
}

/// Which files are removed first when there is no room left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RemovalRank {
    /// Those that nobody can read any more.
    Expired,
    /// Those of owners who have more than an equal share of the quota, for an owner who has less.
    OverShare,
    /// Those of the owner who needs room.
    Own,
}

/// All files of the store.
#[derive(Debug)]
pub(super) struct HandleTable {
    quota: u64,
    /// Files on disk, and what is reserved for those that are being written.
    used: u64,
    last_number: u64,
    entries: FxHashMap<String, HandleEntry>,
}

#[derive(Debug)]
struct HandleEntry {
    owner: SpillOwner,
    /// Nothing if that is further away than time can be counted.
    expires: Option<Instant>,
    /// Later ones are larger.
    number: u64,
    size: u64,
    file: Arc<StoredFile>,
}

impl HandleEntry {
    fn is_expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|expires| now >= expires)
    }
}

impl HandleTable {
    pub(super) fn new(quota: u64) -> HandleTable {
        HandleTable {
            quota,
            used: 0,
            last_number: 0,
            entries: FxHashMap::default(),
        }
    }

    pub(super) fn next_file_name(&mut self, format: SpillFormat) -> String {
        self.last_number += 1;
        format!("{}.{}", self.last_number, format.file_extension())
    }

    /// Reserves room for a file of `owner`. The caller removes the files that are returned from the disk.
    ///
    /// If there is too little room, files go in the order of [`RemovalRank`], the oldest first, but only if that is enough.
    pub(super) fn reserve(
        &mut self,
        owner: SpillOwner,
        bytes: u64,
        now: Instant,
    ) -> io::Result<Vec<Arc<StoredFile>>> {
        let wanted = self.used.saturating_add(bytes);
        let mut removed = Vec::new();
        if wanted > self.quota {
            let chosen = self.choose(owner, bytes, wanted - self.quota, now);
            let chosen = chosen.ok_or(io::ErrorKind::QuotaExceeded)?;
            removed = self.remove_where(|handle, _| chosen.contains(handle));
        }
        self.used += bytes;
        Ok(removed)
    }

    /// Files that can go to make room for `excess` bytes. `None` if that is not enough.
    fn choose(
        &self,
        owner: SpillOwner,
        bytes: u64,
        mut excess: u64,
        now: Instant,
    ) -> Option<FxHashSet<String>> {
        let mut usage = FxHashMap::from_iter([(owner, 0)]);
        for entry in self.entries.values() {
            *usage.entry(entry.owner).or_insert(0) += entry.size;
        }
        let share = self.quota / usage.len() as u64;
        let is_modest = usage[&owner].saturating_add(bytes) <= share;
        let rank = |entry: &HandleEntry| match entry.owner == owner {
            _ if entry.is_expired(now) => Some(RemovalRank::Expired),
            true => Some(RemovalRank::Own),
            false => is_modest.then_some(RemovalRank::OverShare),
        };
        let candidates = self.entries.iter();
        let candidates = candidates.filter_map(|(handle, entry)| {
            Some((rank(entry)?, entry.number, entry.size, entry.owner, handle))
        });
        let mut candidates: Vec<_> = candidates.collect();
        candidates.sort_unstable_by_key(|(rank, number, ..)| (*rank, *number));
        let mut chosen = FxHashSet::default();
        for (rank, _, size, owner, handle) in candidates {
            if excess == 0 {
                break;
            }
            let usage = usage.entry(owner).or_insert(0);
            if rank == RemovalRank::OverShare && *usage <= share {
                continue;
            }
            *usage = usage.saturating_sub(size);
            excess = excess.saturating_sub(size);
            chosen.insert(handle.clone());
        }
        (excess == 0).then_some(chosen)
    }

    /// Gives back what was reserved.
    pub(super) fn release(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
    }

    /// Adds a file, for which `reserved` bytes were reserved.
    pub(super) fn insert(
        &mut self,
        handle: String,
        owner: SpillOwner,
        file: StoredFile,
        expires: Option<Instant>,
        reserved: u64,
    ) {
        let size = occupied(file.index.byte_size());
        self.used = self.used.saturating_sub(reserved) + size;
        self.last_number += 1;
        let entry = HandleEntry {
            owner,
            expires,
            number: self.last_number,
            size,
            file: Arc::new(file),
        };
        self.entries.insert(handle, entry);
    }

    pub(super) fn find(
        &self,
        owner: SpillOwner,
        handle: &str,
        now: Instant,
    ) -> Option<Arc<StoredFile>> {
        let entry = self.entries.get(handle)?;
        let is_readable = entry.owner == owner && !entry.is_expired(now);
        is_readable.then(|| entry.file.clone())
    }

    pub(super) fn remove_owner(&mut self, owner: SpillOwner) -> Vec<Arc<StoredFile>> {
        self.remove_where(|_, entry| entry.owner == owner)
    }

    pub(super) fn remove_expired(&mut self, now: Instant) -> Vec<Arc<StoredFile>> {
        self.remove_where(|_, entry| entry.is_expired(now))
    }

    fn remove_where(
        &mut self,
        is_meant: impl Fn(&String, &HandleEntry) -> bool,
    ) -> Vec<Arc<StoredFile>> {
        let meant = self
            .entries
            .extract_if(|handle, entry| is_meant(handle, entry));
        let meant: Vec<_> = meant.map(|(_, entry)| entry).collect();
        let freed: u64 = meant.iter().map(|entry| entry.size).sum();
        self.release(freed);
        meant.into_iter().map(|entry| entry.file).collect()
    }
}
