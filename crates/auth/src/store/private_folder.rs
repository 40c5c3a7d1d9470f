//! A folder that belongs to the user alone, and files in it that are replaced as a whole.

use std::fs::{DirBuilder, File, Metadata};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::Generation;

/// Larger files were not written by us.
const FILE_MAX: u64 = 16 * 1024 * 1024;

/// The folder, open: whatever is renamed around it, files go into this one.
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    folder: File,
}

impl PrivateFolder {
    /// Creates the folder. One that exists is used only if it is the user's, and is closed to others.
    pub(crate) fn open_or_create(path: &Path) -> io::Result<PrivateFolder> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = File::from(openat(CWD, path, flags, Mode::empty())?);
        let facts = folder.metadata()?;
        if !is_own(&facts) {
            return Err(refusal("it belongs to another user"));
        }
        if facts.permissions().mode() & 0o077 != 0 {
            folder.set_permissions(std::fs::Permissions::from_mode(0o700))?;
        }
        Ok(PrivateFolder { folder })
    }

    /// The contents of a file; `None`: there is none.
    pub(crate) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        // Without O_NONBLOCK, opening a pipe waits for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.folder, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(refusal("it is a symbolic link")),
            Err(error) => return Err(error.into()),
        };
        check_file(&file.metadata()?)?;
        let mut contents = Vec::new();
        file.take(FILE_MAX).read_to_end(&mut contents)?;
        Ok(Some(contents))
    }

    /// Replaces a file as a whole: whoever reads it, and whenever this process dies, it has the old contents or the new.
    pub(crate) fn replace(&self, name: &str, contents: &[u8]) -> io::Result<()> {
        let temporary = format!("{name}.{}.tmp", std::process::id());
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let create = || openat(&self.folder, &temporary, flags, Mode::from(0o600));
        let mut file = File::from(match create() {
            // A process with our id was killed while it wrote.
            Err(Errno::EXIST) => {
                unlinkat(&self.folder, &temporary, AtFlags::empty())?;
                create()?
            }
            other => other?,
        });
        let written = file
            .write_all(contents)
            .and_then(|()| file.sync_all())
            .and_then(|()| Ok(renameat(&self.folder, &temporary, &self.folder, name)?));
        if written.is_err() {
            // The error that is returned is the reason; the file is only waste.
            let _ = unlinkat(&self.folder, &temporary, AtFlags::empty());
        }
        written
    }

    /// Opens a file for locking, and creates it if need be. It stays for ever: two processes must lock the same one.
    pub(crate) fn lock_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(&self.folder, name, flags, Mode::from(0o600))?);
        check_file(&file.metadata()?)?;
        Ok(file)
    }

    /// What changes whenever a file is replaced.
    pub(crate) fn generation(&self, name: &str) -> Generation {
        match statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(facts) => Generation::of(&facts),
            Err(_) => Generation::default(),
        }
    }
}

fn check_file(facts: &Metadata) -> io::Result<()> {
    match (facts.is_file(), is_own(facts)) {
        (false, _) => Err(refusal("it is not a regular file")),
        (_, false) => Err(refusal("it belongs to another user")),
        (true, true) => Ok(()),
    }
}

fn refusal(why: &'static str) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, why)
}

fn is_own(facts: &Metadata) -> bool {
    facts.uid() == rustix::process::geteuid().as_raw()
}
