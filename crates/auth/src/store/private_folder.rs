//! A folder that belongs to the user alone, and files in it that are replaced as a whole.

use std::fs::{DirBuilder, File, Metadata};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::Generation;

/// Larger files are neither read nor written.
const FILE_MAX: u64 = 16 * 1024 * 1024;

/// The folder, open: whatever is renamed around it, files go into this one. One that was deleted is replaced by the one that
/// is in its place by then.
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    path: PathBuf,
    opened: Mutex<Arc<File>>,
}

impl PrivateFolder {
    /// Creates the folder. One that exists is used only if it is the user's, and is closed to others.
    pub(crate) fn open_or_create(path: &Path) -> io::Result<PrivateFolder> {
        create(path)?;
        Ok(PrivateFolder {
            path: path.to_owned(),
            opened: Mutex::new(Arc::new(open(path)?)),
        })
    }

    fn folder(&self) -> io::Result<Arc<File>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.metadata()?.nlink() == 0 {
            *opened = Arc::new(open(&self.path)?);
        }
        Ok(Arc::clone(&opened))
    }

    fn folder_to_write(&self) -> io::Result<Arc<File>> {
        self.folder().or_else(|error| match error.kind() {
            ErrorKind::NotFound => {
                create(&self.path)?;
                self.folder()
            }
            _ => Err(error),
        })
    }

    /// The contents of a file; `None`: there is none.
    pub(crate) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        // Without O_NONBLOCK, opening a pipe waits for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let folder = match self.folder() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            folder => folder?,
        };
        let file = match openat(&folder, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(refusal("it is a symbolic link")),
            Err(error) => return Err(error.into()),
        };
        check_file(&file.metadata()?)?;
        let mut contents = Vec::new();
        file.take(FILE_MAX + 1).read_to_end(&mut contents)?;
        check_size(&contents)?;
        Ok(Some(contents))
    }

    /// Replaces a file as a whole: readers see the old contents or the new, even if this process dies.
    pub(crate) fn replace(&self, name: &str, contents: &[u8]) -> io::Result<()> {
        check_size(contents)?;
        let folder = self.folder_to_write()?;
        let temporary = format!("{name}.{}.tmp", std::process::id());
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let create = || openat(&folder, &temporary, flags, Mode::from(0o600));
        let mut file = File::from(match create() {
            // A process with our id was killed while it wrote.
            Err(Errno::EXIST) => {
                unlinkat(&folder, &temporary, AtFlags::empty())?;
                create()?
            }
            other => other?,
        });
        let written = file
            .write_all(contents)
            .and_then(|()| file.sync_all())
            .and_then(|()| Ok(renameat(&folder, &temporary, &folder, name)?));
        if written.is_err() {
            // The error that is returned is the reason; the file is only waste.
            let _ = unlinkat(&folder, &temporary, AtFlags::empty());
        }
        written
    }

    /// Removes what a killed process left of replacing a file. Nobody may be writing meanwhile.
    pub(crate) fn remove_leftovers(&self, name: &str) -> io::Result<()> {
        let folder = self.folder()?;
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let file = entry.file_name().to_bytes();
            let rest = file.strip_prefix(name.as_bytes());
            if rest.is_some_and(|rest| rest.starts_with(b".") && rest.ends_with(b".tmp")) {
                unlinkat(&folder, entry.file_name(), AtFlags::empty())?;
            }
        }
        Ok(())
    }

    /// Opens a file for locking, and creates it if need be. It stays for ever: two processes must lock the same one.
    pub(crate) fn lock_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = self.folder_to_write()?;
        let file = File::from(openat(&folder, name, flags, Mode::from(0o600))?);
        check_file(&file.metadata()?)?;
        Ok(file)
    }

    /// What changes whenever a file is replaced.
    pub(crate) fn generation(&self, name: &str) -> Generation {
        let facts = self
            .folder()
            .and_then(|folder| Ok(statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?));
        facts.map_or_else(|_| Generation::default(), |facts| Generation::of(&facts))
    }
}

fn create(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = File::from(openat(CWD, path, flags, Mode::empty())?);
    let facts = folder.metadata()?;
    if !is_own(&facts) {
        return Err(refusal("it belongs to another user"));
    }
    if facts.permissions().mode() & 0o077 != 0 {
        folder.set_permissions(std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(folder)
}

fn check_file(facts: &Metadata) -> io::Result<()> {
    match (facts.is_file(), is_own(facts)) {
        (false, _) => Err(refusal("it is not a regular file")),
        (_, false) => Err(refusal("it belongs to another user")),
        (true, true) => Ok(()),
    }
}

fn check_size(contents: &[u8]) -> io::Result<()> {
    match contents.len() as u64 > FILE_MAX {
        true => Err(refusal("it would be too large")),
        false => Ok(()),
    }
}

fn refusal(why: &'static str) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, why)
}

fn is_own(facts: &Metadata) -> bool {
    facts.uid() == rustix::process::geteuid().as_raw()
}
