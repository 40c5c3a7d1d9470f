//! Visiting everything below a directory, within limits.
//!
//! Symbolic links are never followed, so there are no cycles. Directories that cannot be read are skipped.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::FileType;

use super::root::RootedPath;
use crate::tool::ToolFailure;

const MOST_DEPTH: usize = 64;
const MOST_ENTRIES: usize = 200_000;
const MOST_BYTES: u64 = 256 << 20;
const MOST_TIME: Duration = Duration::from_secs(10);

/// What a search may still cost.
pub(super) struct SearchBudget {
    entries: usize,
    bytes: u64,
    deadline: Instant,
}

/// Why a search ended before it had seen everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SearchEnd {
    /// The answer is full.
    Results,
    /// Too many files and directories.
    Entries,
    /// Too many bytes.
    Bytes,
    /// Too slow.
    Time,
}

/// A file or directory that was found.
pub(super) struct FoundEntry<'a> {
    pub(super) path: RootedPath<'a>,
    /// The path relative to where the search started.
    pub(super) relative: &'a Path,
    pub(super) kind: FileType,
}

type Visit<'v> = dyn FnMut(&FoundEntry<'_>, &mut SearchBudget) -> Result<(), SearchEnd> + 'v;

impl SearchBudget {
    pub(super) fn new() -> SearchBudget {
        SearchBudget {
            entries: MOST_ENTRIES,
            bytes: MOST_BYTES,
            deadline: Instant::now() + MOST_TIME,
        }
    }

    pub(super) fn spend_bytes(&mut self, bytes: u64) -> Result<(), SearchEnd> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(SearchEnd::Bytes)?;
        Ok(())
    }

    pub(super) fn check_time(&self) -> Result<(), SearchEnd> {
        match Instant::now() < self.deadline {
            true => Ok(()),
            false => Err(SearchEnd::Time),
        }
    }

    fn spend_entry(&mut self) -> Result<(), SearchEnd> {
        self.entries = self.entries.checked_sub(1).ok_or(SearchEnd::Entries)?;
        self.check_time()
    }
}

impl SearchEnd {
    /// The reason, for the model.
    pub(super) fn note(self) -> &'static str {
        match self {
            SearchEnd::Results => "there are more matches: use a narrower search",
            SearchEnd::Entries => "too many files to look at all of them: search in a subdirectory",
            SearchEnd::Bytes => "too much text to search all of it: use a glob or a subdirectory",
            SearchEnd::Time => "the search took too long: use a glob or a subdirectory",
        }
    }
}

/// Visits `start` if it is a file, or everything below it. The outer error is about `start`, the inner one says that
/// the search was not complete.
pub(super) fn walk(
    start: &RootedPath<'_>,
    budget: &mut SearchBudget,
    visit: &mut Visit<'_>,
) -> Result<Result<(), SearchEnd>, ToolFailure> {
    let facts = start.directory().facts(start.relative());
    let facts = facts.map_err(|error| start.failure(error))?;
    if facts.kind == FileType::Directory {
        // Complain about a start that cannot be read, unlike about what is below it.
        let opened = start.directory().open_directory(start.relative());
        opened.map_err(|error| start.failure(error))?;
        return Ok(walk_directory(start, &mut PathBuf::new(), 1, budget, visit));
    }
    let name = start.relative().file_name().unwrap_or_default();
    Ok(visit(
        &FoundEntry {
            path: start.clone(),
            relative: Path::new(name),
            kind: facts.kind,
        },
        budget,
    ))
}

fn walk_directory(
    directory: &RootedPath<'_>,
    relative: &mut PathBuf,
    depth: usize,
    budget: &mut SearchBudget,
    visit: &mut Visit<'_>,
) -> Result<(), SearchEnd> {
    let Ok(listing) = directory.directory().entries(directory.relative()) else {
        return Ok(());
    };
    for entry in listing.entries {
        budget.spend_entry()?;
        if entry.name == ".git" {
            continue;
        }
        let path = directory.join(Path::new(&entry.name));
        relative.push(&entry.name);
        visit(
            &FoundEntry {
                path: path.clone(),
                relative,
                kind: entry.kind,
            },
            budget,
        )?;
        if entry.kind == FileType::Directory && depth < MOST_DEPTH {
            walk_directory(&path, relative, depth + 1, budget, visit)?;
        }
        relative.pop();
    }
    match listing.truncated {
        true => Err(SearchEnd::Entries),
        false => Ok(()),
    }
}
