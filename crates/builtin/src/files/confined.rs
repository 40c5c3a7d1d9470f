//! Opening files below a directory, and nowhere else.
//!
//! On Linux the kernel resolves the whole path in one call (`openat2` with `RESOLVE_BENEATH`), so there is no moment
//! between a check and its use, and symbolic links work as long as they stay below the directory. Elsewhere, and where
//! a sandbox forbids `openat2`, each part of a path is opened in turn and symbolic links are not followed at all.
//!
//! A hard link to a file elsewhere is a file of this directory: the user who made it could have copied the file instead.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, statat};
use rustix::io::Errno;

use super::access_error::AccessError;

/// Directories with more entries than this are not read to their end.
const ENTRIES_LIMIT: usize = 100_000;

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// A directory that paths are resolved in. Paths given to it are relative and have no `..`.
pub(super) struct ConfinedDirectory {
    directory: OwnedFd,
    lookup: PathLookup,
}

/// How a path is resolved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PathLookup {
    /// By the kernel, in one call.
    #[cfg(target_os = "linux")]
    Kernel,
    /// Part by part, following no symbolic link.
    Parts,
}

/// What the file system knows about a file.
#[derive(Clone, Copy)]
pub(super) struct FileFacts {
    pub(super) kind: FileType,
    pub(super) size: u64,
    /// The nine permission bits.
    pub(super) permissions: Mode,
    /// Seconds since 1970.
    pub(super) modified: i64,
}

/// The entries of a directory, sorted by name.
pub(super) struct Entries {
    directory: OwnedFd,
    pub(super) entries: Vec<Entry>,
    /// There were too many to read them all.
    pub(super) truncated: bool,
}

/// A name in a directory.
pub(super) struct Entry {
    pub(super) name: OsString,
    /// Of the name itself: a symbolic link is not followed.
    pub(super) kind: FileType,
}

impl ConfinedDirectory {
    pub(super) fn open(path: &Path) -> Result<ConfinedDirectory, AccessError> {
        let directory = rustix::fs::open(path, DIRECTORY, Mode::empty())?;
        check_file_system(&directory)?;
        let lookup = PathLookup::for_directory(&directory);
        Ok(ConfinedDirectory { directory, lookup })
    }

    #[cfg(test)]
    pub(super) fn with_lookup(mut self, lookup: PathLookup) -> ConfinedDirectory {
        self.lookup = lookup;
        self
    }

    /// Opens a regular file for reading.
    pub(super) fn open_file(&self, path: &Path) -> Result<(File, FileFacts), AccessError> {
        // Opening a pipe or a device can have effects of its own, so look first. The second look is at what was opened.
        self.facts(path)?.expect_file()?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = self.open_at(path, flags)?;
        check_file_system(&file)?;
        let facts = FileFacts::from(fstat(&file)?);
        facts.expect_file()?;
        Ok((File::from(file), facts))
    }

    pub(super) fn open_directory(&self, path: &Path) -> Result<OwnedFd, AccessError> {
        let directory = self.open_at(path, DIRECTORY)?;
        check_file_system(&directory)?;
        Ok(directory)
    }

    /// Opens a directory, and creates it and those above it if they are missing.
    pub(super) fn create_directory(&self, path: &Path) -> Result<OwnedFd, AccessError> {
        let mut missing = Vec::new();
        let mut current = Err(AccessError::Missing);
        for ancestor in path.ancestors() {
            current = self.open_directory(ancestor);
            match (&current, ancestor.file_name()) {
                (Err(AccessError::Missing), Some(name)) => missing.push((ancestor, name)),
                _ => break,
            }
        }
        let mut directory = current?;
        for (path, name) in missing.into_iter().rev() {
            match mkdirat(&directory, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => directory = self.open_directory(path)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(directory)
    }

    /// What is known about a file of any kind, without opening it.
    pub(super) fn facts(&self, path: &Path) -> Result<FileFacts, AccessError> {
        match self.lookup {
            #[cfg(target_os = "linux")]
            PathLookup::Kernel => {
                let place = self.open_at(path, OFlags::PATH | OFlags::CLOEXEC)?;
                check_file_system(&place)?;
                Ok(FileFacts::from(fstat(&place)?))
            }
            PathLookup::Parts => {
                if path.as_os_str().is_empty() {
                    return Ok(FileFacts::from(fstat(&self.directory)?));
                }
                let name = path.file_name().ok_or(AccessError::Outside)?;
                let parent = self.open_directory(path.parent().unwrap_or(Path::new("")))?;
                let facts = facts_at(&parent, name)?;
                match facts.kind {
                    FileType::Symlink => Err(AccessError::SymbolicLink),
                    _ => Ok(facts),
                }
            }
        }
    }

    pub(super) fn entries(&self, path: &Path) -> Result<Entries, AccessError> {
        let directory = self.open_directory(path)?;
        let mut entries = Vec::new();
        let mut truncated = false;
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if entries.len() == ENTRIES_LIMIT {
                truncated = true;
                break;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => facts_at(&directory, name).map(|facts| facts.kind),
                kind => Ok(kind),
            };
            entries.push(Entry {
                name: name.to_owned(),
                kind: kind.unwrap_or(FileType::Unknown),
            });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Entries {
            directory,
            entries,
            truncated,
        })
    }

    fn open_at(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, AccessError> {
        match self.lookup {
            #[cfg(target_os = "linux")]
            PathLookup::Kernel => open_beneath(&self.directory, path, flags),
            PathLookup::Parts => open_parts(&self.directory, path, flags),
        }
    }
}

impl PathLookup {
    #[cfg(target_os = "linux")]
    fn for_directory(directory: &OwnedFd) -> PathLookup {
        match open_beneath(directory, Path::new(""), OFlags::PATH | OFlags::CLOEXEC) {
            Ok(_) => PathLookup::Kernel,
            Err(_) => PathLookup::Parts,
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn for_directory(_: &OwnedFd) -> PathLookup {
        PathLookup::Parts
    }
}

impl Entries {
    pub(super) fn facts(&self, entry: &Entry) -> Result<FileFacts, AccessError> {
        facts_at(&self.directory, &entry.name)
    }
}

impl FileFacts {
    pub(super) fn expect_file(&self) -> Result<(), AccessError> {
        match self.kind {
            FileType::RegularFile => Ok(()),
            FileType::Directory => Err(AccessError::IsDirectory),
            FileType::Symlink => Err(AccessError::SymbolicLink),
            _ => Err(AccessError::SpecialFile),
        }
    }
}

impl From<Stat> for FileFacts {
    fn from(stat: Stat) -> FileFacts {
        FileFacts {
            kind: FileType::from_raw_mode(stat.st_mode),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            permissions: Mode::from_raw_mode(stat.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO),
            modified: stat.st_mtime,
        }
    }
}

/// The facts about a name in an open directory. A symbolic link is not followed.
pub(super) fn facts_at(directory: impl AsFd, name: &OsStr) -> Result<FileFacts, AccessError> {
    Ok(FileFacts::from(statat(
        directory,
        name,
        AtFlags::SYMLINK_NOFOLLOW,
    )?))
}

#[cfg(target_os = "linux")]
fn open_beneath(directory: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, AccessError> {
    use rustix::fs::{ResolveFlags, openat2};

    /// The kernel gives up when directories are renamed while it looks, so that it cannot be tricked. Try again.
    const ATTEMPTS: usize = 16;

    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let attempt = || openat2(directory, path, flags, Mode::empty(), resolve);
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(Errno::AGAIN) => {}
            opened => return Ok(opened?),
        }
    }
    Ok(attempt()?)
}

fn open_parts(directory: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, AccessError> {
    let mut parts = path.components().peekable();
    let mut current = openat(directory, ".", DIRECTORY, Mode::empty())?;
    if parts.peek().is_none() {
        return Ok(current);
    }
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else {
            return Err(AccessError::Outside);
        };
        let flags = if parts.peek().is_some() {
            DIRECTORY
        } else {
            flags
        };
        current =
            openat(&current, name, flags | OFlags::NOFOLLOW, Mode::empty()).map_err(|error| {
                // With O_DIRECTORY a symbolic link is reported as something that is not a directory.
                match facts_at(&current, name) {
                    Ok(facts) if facts.kind == FileType::Symlink => AccessError::SymbolicLink,
                    _ => AccessError::from(error),
                }
            })?;
    }
    Ok(current)
}

/// Files of the kernel look like regular files, but reading them can block, never end, or show other processes.
#[cfg(target_os = "linux")]
fn check_file_system(file: impl AsFd) -> Result<(), AccessError> {
    const KERNEL_FILE_SYSTEMS: &[u32] = &[
        0x0000_9fa0, // proc
        0x6265_6572, // sysfs
        0x6462_6720, // debugfs
        0x7472_6163, // tracefs
        0x7363_6673, // securityfs
        0x6265_6570, // configfs
        0xcafe_4a11, // bpf
        0xf97c_ff8c, // selinuxfs
        0xde5e_81e4, // efivarfs
        0x6367_7270, // cgroup2
        0x0027_e0eb, // cgroup
    ];
    // The width of the field depends on the platform; the numbers have 32 bits.
    let file_system = rustix::fs::fstatfs(file)?.f_type as u32;
    match KERNEL_FILE_SYSTEMS.contains(&file_system) {
        true => Err(AccessError::KernelFile),
        false => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn check_file_system(_: impl AsFd) -> Result<(), AccessError> {
    Ok(())
}

#[cfg(test)]
mod tests;
